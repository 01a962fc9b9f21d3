"""Horizontal axes that have no steps."""

from dataclasses import replace

import msgspec
import numpy as np

from tests.report import made_up
from tpr_attention.report.drawings import Curves
from tpr_attention.training.spec import Training

NAMES = {words: name for name, words in made_up.WORDS.items()}


def draw(plan, results):
    return Curves(plan, results).draw()


def mean_losses(panel, name):
    (series,) = (series for series in panel.series if series.name == name)
    return np.stack([made_up.losses(spec, panel.condition) for spec in series.specs]).mean(0)


LENGTHS = {"ours": 20.0, "other": 400.0}
"""Of the whole training of two of three series, on an axis that has no steps."""


def test_another_axis_than_that_of_steps(run):
    plan = made_up.plan(axis="hours", axis_scale="log", lengths=LENGTHS)
    axes = draw(plan, run(plan)).axes[-1]
    drawn = {NAMES[line.get_label()]: line for line in axes.lines}
    assert set(drawn) == {*LENGTHS, *made_up.FLOORS}  # the third has no length
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "hours")
    for name, length in LENGTHS.items():
        assert drawn[name].get_xdata().tolist() == [length / 2, length]  # step 0 has no logarithm
        np.testing.assert_allclose(drawn[name].get_ydata(), mean_losses(plan.panels[-1], name)[1:])
    low, high = axes.get_xlim()
    assert 5 < low < 10 < 400 < high < 800
    assert "100" in [label.get_text() for label in axes.get_xticklabels()]


def test_what_comes_after_training_has_no_place_on_another_axis(run):
    plan = made_up.plan(axis="hours", lengths=LENGTHS)
    shorter = [msgspec.structs.replace(spec, training=Training(steps=50)) for spec in plan.panels[0].series[0].specs]
    line = replace(plan.panels[0].series[0], specs=tuple(shorter))
    plan = replace(plan, panels=tuple(replace(panel, series=(line,), floors=()) for panel in plan.panels))
    axes = draw(plan, run(plan)).axes[-1]
    assert axes.lines[0].get_xdata().tolist() == [0, LENGTHS["ours"]]  # its points are at steps 0, 50 and 100
    assert axes.get_xscale() == "linear"


def test_a_logarithmic_axis_without_lines(run):
    plan = made_up.plan(axis_scale="log", floors=())
    axes = draw(plan, run(plan, lambda spec: False)).axes[-1]
    assert axes.get_xscale() == "log"
    assert "not run yet" in [text.get_text() for text in axes.texts]
