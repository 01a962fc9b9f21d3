"""The figure in the page has what the picture has."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.report import made_up
from tpr_attention.report.drawings import Curves


def plot(plan, results):
    return Curves(plan, results).plot()


def of_group(figure, name, kind):
    wanted = {"band": lambda trace: "fill" in trace, "line": lambda trace: "fill" not in trace}[kind]
    return [trace for trace in figure["data"] if trace["legendgroup"] == name and wanted(trace)]


def annotations(figure):
    return [note["text"] for note in figure["layout"]["annotations"]]


def test_lines_bands_and_floors_are_those_of_the_store(run):
    plan = made_up.plan(bands=((2, "SD"), (1, "SE")))
    figure = plot(plan, run(plan))
    assert len(figure["data"]) == 4 * (3 + 3 + 2)
    for name in ("ours", "other", "third"):
        lines, bands = of_group(figure, name, "line"), of_group(figure, name, "band")
        assert [line["yaxis"] for line in lines] == [band["yaxis"] for band in bands] == ["y", "y2", "y3", "y4"]
        for panel, line, band in zip(plan.panels, lines, bands, strict=True):
            (series,) = (series for series in panel.series if series.name == name)
            losses = np.stack([made_up.losses(spec, panel.condition) for spec in series.specs])
            width = panel.band.times * losses.std(0, ddof=1) / (np.sqrt(3) if panel.band.kind == "SE" else 1)
            assert line["x"] == list(made_up.STEPS)
            np.testing.assert_allclose(line["y"], losses.mean(0), rtol=1e-4)
            np.testing.assert_allclose(line["customdata"], np.stack([losses.mean(0), width], 1), rtol=1e-4)
            assert f"({panel.band.times} {panel.band.kind}, 3 seeds)" in line["hovertemplate"]
            assert band["x"] == [*made_up.STEPS, *reversed(made_up.STEPS)]
            edges = [*(losses.mean(0) + width), *np.maximum(losses.mean(0) - width, losses.mean(0) / 10)[::-1]]
            np.testing.assert_allclose(band["y"], edges, rtol=1e-4)
    for name in made_up.FLOORS:
        for line in of_group(figure, name, "line"):
            np.testing.assert_allclose(line["y"], [made_up.LEVELS[name] * 2] * 2, rtol=1e-4)


def test_a_series_is_named_once(run):
    plan = made_up.plan(bands=((2, "SD"),) * 3)
    figure = plot(plan, run(plan))
    named = [trace["legendgroup"] for trace in figure["data"] if trace["showlegend"]]
    assert named == list(made_up.LEVELS)
    assert figure["layout"]["legend"]["groupclick"] == "togglegroup"


def test_axes_lie_side_by_side_and_are_shared(run):
    plan = made_up.plan(bands=((2, "SD"),) * 2)
    layout = plot(plan, run(plan))["layout"]
    losses = [layout[key] for key in ("yaxis", "yaxis2", "yaxis3", "yaxis4")]
    assert [axis.get("matches") for axis in losses] == [None, "y", None, "y3"]
    assert {axis["type"] for axis in losses} == {"log"}
    assert losses[0]["domain"][0] > losses[2]["domain"][1]
    assert layout["xaxis"]["domain"][1] < layout["xaxis2"]["domain"][0]
    assert layout["xaxis"]["matches"] == layout["xaxis2"]["matches"] == "x3"
    assert [layout[key]["title"]["text"] for key in ("yaxis", "yaxis3")] == [
        "<b>first</b><br>loss",
        "<b>second</b><br>loss",
    ]


def test_a_grid_may_have_holes(run):
    plan = made_up.plan(bands=((2, "SD"),) * 2)
    plan = replace(plan, panels=plan.panels[:3])
    figure = plot(plan, run(plan))
    assert {key for key in figure["layout"] if key.startswith("yaxis")} == {"yaxis", "yaxis2", "yaxis3"}


def test_buttons_change_every_axis_by_the_key_it_has(run):
    """plotly.js stops at `yaxis1`: the first axis is `yaxis`."""
    plan = made_up.plan(bands=((2, "SD"),) * 2)
    layout = plot(plan, run(plan))["layout"]
    axes = {key for key in layout if key.startswith("yaxis")}
    assert axes == {"yaxis", "yaxis2", "yaxis3", "yaxis4"}
    log, linear = (button["args"][0] for button in layout["updatemenus"][0]["buttons"])
    for name, changes in (("log", log), ("linear", linear)):
        assert {key.split(".")[0] for key in changes} == axes
        assert {changes[f"{axis}.type"] for axis in axes} == {name}
    assert all(log[f"{axis}.range"] == layout[axis]["range"] for axis in axes)
    assert all(linear[f"{axis}.range"] == [0, pytest.approx(10 ** layout[axis]["range"][1])] for axis in axes)


def test_other_metrics_have_a_linear_axis_and_no_buttons(run):
    plan = made_up.plan(metric="accuracy", scale="linear")
    layout = plot(plan, run(plan))["layout"]
    assert layout["yaxis"]["type"] == "linear"
    assert layout["yaxis"]["title"]["text"].endswith("accuracy")
    assert "updatemenus" not in layout


def test_another_axis_than_that_of_steps(run):
    plan = made_up.plan(models=("ours",), floors=(), axis="hours", axis_scale="log", lengths={"ours": 20.0})
    figure = plot(plan, run(plan))
    (line, _) = of_group(figure, "ours", "line")
    assert (line["x"], line["name"]) == ([10.0, 20.0], "Our model")
    assert "hours: %{x}" in line["hovertemplate"]
    assert "step" not in line["hovertemplate"]
    axis = figure["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert axis["range"][0] < 1 < np.log10(20) < axis["range"][1] < 1.5


def test_numbers_are_brief_and_json_is_strict(run):
    def strange(spec, condition):
        return made_up.losses(spec, condition) * [np.pi, np.nan, 0.0]

    plan = made_up.plan(seeds=1, floors=())
    figure = plot(plan, run(plan, values=strange))
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    (first, missing, zero) = figure["data"][0]["customdata"]
    assert (first, missing, zero) == ([3.1416], [None], [0.0])
    assert figure["data"][0]["y"][2] > 0
    assert "one seed" in figure["data"][0]["hovertemplate"]


def test_panels_without_runs_say_so(run):
    plan = made_up.plan()
    figure = plot(plan, run(plan, lambda spec: False))
    assert figure["data"] == []
    assert annotations(figure) == ["Near", "not run yet", "not run yet"]


def test_marks(run):
    plan = made_up.plan()
    values = lambda spec, test: made_up.losses(spec, test) * (spec.model.name != "best")  # noqa: E731
    assert annotations(plot(plan, run(plan, values=values))) == ["Near", "solvable", "solvable"]


def test_words_are_no_markup(run):
    plan = made_up.plan(models=("<b>bold</b>",), row="<i>", column="<u>", axis="<a>", mark=lambda floors: "<s>")
    figure = plot(plan, run(plan))
    data = [{key: value for key, value in trace.items() if key != "legendgroup"} for trace in figure["data"]]
    text = json.dumps([data, figure["layout"]])  # a group's name is not shown
    for word in ("b>bold</b", "i", "u", "a", "s"):
        assert f"<{word}>" not in text
        assert f"&lt;{word.replace('>', '&gt;').replace('<', '&lt;')}&gt;" in text
