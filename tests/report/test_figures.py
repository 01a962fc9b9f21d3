"""What is on a picture is what is in the store."""

import pickle
import subprocess
import sys
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from tests.report import made_up
from tpr_attention.report.drawings import Curves
from tpr_attention.report.drawings.pictures import FORMATS, encoded

NAMES = {words: name for name, words in made_up.WORDS.items()}


def draw(plan, results):
    return Curves(plan, results).draw()


def texts(figure):
    return [" ".join(text.get_text().split()) for owner in (figure, *figure.axes) for text in owner.texts]


def marks(axes):
    """What is written into a panel; the title of its row is also among the texts."""
    return [text.get_text() for text in axes.texts if text.get_weight() != "bold"]


def seeds_of(panel, name):
    (series,) = (series for series in (*panel.series, *panel.floors) if series.name == name)
    return np.stack([made_up.losses(spec, panel.condition) for spec in series.specs])


def test_lines_bands_and_floors_are_those_of_the_store(run):
    plan = made_up.plan(bands=((2, "SD"), (1, "SE")))
    figure = draw(plan, run(plan))
    assert len(figure.axes) == len(plan.panels) == 4
    for axes, panel in zip(figure.axes, plan.panels, strict=True):
        assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
        drawn = {NAMES[line.get_label()]: line for line in axes.lines}
        assert set(drawn) == set(made_up.LEVELS)
        assert len(axes.collections) == 3
        bands = {tuple(band.get_facecolor()[0][:3]): band for band in axes.collections}
        for name in ("ours", "other", "third"):
            losses = seeds_of(panel, name)
            assert list(drawn[name].get_xdata()) == list(made_up.STEPS)
            np.testing.assert_allclose(drawn[name].get_ydata(), losses.mean(0), rtol=1e-12)
            width = panel.band.times * losses.std(0, ddof=1) / (np.sqrt(3) if panel.band.kind == "SE" else 1)
            (outline,) = bands[matplotlib.colors.to_rgb(drawn[name].get_color())].get_paths()
            end = outline.vertices[outline.vertices[:, 0] == made_up.STEPS[-1], 1]
            low = max(losses.mean(0)[-1] - width[-1], losses.mean(0)[-1] / 10)
            np.testing.assert_allclose([end.min(), end.max()], [low, losses.mean(0)[-1] + width[-1]])
        for name in made_up.FLOORS:
            assert set(drawn[name].get_ydata()) == {seeds_of(panel, name).mean()}


def test_other_metrics_have_a_linear_axis(run):
    plan = made_up.plan(metric="accuracy", scale="linear")
    axes = draw(plan, run(plan)).axes[0]
    assert (axes.get_yscale(), axes.get_ylabel()) == ("linear", "accuracy")
    drawn = {NAMES[line.get_label()]: line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn["ours"], 1 - seeds_of(plan.panels[0], "ours").mean(0))
    low, high = axes.get_ylim()
    assert low < 0 < 1 < high < 1.5


def test_final_values_against_sizes(run):
    sizes = (2, 4, 8)
    lines = [made_up.series("ours", 2, size=size) for size in sizes]
    series = replace(lines[0], specs=tuple(spec for line in lines for spec in line.specs))
    plan = made_up.plan(series=(series,), floors=(), sizes=sizes, axis="size")

    def grows(spec, condition):
        return made_up.losses(spec, condition) * spec.task.options["size"]

    results = run(plan, lambda spec: (spec.task.options["size"], spec.seed) != (8, 1), values=grows)
    axes = draw(plan, results).axes[-1]
    (line,) = axes.lines
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "size")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "4", "8"]
    assert line.get_xdata().tolist() == [2, 4]  # a seed of the third is missing
    np.testing.assert_allclose(line.get_ydata(), [2 * 1.5e-4, 4 * 1.5e-4])


def test_the_legend_names_every_line_and_the_band(run):
    plan = made_up.plan()
    (legend,) = draw(plan, run(plan)).legends
    assert sorted(text.get_text() for text in legend.get_texts()) == sorted([*NAMES, "band: mean ± 2 SD"])


def test_where_bands_differ_columns_say_theirs(run):
    plan = made_up.plan(bands=((2, "SD"), (1, "SE")))
    figure = draw(plan, run(plan))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["Near\nband: mean ± 2 SD", "Far\nband: mean ± 1 SE", "", ""]
    assert "band: see the column" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_titles(run):
    plan = made_up.plan()
    figure = draw(plan, run(plan))
    assert {"first", "second", plan.title} <= set(texts(figure))
    assert [axes.get_title() for axes in figure.axes] == ["Near", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "training steps"]


