"""What is on a picture is what is in the store."""

import subprocess
import sys
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from tests.report import made_up
from tpr_attention.experiments.layout import Setup
from tpr_attention.experiments.studies import STUDIES
from tpr_attention.experiments.studies import study as paper_study
from tpr_attention.report.figures import draw, save
from tpr_attention.report.style import styles

NAMES = ["TPR-Attention", "classical attention", "ResNet", "best linear fit", "best guess"]
LABELS = dict(zip(NAMES, made_up.LEVELS, strict=True))


def texts(figure):
    return [" ".join(text.get_text().split()) for owner in (figure, *figure.axes) for text in owner.texts]


def seeds_of(panel, label, condition):
    (curve,) = (curve for curve in (*panel.curves, *panel.floors) if curve.label == label)
    return np.stack([made_up.losses(spec, condition) for spec in curve.specs])


def test_lines_bands_and_floors_are_those_of_the_store(run):
    study = made_up.study(bands=((2, "SD"), (1, "SE")))
    figure = draw(study, run(study))
    assert len(figure.axes) == len(study.panels) == 4
    for axes, panel in zip(figure.axes, study.panels, strict=True):
        assert axes.get_yscale() == "log"
        assert axes.get_xscale() == "linear"
        drawn = {LABELS[line.get_label()]: line for line in axes.lines}
        assert set(drawn) == set(made_up.LEVELS)
        assert len(axes.collections) == 3
        bands = {tuple(band.get_facecolor()[0][:3]): band for band in axes.collections}
        for label in ("tpr", "classical", "resnet"):
            losses = seeds_of(panel, label, panel.condition)
            assert list(drawn[label].get_xdata()) == list(made_up.STEPS)
            np.testing.assert_allclose(drawn[label].get_ydata(), losses.mean(0), rtol=1e-12)
            width = panel.band.times * losses.std(0, ddof=1) / (np.sqrt(3) if panel.band.kind == "SE" else 1)
            band = bands[matplotlib.colors.to_rgb(drawn[label].get_color())]
            (outline,) = band.get_paths()
            end = outline.vertices[outline.vertices[:, 0] == made_up.STEPS[-1], 1]
            low = max(losses.mean(0)[-1] - width[-1], losses.mean(0)[-1] / 10)
            np.testing.assert_allclose([end.min(), end.max()], [low, losses.mean(0)[-1] + width[-1]])
        for label in ("linear-floor", "oracle"):
            assert set(drawn[label].get_ydata()) == {seeds_of(panel, label, panel.condition).mean()}


def test_the_legend_names_every_line_and_the_band(run):
    study = made_up.study()
    (legend,) = draw(study, run(study)).legends
    assert sorted(text.get_text() for text in legend.get_texts()) == sorted([*NAMES, "band: mean ± 2 SD"])


def test_where_bands_differ_columns_say_theirs(run):
    study = made_up.study(bands=((2, "SD"), (1, "SE")))
    figure = draw(study, run(study))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["Test 1\nband: mean ± 2 SD", "Test 2\nband: mean ± 1 SE", "", ""]
    assert "band: see the column" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_titles(run):
    study = made_up.study()
    figure = draw(study, run(study))
    assert {"first", "second", study.title} <= set(texts(figure))
    assert [axes.get_title() for axes in figure.axes] == ["Test 1", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "training steps"]


def test_rows_share_their_axis_and_show_all_means(run):
    study = made_up.study(bands=((1, "SE"),) * 3)
    figure = draw(study, run(study))
    first, second = figure.axes[:3], figure.axes[3:]
    assert len({axes.get_ylim() for axes in first}) == len({axes.get_ylim() for axes in second}) == 1
    low, high = first[0].get_ylim()
    assert low < made_up.LEVELS["tpr"] < 1 < high


def test_one_seed_has_no_band(run):
    study = made_up.study(seeds=1)
    figure = draw(study, run(study))
    assert [len(axes.collections) for axes in figure.axes] == [0, 0]
    assert "band" not in " ".join(text.get_text() for text in figure.legends[0].get_texts())
    assert any(text.startswith("Lines: one seed, no band.") for text in texts(figure))


def test_equal_seeds_have_a_band_of_no_width(run):
    study = made_up.study()
    figure = draw(study, run(study, values=lambda spec, test: made_up.losses(replace(spec, seed=0), test)))
    for axes in figure.axes:
        assert len(axes.collections) == 3
        for band, line in zip(axes.collections, axes.lines, strict=False):
            edges = np.asarray(band.get_paths()[0].vertices)[:, 1]
            assert np.isfinite(edges).all()
            np.testing.assert_allclose([edges.min(), edges.max()], [min(line.get_ydata()), max(line.get_ydata())])


def test_seeds_that_are_missing_are_told(run):
    study = made_up.study()
    figure = draw(study, run(study, lambda spec: spec.seed < 2 or spec.model == "tpr"))
    assert any("mean over 2 to 3 seeds" in text for text in texts(figure))


