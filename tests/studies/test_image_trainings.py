"""What the image study tells of how contestants were trained."""

from unittest import mock

import numpy as np

from tests.studies.image_runs import save
from tpr_attention.report.markdown import markdown
from tpr_attention.report.results import Course, Results
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose
from tpr_attention.studies.images.contestants import FIRST_SEED, MAIN, OTHERS, series_of
from tpr_attention.studies.images.values import late_in_training

SETUP = Setup(seeds=2)
OWN = Setup(seeds=2, first_seed=FIRST_SEED)


def test_trainings_that_draw_nothing_are_named(tmp_path):
    """A mean that has such a seed says little of the others."""
    store = Store(tmp_path / "store", create=True)
    two, other = series_of(OTHERS, OWN)["convolution-template"].specs, series_of(OTHERS, OWN)["mlp"].specs[0]
    save(store, two[0])
    assert "Nothing is drawn" not in markdown(compose(store, SETUP)[0])
    for spec, iou in ((two[1], 0.002), (other, 0.0)):
        save(store, spec, trained_iou=iou)
    named = "unbinding, MLP, template (seed 300) and convolution, TPR-Attention, template (seed 301)"
    assert f"Nothing is drawn after training by {named}." in markdown(compose(store, SETUP)[0])


def test_losses_are_also_told_before_the_last_tenth_of_the_steps():
    """At the first point that is not earlier; for models that finish, of their training."""
    series = series_of(MAIN, OWN)["union"]
    steps = series.specs[0].training.steps
    points = np.array([0, steps // 2, int(0.9 * steps), steps - 1, steps, steps + 100])
    results = mock.Mock(spec=Results, course=lambda *_: Course(points, np.arange(12.0).reshape(2, 6)))
    assert late_in_training(results, series, "in_distribution", "loss").tolist() == [2.0, 8.0]
    assert not len(late_in_training(mock.Mock(spec=Results, course=lambda *_: None), series, "in_distribution", "loss"))