def test_rows_share_their_axis_and_show_all_means(run):
    plan = made_up.plan(bands=((1, "SE"),) * 3)
    figure = draw(plan, run(plan))
    first, second = figure.axes[:3], figure.axes[3:]
    assert len({axes.get_ylim() for axes in first}) == len({axes.get_ylim() for axes in second}) == 1
    low, high = first[0].get_ylim()
    assert low < made_up.LEVELS["ours"] < 1 < high


def test_one_seed_has_no_band(run):
    plan = made_up.plan(seeds=1, bands=((2, "SD"), (1, "SE")))
    figure = draw(plan, run(plan))
    assert [len(axes.collections) for axes in figure.axes] == [0] * 4
    assert "band" not in " ".join(text.get_text() for text in figure.legends[0].get_texts())
    assert figure.axes[0].get_title() == "Near"
    assert any(text.startswith("Lines: one seed, no band.") for text in texts(figure))


def test_equal_seeds_have_a_band_of_no_width(run):
    plan = made_up.plan()
    figure = draw(plan, run(plan, values=lambda spec, test: made_up.losses(spec.with_seed(0), test)))
    for axes in figure.axes:
        assert len(axes.collections) == 3
        for band, line in zip(axes.collections, axes.lines, strict=False):
            edges = np.asarray(band.get_paths()[0].vertices)[:, 1]
            assert np.isfinite(edges).all()
            np.testing.assert_allclose([edges.min(), edges.max()], [min(line.get_ydata()), max(line.get_ydata())])


def test_missing_seeds_are_noted(run):
    plan = made_up.plan()
    results = run(plan, lambda spec: spec.seed < 2 or spec.model.name == "ours")
    assert any("mean over 2 to 3 seeds" in text for text in texts(draw(plan, results)))


def test_a_missing_series_is_noted(run):
    plan = made_up.plan()
    results = run(plan, lambda spec: (spec.model.name, spec.task.options["row"]) != ("ours", "second"))
    figure = draw(plan, results)
    assert [len(axes.lines) for axes in figure.axes] == [5, 4]
    assert any("Not run everywhere yet: Our model." in text for text in texts(figure))


def test_runs_that_diverged_are_left_out_and_noted(run, store):
    plan = made_up.plan()
    lost = plan.panels[0].series[0].specs[0]
    made_up.save(store, lost, provenance={"diverged": {"step": 3, "tensor": "loss"}})
    figure = draw(plan, run(plan))
    (line,) = (line for line in figure.axes[0].lines if line.get_label() == "Our model")
    np.testing.assert_allclose(line.get_ydata(), seeds_of(plan.panels[0], "ours")[1:].mean(0))
    assert any("Left out: 1 run that diverged." in text for text in texts(figure))


def test_rows_without_runs_are_left_out_and_named(run):
    plan = made_up.plan()
    figure = draw(plan, run(plan, lambda spec: spec.task.options["row"] == "first"))
    assert [marks(axes) for axes in figure.axes] == [["not solvable"]]
    assert [len(axes.lines) for axes in figure.axes] == [5]
    assert len(figure.legends[0].get_texts()) == 6
    assert any("Rows not run yet: second." in text for text in texts(figure))


def test_a_figure_without_runs_says_so(run):
    plan = made_up.plan()
    figure = draw(plan, run(plan, lambda spec: False))
    assert [marks(axes) for axes in figure.axes] == [["not run yet"], ["not run yet"]]


def test_long_titles_of_columns_are_broken_into_lines(run):
    long = "a column whose title is so long that it would run into that of the next one if it were on a line of its own"
    plan = made_up.plan(bands=((2, "SD"), (2, "SD"), (2, "SD")))
    plan = replace(plan, panels=tuple(replace(panel, column=f"{panel.column}: {long}") for panel in plan.panels))
    figure = draw(plan, run(plan))
    title = figure.axes[0].get_title()
    assert " ".join(title.split()) == f"Near: {long}"
    assert max(map(len, title.splitlines())) <= 46


def test_marks_and_their_note(run):
    plan = made_up.plan()
    assert any(plan.note in text for text in texts(draw(plan, run(plan))))
    unmarked = made_up.plan(mark=None)
    figure = draw(unmarked, run(unmarked))
    assert [marks(axes) for axes in figure.axes] == [[], []]
    assert not any(plan.note in text for text in texts(figure))


