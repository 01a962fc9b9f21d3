"""What the report of the image study says of answers that need no learning."""

import numpy as np
import pytest

from tests.studies.image_runs import save
from tests.studies.shown import check_forms
from tests.studies.stored import rows
from tpr_attention.report.markdown import markdown
from tpr_attention.report.style import percent
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose
from tpr_attention.studies.images.contestants import CONTROLS, DECODERS, FIRST_SEED, OTHERS, series_of
from tpr_attention.studies.images.floors import ANSWERS, EXAMPLES, TASK, union_floors
from tpr_attention.studies.images.values import HELD_OUT, ON_UNION, conditions_of
from tpr_attention.tasks.images.composition import ImageComposition
from tpr_attention.tasks.images.floors import COUNT
from tpr_attention.training.spec import RunSpec

SETUP = Setup(seeds=1)
OWN = Setup(seeds=1, first_seed=FIRST_SEED)


def composed(path, block, name):
    """The report of one run."""
    store = Store(path / "store", create=True)
    save(store, series_of(block, OWN)[name].specs[0])
    return compose(store, SETUP)[0]


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    return composed(tmp_path_factory.mktemp("floors"), OTHERS, "swap")


def test_floors_are_those_of_the_task(document):
    task = ImageComposition("union")
    assert all(RunSpec.of(one.keys).task == TASK.task for one in ON_UNION.values())
    found = rows({section.title: section for section in document.sections}, "images-floors")
    assert len(found) == len(ANSWERS)
    known, *held_out = conditions_of("union")
    assert set(held_out) == set(task.conditions) - {known}
    exact, iou, wrong = (union_floors()[metric] for metric in ("exact", "iou", "wrong_pixels"))
    assert set(exact[known]) == set(ANSWERS)
    for row, answer in zip(found, ANSWERS, strict=True):
        assert float(row["IoU"]) == round(iou[known][answer], 4)
        assert float(row["IoU, worst test"]) == round(min(iou[test][answer] for test in held_out), 4)
        shares = [row[title].removesuffix(" %") for title in ("exactly right", "exactly right, worst test")]
        expected = [exact[known][answer], min(exact[test][answer] for test in held_out)]
        np.testing.assert_allclose([float(share) / 100 for share in shares], expected, atol=0.001)
        pixels = wrong[known][answer], max(wrong[test][answer] for test in held_out)
        shown = float(row["wrong pixels"]), float(row["wrong pixels, worst test"])
        np.testing.assert_allclose(shown, pixels, rtol=0.05)
    by_answer = dict(zip(ANSWERS, found, strict=True))
    assert by_answer["nearest"]["exactly right"] == by_answer["oracle"]["exactly right, worst test"] == "100 %"
    assert by_answer["nearest"]["exactly right, worst test"] == by_answer["black"]["exactly right"] == "0.0 %"


def test_shuffled_actions_are_compared_with_a_copy(tmp_path):
    """Also where no contestant is stored; other controls need no such level."""
    iou, exact = (union_floors()[metric] for metric in ("iou", "exact"))
    said = markdown(composed(tmp_path / "shuffled", CONTROLS, "shuffled"))
    for test, words in (("in_distribution", "in distribution"), (HELD_OUT, "held out")):
        copied = f"{iou[test]['copy']:.2f} and {percent(exact[test]['copy'])}"
        assert f"{words} an IoU of 0.50 and 0.0 % exactly right, a copy of the reference {copied}" in said
    assert "a copy of the reference" not in markdown(composed(tmp_path / "noisy", CONTROLS, "noisy"))


def test_numbers_are_no_texts(document):
    check_forms([table for table in document.tables if table.name.startswith("images-")])


def test_the_caption_says_how_many_examples_there_are():
    assert EXAMPLES == COUNT


def test_floors_are_found_once_in_a_process(document, monkeypatch, tmp_path):
    """And not at all where no contestant is on the union."""
    monkeypatch.setattr(ImageComposition, "floors", None)
    other = composed(tmp_path, OTHERS, "linear")
    assert "images-floors" in [table.name for table in other.tables]
    union_floors.cache_clear()
    plain = composed(tmp_path / "decoders", DECODERS, "template")
    assert "images-floors" not in [table.name for table in plain.tables]
