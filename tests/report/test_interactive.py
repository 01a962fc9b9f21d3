"""The figure in the page has what the picture has."""

import json

import numpy as np
import pytest

from tests.report import made_up
from tpr_attention.report.interactive import plot


def of_group(figure, label, kind):
    wanted = {"band": lambda trace: "fill" in trace, "line": lambda trace: "fill" not in trace}[kind]
    return [trace for trace in figure["data"] if trace["legendgroup"] == label and wanted(trace)]


def test_lines_bands_and_floors_are_those_of_the_store(run):
    study = made_up.study(bands=((2, "SD"), (1, "SE")))
    figure = plot(study, run(study))
    assert len(figure["data"]) == 4 * (3 + 3 + 2)
    for label in ("tpr", "classical", "resnet"):
        lines, bands = of_group(figure, label, "line"), of_group(figure, label, "band")
        assert [line["yaxis"] for line in lines] == [band["yaxis"] for band in bands] == ["y", "y2", "y3", "y4"]
        for panel, line, band in zip(study.panels, lines, bands, strict=True):
            (curve,) = (curve for curve in panel.curves if curve.label == label)
            losses = np.stack([made_up.losses(spec, panel.condition) for spec in curve.specs])
            width = panel.band.times * losses.std(0, ddof=1) / (np.sqrt(3) if panel.band.kind == "SE" else 1)
            assert line["x"] == list(made_up.STEPS)
            np.testing.assert_allclose(line["y"], losses.mean(0), rtol=1e-4)
            np.testing.assert_allclose(line["customdata"], np.stack([losses.mean(0), width], 1), rtol=1e-4)
            assert f"({panel.band.times} {panel.band.kind}, 3 seeds)" in line["hovertemplate"]
            assert band["x"] == [*made_up.STEPS, *reversed(made_up.STEPS)]
            edges = [*(losses.mean(0) + width), *np.maximum(losses.mean(0) - width, losses.mean(0) / 10)[::-1]]
            np.testing.assert_allclose(band["y"], edges, rtol=1e-4)
    for label in ("linear-floor", "oracle"):
        for line in of_group(figure, label, "line"):
            np.testing.assert_allclose(line["y"], [made_up.LEVELS[label] * 2] * 2, rtol=1e-4)


def test_a_group_is_named_once(run):
    study = made_up.study(bands=((2, "SD"),) * 3)
    figure = plot(study, run(study))
    named = [trace["legendgroup"] for trace in figure["data"] if trace["showlegend"]]
    assert named == list(made_up.LEVELS)
    assert figure["layout"]["legend"]["groupclick"] == "togglegroup"


def test_axes_lie_side_by_side_and_are_shared(run):
    study = made_up.study(bands=((2, "SD"),) * 2)
    layout = plot(study, run(study))["layout"]
    losses = [layout[key] for key in ("yaxis", "yaxis2", "yaxis3", "yaxis4")]
    assert [axis.get("matches") for axis in losses] == [None, "y", None, "y3"]
    assert {axis["type"] for axis in losses} == {"log"}
    assert losses[0]["domain"][0] > losses[2]["domain"][1]
    assert layout["xaxis"]["domain"][1] < layout["xaxis2"]["domain"][0]
    assert layout["xaxis3"]["matches"] == "x"


def test_buttons_change_every_axis_by_the_key_it_has(run):
    """plotly.js stops at `yaxis1`: the first axis is `yaxis`."""
    study = made_up.study(bands=((2, "SD"),) * 2)
    layout = plot(study, run(study))["layout"]
    axes = {key for key in layout if key.startswith("yaxis")}
    assert axes == {"yaxis", "yaxis2", "yaxis3", "yaxis4"}
    log, linear = (button["args"][0] for button in layout["updatemenus"][0]["buttons"])
    for name, changes in (("log", log), ("linear", linear)):
        assert {key.split(".")[0] for key in changes} == axes
        assert {changes[f"{axis}.type"] for axis in axes} == {name}
    assert all(log[f"{axis}.range"] == layout[axis]["range"] for axis in axes)
    assert all(linear[f"{axis}.range"] == [0, pytest.approx(10 ** layout[axis]["range"][1])] for axis in axes)


def test_numbers_are_brief_and_json_is_strict(run):
    def strange(spec, condition):
        return made_up.losses(spec, condition) * [np.pi, np.nan, 0.0][: len(made_up.losses(spec, condition))]

    study = made_up.study(seeds=1, floors=())
    figure = plot(study, run(study, values=strange))
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    (first, missing, zero) = figure["data"][0]["customdata"]
    assert (first, missing, zero) == ([3.1416], [None], [0.0])
    assert figure["data"][0]["y"][2] > 0
    assert "one seed" in figure["data"][0]["hovertemplate"]


def test_what_is_not_run_says_so(run):
    study = made_up.study()
    figure = plot(study, run(study, lambda spec: False))
    assert figure["data"] == []
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["Test 1", "not run yet", "not run yet"]


def test_floors_that_no_axis_shows_are_told(run):
    study = made_up.study()
    figure = plot(study, run(study, values=lambda spec, test: made_up.losses(spec, test) * (spec.model != "oracle")))
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["Test 1", "solvable", "solvable"]


def test_words_are_no_markup(run):
    study = made_up.study(models=("<b>bold</b>",))
    names = {trace["name"] for trace in plot(study, run(study))["data"] if "name" in trace}
    assert "&lt;b&gt;bold&lt;/b&gt;" in names
