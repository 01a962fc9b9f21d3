"""Each figure has the runs and the layout of the paper's."""

from collections import Counter

import pytest

from tests.studies.stored import plans_of
from tpr_attention.report.panels import Band
from tpr_attention.studies import STUDIES, Setup, beyond, depth, scaling
from tpr_attention.studies.compose import is_planned
from tpr_attention.studies.contestants import CONTESTANTS, FLOORS, NEW, PAPER
from tpr_attention.studies.paper.figures import FIGURES, MAIN, figure
from tpr_attention.studies.paper.readings import DEFAULT, READINGS
from tpr_attention.studies.paper.search import search
from tpr_attention.studies.rate_search import GRID, best_rate, score
from tpr_attention.studies.study import SEARCH_SEEDS
from tpr_attention.training.prepare import check
from tpr_attention.training.spec import RunSpec

LAYOUTS = {
    "main-noninteracting": (1, 3, {"none"}, {"4"}),
    "main-interacting": (2, 3, {"scale_pos", "shape_col"}, {"8"}),
    "noninteracting": (3, 6, {"none"}, {"4", "8"}),
    "numerical": (3, 3, {"scale_pos"}, {"8"}),
    "categorical": (3, 3, {"shape_col"}, {"8"}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_layout(name):
    rows, columns, interactions, heads = LAYOUTS[name]
    panels = figure(name, Setup()).panels
    assert len({panel.row for panel in panels}) == rows
    assert len({panel.column for panel in panels}) == columns
    assert len(panels) == rows * columns
    assert {panel.cell["interaction"] for panel in panels} == interactions
    assert {panel.cell["heads"] for panel in panels} == heads
    for panel in panels:
        assert [series.name for series in panel.series] == [*PAPER]
        assert [series.name for series in panel.floors] == [*FLOORS]
        for series in (*panel.series, *panel.floors):
            assert [spec.seed for spec in series.specs] == [0, 1, 2, 3, 4]
            options = [spec.task.options for spec in series.specs]
            assert {(one["split"], one["interaction"] or "none") for one in options} == {
                (panel.cell["split"], panel.cell["interaction"])
            }
            told = {str(spec.model.options.get("num_heads", panel.cell["heads"])) for spec in series.specs}
            assert told == {panel.cell["heads"]}


def test_bands_are_those_of_the_captions():
    panels = [panel for name in FIGURES for panel in figure(name, Setup()).panels]
    bands = {(panel.cell["interaction"] == "none", panel.cell["heads"]): panel.band for panel in panels}
    assert bands == {(True, "4"): Band(2, "SD"), (True, "8"): Band(2, "SE"), (False, "8"): Band(1, "SE")}


def test_runs_are_shared_between_figures():
    everything = plans_of(FIGURES, Setup())
    assert Counter(spec.model.name for spec in everything) == {
        "tpr": 60,
        "classical": 60,
        "resnet": 45,
        "linear-floor": 45,
        "oracle": 45,
    }
    assert len({spec.digest for spec in everything}) == len(everything) == 255
    assert set(figure("main-interacting", Setup()).specs) <= set(everything)


def test_seeds_and_steps_are_given():
    specs = plans_of(["main-noninteracting"], Setup(seeds=2, steps=7))
    assert {spec.seed for spec in specs} == {0, 1}
    assert {spec.training.steps for spec in specs} == {7}


@pytest.mark.parametrize("name", [name for name in READINGS if name != DEFAULT])
def test_a_reading_changes_something_and_only_that(name):
    """Both main figures: what a reading does not name stays as it is, in contestants and in floors."""
    default, other = (
        [spec for main in MAIN for series in figure(main, Setup(seeds=1), kind).series() for spec in series.specs]
        for kind in (DEFAULT, name)
    )
    reading = READINGS[name]
    named = {*reading.changes, *(key for options in reading.options.values() for key in options)}
    differences = set()
    for one, two in zip(default, other, strict=True):
        before, after = one.keys(), two.keys()
        different = {key for key in before | after if before.get(key) != after.get(key)}
        if "model" in different:
            assert after["model"] == reading.models[before["model"]]
            different = {key for key in different if not key.startswith("model.")}
        differences |= different
        if one.model.name in FLOORS:
            assert different <= {key for key in reading.changes if key.startswith("task.")}
    assert differences == named | ({"model"} if reading.models else set())
    assert reading.decision


def test_readings_contain_the_default_one_and_each_needs_runs_of_its_own():
    """A reading without a run of its own would count as run as soon as the figures are."""
    assert set(plans_of(MAIN, Setup())) <= set(plans_of(["readings"], Setup()))
    figures = set(plans_of(FIGURES, Setup(seeds=1)))
    for name in READINGS:
        runs = {
            spec for main in MAIN for panel in figure(main, Setup(seeds=1), name).panels for spec in _trained(panel)
        }
        assert (name == DEFAULT) == (runs <= figures)


def test_readings_of_fewer_steps_have_them_whatever_the_setup():
    """Floors are not trained, and stay as they are."""
    for name, steps in (("steps-300", 300), ("steps-1000", 1_000), ("steps-3000", 3_000)):
        main = [spec for one in MAIN for spec in figure(one, Setup(steps=10), name).specs]
        assert {spec.training.steps for spec in main if spec.model.name not in FLOORS} == {steps}
        assert {spec.training.steps for spec in main if spec.model.name in FLOORS} == {10}


def _trained(panel):
    return [spec for series in panel.series for spec in series.specs]


def test_search_is_the_same_for_all_and_apart_from_the_studies():
    found = search(50).runs
    rates = {(name, *setting): rate for name, one in CONTESTANTS.items() for setting, rate in one.rates.items()}
    assert set(found) == set(rates)
    for runs in found.values():
        assert tuple(runs) == GRID
        for rate, specs in runs.items():
            assert [(spec.seed, spec.training.learning_rate, spec.training.steps) for spec in specs] == [
                (seed, rate, 50) for seed in SEARCH_SEEDS
            ]
    others = [name for study in STUDIES.values() for name in study.plans if not name.endswith("search")]
    assert not set(plans_of(["search"], Setup())) & set(plans_of(others, Setup()))
    assert set(rates.values()) <= set(GRID)


def test_the_best_rate_has_the_lowest_order_of_magnitude():
    rates = search(50).runs["tpr", None, 4]
    losses = dict(
        zip(
            GRID,
            [(1e-3,) * 3, (1e-2, 1e-9, 1e-2), (1e-4, 1e-4, 1e-3), (float("nan"), 0.0, 0.0), (1.0,) * 3],
            strict=True,
        )
    )
    assert best_rate(rates, lambda spec: losses[spec.training.learning_rate][spec.seed - 1000]) == 0.003


def test_a_run_that_diverged_counts_as_ten_orders():
    assert score([1e-4, float("inf")]) == score([1e-4, float("nan")]) == 3.0


def test_rounding_does_not_decide():
    rates = search(50).runs["tpr", None, 4]
    assert best_rate(rates, lambda spec: 1e-11 * spec.training.learning_rate) == GRID[0]


def test_matched_baselines_have_about_as_many_parameters():
    """Heads of width one still have an eighth more with 6 roles and 8 heads: classical cannot come nearer."""
    for name in MAIN:
        for panel in figure(name, Setup(seeds=1, steps=1), "matched").panels[::3]:
            ours, classical, resnet = (check(series.specs[0]) for series in panel.series)
            assert classical == pytest.approx(ours, rel=0.25)
            assert resnet == pytest.approx(ours, rel=0.15)


def test_runs_of_studies_are_known_whatever_their_seeds_and_steps():
    for steps in (123, 12_345):
        for study in STUDIES.values():
            assert all(is_planned(spec, [study]) for spec in study.specs(Setup(seeds=2, steps=steps)))
    assert not is_planned(RunSpec.of({"learning_rate": 0.017}), STUDIES.values())


def test_past_the_paper_every_cell_has_the_same_contestants():
    panels = [panel for plan in beyond.figures(Setup()) for panel in plan.panels]
    assert len({tuple(panel.cell.values()) for panel in panels}) == len(panels) == 27
    for name in NEW:
        specs = {spec for panel in panels for series in panel.series if series.name == name for spec in series.specs}
        assert {(spec.model.name, spec.training.learning_rate, spec.model.options["num_heads"]) for spec in specs} == {
            (name, 0.01, 8 if name == "tpr-laws" else 12)
        }
        assert {spec.seed for spec in specs} == {0, 1, 2, 3, 4}


def test_lines_against_a_size_have_a_spec_for_each_size_and_seed():
    layers = depth.figure(Setup(seeds=2))
    worlds = scaling.figures(Setup(seeds=2))
    for panel in (panel for plan in (layers, *worlds) for panel in plan.panels):
        for series in panel.series:
            assert [spec.seed for spec in series.specs] == [0, 1] * len(panel.sizes)
        for series in panel.floors:
            assert [spec.seed for spec in series.specs] == [0, 1]
    for series in layers.panels[0].series:
        assert [spec.model.options.get("num_layers", 1) for spec in series.specs[::2]] == [1, 2, 3, 4]
        rates = [spec.training.learning_rate for spec in series.specs[::2]]
        assert rates == [*depth.RATES[series.name].values()]
    for plan, (option, growth) in zip(worlds, scaling.GROWTHS.items(), strict=True):
        for series in plan.panels[0].series:
            assert tuple(spec.task.options[option] for spec in series.specs[::2]) == growth.sizes
            assert {spec.training.steps for spec in series.specs} == {2000}