def test_losses_near_zero_leave_the_axis_and_this_is_noted(run):
    def tiny(spec, condition):
        return made_up.losses(spec, condition) ** (10 if spec.model.name in ("ours", "best") else 1)

    plan = made_up.plan()
    figure = draw(plan, run(plan, values=tiny))
    axes = figure.axes[0]
    assert axes.get_ylim()[0] == 1e-10
    drawn = {NAMES[line.get_label()]: line.get_ydata() for line in axes.lines}
    assert max(drawn["best"]) < 1e-10 < min(drawn["fit"])
    assert (np.asarray(drawn["ours"]) > 0).all()
    assert marks(axes) == ["solvable"]
    assert any("Values below 1e-10 are not shown." in text for text in texts(figure))


def test_values_of_zero_and_not_a_number_are_drawn_without_warning(run):
    ends = {"ours": 0.0, "other": np.nan, "third": np.inf}

    def strange(spec, condition):
        found = made_up.losses(spec, condition)
        found[-1] = ends.get(spec.model.name, 0.0)
        return found

    plan = made_up.plan(seeds=1)
    figure = draw(plan, run(plan, values=strange))
    assert all(len(encoded(figure, form)) > 1000 for form in FORMATS)


def test_a_floor_is_the_mean_of_the_seeds_that_are_stored(run):
    plan = made_up.plan()
    figure = draw(plan, run(plan, lambda spec: spec.seed < 2 or spec.model.name != "best"))
    (height,) = {line.get_ydata()[0] for line in figure.axes[0].lines if line.get_label() == "best answer"}
    assert height == pytest.approx(made_up.LEVELS["best"] * 1.5)


def settings():
    return {key: value for key, value in dict.items(matplotlib.rcParams) if key != "backend"}


def test_pictures_are_the_same_bytes_whatever_the_settings_and_the_process(run, tmp_path):
    plan = made_up.plan()
    curves = Curves(plan, run(plan))
    figure = curves.draw()
    first = {form: encoded(figure, form) for form in FORMATS}
    with matplotlib.rc_context({"axes.facecolor": "black", "font.family": "serif"}):
        before = settings()
        again = pickle.loads(pickle.dumps(curves)).draw()  # noqa: S301
        assert {form: encoded(again, form) for form in FORMATS} == first
        assert settings() == before
    for data in first.values():
        assert not [word for word in (b"CreationDate", b"dc:date", b"Software") if word in data]
    (tmp_path / "one.png").write_bytes(first["png"])
    with Image.open(tmp_path / "one.png") as image:
        assert round(image.info["dpi"][0]) == 150


@pytest.mark.parametrize("columns", [1, 3, 6])
@pytest.mark.parametrize("row", ["short", "a title of a row that needs more than a line"])
def test_nothing_overlaps(columns, row, run):
    plan = made_up.plan(bands=((2, "SD"), (1, "SE"), (1, "SD")))
    panels = [replace(panel, row=f"{panel.row} {row}") for panel in plan.panels]
    more = [replace(panel, column=f"again {panel.column}") for panel in panels]
    kept = {1: panels[::3], 3: panels, 6: [*panels, *more]}[columns]
    plan = replace(plan, panels=tuple(kept))
    figure = draw(plan, run(plan))
    renderer = FigureCanvasAgg(figure).get_renderer()
    outer = [text.get_window_extent(renderer) for text in figure.texts if text.get_text()]
    parts = [*outer, *(legend.get_window_extent(renderer) for legend in figure.legends)]
    parts += [axes.get_tightbbox(renderer) for axes in figure.axes]
    for place, part in enumerate(parts):
        assert figure.bbox.x0 <= part.x0
        assert part.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= part.y0
        assert part.y1 <= figure.bbox.y1
        assert not [other for other in parts[:place] if part.overlaps(other)]
    sizes = [text.get_fontsize() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(sizes) >= 8


def test_a_dollar_is_no_formula(run):
    plan = replace(made_up.plan(models=("ours", "a$\\no$c")), title="$\\frac$")
    assert encoded(draw(plan, run(plan)), "png")


def test_no_module_needs_torch_and_documents_need_no_matplotlib():
    light = ["document", "drawings", "tables", "results"]
    drawn = ["figures", "heat_maps", "interactive"]
    modules = [*(f"drawings.{name}" for name in drawn), "inspection", "html", "markdown", "latex", "write"]
    code = f"""
import sys
for name in {light}: __import__(f"tpr_attention.report.{{name}}")
print({{"torch", "matplotlib"}} & set(sys.modules))
for name in {modules}: __import__(f"tpr_attention.report.{{name}}")
print({{"torch", "matplotlib.pyplot"}} & set(sys.modules))
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "set()\nset()\n"