def test_a_contestant_that_is_missing_is_told(run):
    study = made_up.study()
    figure = draw(study, run(study, lambda spec: (spec.model, spec.split) != ("tpr", "scale_pos")))
    assert [len(axes.lines) for axes in figure.axes] == [5, 4]
    assert any("Not run everywhere yet: TPR-Attention." in text for text in texts(figure))


def test_what_is_not_run_says_so(run):
    study = made_up.study()
    figure = draw(study, run(study, lambda spec: spec.split == "square_red"))
    assert [[text.get_text() for text in axes.texts] for axes in figure.axes] == [["not solvable"], ["not run yet"]]
    assert [len(axes.lines) for axes in figure.axes] == [5, 0]
    assert len(figure.legends[0].get_texts()) == 6


def test_losses_near_zero_leave_the_axis_and_floors_there_are_told(run):
    def tiny(spec, condition):
        return made_up.losses(spec, condition) ** (10 if spec.model in ("tpr", "oracle") else 1)

    study = made_up.study()
    figure = draw(study, run(study, values=tiny))
    axes = figure.axes[0]
    assert axes.get_ylim()[0] == 1e-10
    drawn = {LABELS[line.get_label()]: line.get_ydata() for line in axes.lines}
    assert set(drawn) == {"tpr", "classical", "resnet", "linear-floor"}
    assert (np.asarray(drawn["tpr"]) > 0).all()
    assert [text.get_text() for text in axes.texts] == ["solvable"]
    assert any("Losses below 1e-10 are left out of sight" in text for text in texts(figure))


def test_losses_of_exactly_zero_and_not_a_number_are_drawn_without_complaint(run, tmp_path):
    ends = {"tpr": 0.0, "classical": np.nan, "resnet": np.inf}

    def strange(spec, condition):
        found = made_up.losses(spec, condition)
        found[-1] = ends.get(spec.model, 0.0)
        return found

    study = made_up.study(seeds=1)
    assert all(path.stat().st_size > 1000 for path in save(study, run(study, values=strange), tmp_path))


def settings():
    return {key: value for key, value in dict.items(matplotlib.rcParams) if key != "backend"}


def test_pictures_are_the_same_bytes_whatever_the_settings(run, tmp_path):
    study, folders = made_up.study(), [tmp_path / "one", tmp_path / "two"]
    results = run(study)
    for folder, own in zip(folders, ({}, {"axes.facecolor": "black", "font.family": "serif"}), strict=True):
        folder.mkdir()
        with matplotlib.rc_context(own):
            before = settings()
            paths = save(study, results, folder)
            assert settings() == before
        assert [path.name for path in paths] == ["made-up.png", "made-up.svg", "made-up.pdf"]
    for path in paths:
        data = path.read_bytes()
        assert data == (folders[0] / path.name).read_bytes()
        assert not [word for word in (b"CreationDate", b"dc:date", b"Software") if word in data]
    with Image.open(folders[0] / "made-up.png") as image:
        assert round(image.info["dpi"][0]) == 150


@pytest.mark.parametrize("name", STUDIES)
def test_nothing_overlaps_in_the_figures_of_the_paper(name, run):
    study = paper_study(name, Setup(seeds=2, steps=made_up.STEPS[-1]))
    figure = draw(study, run(study))
    renderer = FigureCanvasAgg(figure).get_renderer()
    outer = [text.get_window_extent(renderer) for text in figure.texts if text.get_text()]
    parts = [*outer, *(legend.get_window_extent(renderer) for legend in figure.legends)]
    panels = [axes.get_tightbbox(renderer) for axes in figure.axes]
    for place, part in enumerate(parts):
        assert figure.bbox.x0 <= part.x0
        assert part.x1 <= figure.bbox.x1
        assert not [other for other in (*parts[:place], *panels) if part.overlaps(other)]
    sizes = [text.get_fontsize() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(sizes) >= 8


def test_a_dollar_is_no_formula(run, tmp_path):
    study = replace(made_up.study(models=("tpr", "a$\\no$c")), title="$\\frac$")
    assert len(save(study, run(study), tmp_path)) == 3


def test_a_floor_is_the_mean_of_the_seeds_that_are_stored(run):
    study = made_up.study()
    figure = draw(study, run(study, lambda spec: spec.seed < 2 or spec.model != "oracle"))
    (height,) = {line.get_ydata()[0] for line in figure.axes[0].lines if line.get_label() == "best guess"}
    assert height == pytest.approx(made_up.LEVELS["oracle"] * 1.5)


def test_nothing_of_the_report_needs_torch():
    modules = ["style", "lines", "figures", "interactive", "page", "markdown", "latex"]
    code = f"""
import sys
for name in {modules}: __import__(f"tpr_attention.report.{{name}}")
print({{"torch", "matplotlib.pyplot"}} & set(sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def luminance(colour):
    channels = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_looks_are_distinct_without_colour_and_visible_on_white():
    looks = styles([*made_up.LEVELS, "new", "other"])
    assert len({look.dashes for look in looks.values()}) == len(looks)
    assert min(1.05 / (luminance(look.colour) + 0.05) for look in looks.values()) >= 3
    assert looks["new"].words == "new"
    assert looks["tpr"] == styles(["tpr"])["tpr"]
