"""Each figure has the runs and the layout of the paper's."""

from collections import Counter

import pytest

from tpr_attention.experiments.beyond import BEYOND, NEW
from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS, RATES
from tpr_attention.experiments.growth import GROWTH, SIZES
from tpr_attention.experiments.layout import Band, Setup
from tpr_attention.experiments.prepare import check
from tpr_attention.experiments.readings import READINGS
from tpr_attention.experiments.search import GRID, SEEDS, best_rate, search
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.studies import PLANS, STUDIES, is_planned, specs_of, study

LAYOUTS = {
    "main-noninteracting": (1, 3, {None}, {4}),
    "main-interacting": (2, 3, {"scale_pos", "shape_col"}, {8}),
    "noninteracting": (3, 6, {None}, {4, 8}),
    "numerical": (3, 3, {"scale_pos"}, {8}),
    "categorical": (3, 3, {"shape_col"}, {8}),
}


@pytest.mark.parametrize("name", STUDIES)
def test_layout(name):
    rows, columns, interactions, heads = LAYOUTS[name]
    found = study(name)
    assert len({panel.row for panel in found.panels}) == rows
    assert len({panel.column for panel in found.panels}) == columns
    assert len(found.panels) == rows * columns
    assert {panel.interaction for panel in found.panels} == interactions
    assert {panel.heads for panel in found.panels} == heads
    for panel in found.panels:
        assert [curve.label for curve in panel.curves] == [*CONTESTANTS]
        assert [curve.label for curve in panel.floors] == [*FLOORS]
        for curve in (*panel.curves, *panel.floors):
            assert [spec.seed for spec in curve.specs] == [0, 1, 2, 3, 4]
            assert {(spec.split, spec.interaction) for spec in curve.specs} == {(panel.split, panel.interaction)}
            assert {spec.options.get("num_heads", panel.heads) for spec in curve.specs} <= {panel.heads}


def test_bands_are_those_of_the_captions():
    bands = {(panel.interaction is None, panel.heads): panel.band for name in STUDIES for panel in study(name).panels}
    assert bands == {(True, 4): Band(2, "SD"), (True, 8): Band(2, "SE"), (False, 8): Band(1, "SE")}


def test_runs_are_shared_between_figures():
    everything = specs_of(STUDIES, Setup())
    assert Counter(spec.model for spec in everything) == {
        "tpr": 60,
        "classical": 60,
        "resnet": 45,
        "linear-floor": 45,
        "oracle": 45,
    }
    assert len({spec.digest for spec in everything}) == len(everything) == 255
    assert set(study("main-interacting").specs) <= set(everything)


def test_seeds_and_steps_are_given():
    specs = specs_of(["main-noninteracting"], Setup(seeds=2, steps=7))
    assert {spec.seed for spec in specs} == {0, 1}
    assert {spec.steps for spec in specs} == {7}


@pytest.mark.parametrize("name", [name for name in READINGS if name != "ours"])
def test_a_reading_changes_something_and_only_that(name):
    ours, other = (
        specs_of(["main-noninteracting", "main-interacting"], Setup(seeds=1, reading=reading))
        for reading in ("ours", name)
    )
    reading = READINGS[name]
    changed = {*reading.task, *reading.training}
    changed |= {"model"} if reading.models else set()
    changed |= {"options"} if reading.options or reading.with_heads else set()
    differences = set()
    for one, two in zip(ours, other, strict=True):
        different = {key for key in RunSpec.__dataclass_fields__ if getattr(one, key) != getattr(two, key)}
        assert different <= changed
        differences |= different
    assert differences == changed
    assert reading.decision


def test_readings_contain_our_own():
    assert set(specs_of(["main-noninteracting"], Setup())) <= set(PLANS["readings"](Setup()))


def test_search_is_the_same_for_all_and_apart_from_the_studies():
    found = search(50)
    assert set(found) == set(RATES)
    for rates in found.values():
        assert tuple(rates) == GRID
        for rate, specs in rates.items():
            assert [(spec.seed, spec.learning_rate, spec.steps) for spec in specs] == [
                (seed, rate, 50) for seed in SEEDS
            ]
    assert not {spec.digest for spec in PLANS["search"](Setup())} & {spec.digest for spec in specs_of(STUDIES, Setup())}
    assert set(RATES.values()) <= set(GRID)


def test_the_best_rate_has_the_lowest_order_of_magnitude():
    rates = search(50)["tpr", None, 4]
    losses = dict(
        zip(
            GRID,
            [(1e-3,) * 3, (1e-2, 1e-9, 1e-2), (1e-4, 1e-4, 1e-3), (float("nan"), 0.0, 0.0), (1.0,) * 3],
            strict=True,
        )
    )
    assert best_rate(rates, lambda spec: losses[spec.learning_rate][spec.seed - 1000]) == 0.003


def test_rounding_does_not_decide():
    rates = search(50)["tpr", None, 4]
    assert best_rate(rates, lambda spec: 1e-11 * spec.learning_rate) == GRID[0]


def test_matched_baselines_have_about_as_many_parameters():
    """Heads of width one still have an eighth more with 6 roles and 8 heads: classical cannot come nearer."""
    for name in ("main-noninteracting", "main-interacting"):
        for panel in study(name, Setup(seeds=1, steps=1, reading="matched")).panels[::3]:
            ours, classical, resnet = (check(curve.specs[0]) for curve in panel.curves)
            assert classical == pytest.approx(ours, rel=0.25)
            assert resnet == pytest.approx(ours, rel=0.15)


def test_runs_of_plans_are_known_whatever_their_seeds_and_steps():
    for steps in (123, 12_345):
        assert all(map(is_planned, specs_of(PLANS, Setup(seeds=7, steps=steps))))


def test_past_the_paper_every_cell_has_the_same_contestants():
    panels = [panel for make in BEYOND.values() for panel in make(Setup()).panels]
    assert len({(panel.interaction, panel.split, panel.condition) for panel in panels}) == len(panels) == 27
    for label in NEW:
        specs = {spec for panel in panels for curve in panel.curves if curve.label == label for spec in curve.specs}
        assert {(spec.model, spec.learning_rate, *spec.options.items()) for spec in specs} == {
            (label, 0.01, ("num_heads", 12))
        }
        assert {spec.seed for spec in specs} == {0, 1, 2, 3, 4}


def test_growing_lines_have_a_spec_for_each_size_and_seed():
    for make in (make for makers in GROWTH.values() for make in makers):
        for panel in make(Setup(seeds=2)).panels:
            for curve in panel.curves:
                assert [spec.seed for spec in curve.specs] == [0, 1] * len(panel.sizes)
            for curve in panel.floors:
                assert [spec.seed for spec in curve.specs] == [0, 1]
    (depth,) = (make(Setup(seeds=1)) for make in GROWTH["depth"])
    for curve in depth.panels[0].curves:
        assert [spec.options.get("num_layers", 1) for spec in curve.specs] == [1, 2, 3, 4]
        assert {spec.learning_rate for spec in curve.specs} == {0.01}
    for make, field in zip(GROWTH["scaling"], SIZES, strict=True):
        panel = make(Setup(seeds=1)).panels[0]
        for curve in panel.curves:
            assert tuple(getattr(spec, field) for spec in curve.specs) == panel.sizes == SIZES[field][1]
            assert {spec.steps for spec in curve.specs} == {2000}
    assert not is_planned(RunSpec(learning_rate=0.017))
