"""Sections past the paper, from stores whose contents are known."""

import numpy as np
import pytest

from tests.studies.stored import plans_of, rows, save, texts
from tpr_attention.report.drawings import Curves
from tpr_attention.report.results import Results
from tpr_attention.studies import Setup, beyond, depth
from tpr_attention.studies.beyond import BEYOND, Goal
from tpr_attention.studies.compose import compose, infer_setup
from tpr_attention.studies.depth import DEPTH
from tpr_attention.studies.scaling import SCALING
from tpr_attention.studies.study import SEARCH_SEEDS, Chapter
from tpr_attention.training.spec import RunSpec

SETUP = Setup(seeds=2, steps=10)
ENDS = {"tpr": 1e-3, "resnet": 2e-3, "tpr-second": 1e-4, "tpr-stack": 1e-6, "tpr-laws": 1e-7}
ENDS |= {"linear-floor": 1e-3, "oracle": 0.0}


def end(spec, condition):
    """The cell of red squares in test 3 with the categorical interaction cannot be known."""
    interaction, model = spec.task.options["interaction"], spec.model.name
    unknowable = (interaction, spec.task.options["split"], condition) == ("shape_col", "square_red", "ood_composition")
    if unknowable and model in ("oracle", "linear-floor", "tpr-stack", "tpr-laws"):
        return {"oracle": 0.1, "linear-floor": 0.15, "tpr-stack": 0.105, "tpr-laws": 0.105}[model]
    return ENDS[model] if interaction or model != "linear-floor" else 0.0


def chapter(store, study, end, wanted=lambda spec: True):
    """What is said of a study of which some runs are stored."""
    specs = [spec for spec in study.specs(SETUP) if wanted(spec)]
    save(store, specs, end)
    return study.chapter(Results(store, specs), SETUP)


def section(store, study, end, wanted=lambda spec: True):
    """Its one section."""
    (found,) = chapter(store, study, end, wanted).sections
    return found


def drawn(found):
    return [block for block in found.blocks if isinstance(block, Curves)]


def test_goals_that_are_reached(store):
    found = chapter(store, BEYOND, end)
    (only,) = found.sections
    said, newest = texts(only)[:2]
    assert found.summary == ("Past the paper, `tpr-laws` reaches the goal that was set for it in 27 of 27 cells.",)
    assert newest.startswith("Of 27 cells 26 are solvable. `tpr-laws` reaches the goal in 27, 17 of 17")
    assert "`tpr-stack` reaches the goal in 27, 17 of 17" in said
    assert "is 1,000 times below the best linear fit" in said
    assert "is 10,000 times below the best linear fit" in newest
    assert "Not reached" not in said
    table = rows(only, "beyond")
    assert len(table) == 27
    assert {row[f"{name}: goal met"] for row in table for name in ("tpr-stack", "tpr-laws")} == {"yes"}
    (unsolvable,) = (row for row in table if row["solvable"] == "no")
    assert (unsolvable["interaction"], unsolvable["split"], unsolvable["test"]) == (
        "shape_col",
        "square_red",
        "ood_composition",
    )
    assert (unsolvable["best guess"], unsolvable["tpr-stack"]) == ("0.10", "0.10")
    assert [block.name for block in drawn(only)] == ["beyond-none", "beyond-numerical", "beyond-categorical"]


def test_what_is_carried_is_shown_with_and_without(store):
    def other(spec, condition):
        return end(spec, condition) if spec.model.options.get("carries", True) else 0.02

    table = rows(section(store, BEYOND, other), "carried")
    assert [list(row.values()) for row in table] == [
        ["ood_reference", "1.0e-07", "0.020"],
        ["ood_transform", "1.0e-07", "0.020"],
        ["ood_composition", "0.10", "0.020"],
    ]


def test_what_is_carried_is_shown_where_nothing_else_is_stored(store):
    def carried(spec):
        return spec.model.name == "tpr-laws" and one_task("shape_col", "square_red")(spec)

    found = section(store, BEYOND, end, carried)
    assert found.title == "Past the paper: what inputs carry"
    assert len(rows(found, "carried")) == 3


def one_task(interaction, split):
    return lambda spec: (spec.task.options["interaction"], spec.task.options["split"]) == (interaction, split)


@pytest.mark.parametrize(
    ("interaction", "loss"),
    [
        ("scale_pos", lambda seed: 2e-5),  # the mean is too high
        ("scale_pos", lambda seed: 2e-4 * seed),  # the worst seed, too
        (None, lambda seed: 2e-6),
    ],
)
def test_goals_that_are_missed_are_named(store, interaction, loss):
    def other(spec, condition):
        here = spec.model.name == "tpr-stack" and condition == "ood_transform"
        return loss(spec.seed) if here else end(spec, condition)

    found = section(store, BEYOND, other, one_task(interaction, "scale_pos"))
    (missed,) = (row for row in rows(found, "beyond") if row["tpr-stack: goal met"] == "no")
    assert missed["test"] == "ood_transform"
    assert f"Not reached: interaction {interaction or 'none'}, split scale_pos, test ood_transform (" in texts(found)[0]


def test_far_above_the_best_guess_is_missed(store):
    def other(spec, condition):
        return 0.12 if end(spec, condition) == 0.105 else end(spec, condition)

    table = rows(section(store, BEYOND, other, one_task("shape_col", "square_red")), "beyond")
    (missed,) = (row for row in table if row["tpr-stack: goal met"] == "no")
    assert missed["solvable"] == "no"


def test_a_goal_is_not_met_by_leaving_out_seeds_that_diverged():
    panel = beyond.figures(SETUP)[0].panels[0]
    floors = {"linear-floor": 0.0, "oracle": 0.0}
    assert Goal(panel, np.array([1e-8, 1e-8]), floors).is_met
    assert not Goal(panel, np.array([np.inf, 1e-8]), floors).is_met


def by_layers(spec, condition):
    """The paper's layer is ahead of both until there are three."""
    layers = spec.model.options.get("num_layers", 1)
    kind = spec.model.name.removesuffix("-deep")
    return {"tpr": 1e-3, "classical": 1e-2, "resnet": 1e-2 if layers < 3 else 1e-4}.get(kind, 0.0) * (
        1 + 0.1 * spec.seed
    )


def test_layers_are_told_apart(store):
    found = section(store, DEPTH, by_layers)
    assert (
        "Without interaction, TPR-Attention is ahead of both baselines in 3 of 3 tests with 1, 3 of 3 tests with 2, "
        "0 of 3 tests with 3, 0 of 3 tests with 4 layers: its advantage persists in part." in texts(found)[0]
    )
    table = rows(found, "depth")
    assert len(table) == 3 * 3 * 4
    assert {row["resnet / tpr [95 %]"] for row in table if row["layers"] == "3"} == {"0.10 [0.10 to 0.10]"}
    assert {float(row["classical / tpr [95 %]"].split()[0]) > 1 for row in table if row["layers"] == "3"} == {True}
    assert {row["tpr: parameters"] for row in table} == {"7"}
    assert [row["layers"] for row in table[:4]] == ["1", "1", "1", "2"]
    assert (table[-1]["tpr"], table[-1]["resnet"]) == ("0.0011", "1.1e-04")
    (figure,) = drawn(found)
    axes = figure.draw().axes
    assert (len(axes), axes[0].get_xscale(), axes[-1].get_xlabel()) == (9, "log", "number of layers")
    lines = {line.get_label(): line for line in axes[0].lines}
    assert list(lines["ResNet"].get_xdata()) == [1, 2, 3, 4]
    np.testing.assert_allclose(lines["ResNet"].get_ydata(), [1.05e-2, 1.05e-2, 1.05e-4, 1.05e-4])
    shown = figure.plot()
    assert shown["layout"]["xaxis"]["tickvals"] == [1, 2, 3, 4]
    line = next(trace for trace in shown["data"] if trace.get("name") == "ResNet")
    assert line["x"] == [1, 2, 3, 4]
    np.testing.assert_allclose(line["y"], [1.05e-2, 1.05e-2, 1.05e-4, 1.05e-4])


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (lambda spec: True, " The mean loss of `tpr-laws` is lower than all of these in 36 of 36 cells."),
        (lambda spec: spec.model.name != "tpr-laws" or spec.task.options["interaction"], " in 24 of 24 cells."),
        (lambda spec: spec.model.name != "tpr-laws", " layers: its advantage persists in part."),
    ],
    ids=["all", "with interaction", "without"],
)
def test_the_model_without_layers_is_compared_where_it_is_stored(store, wanted, said):
    assert texts(section(store, DEPTH, by_layers, wanted))[0].endswith(said)


def test_a_search_alone_is_told(store):
    found = section(store, DEPTH, by_layers, lambda spec: spec.seed >= min(SEARCH_SEEDS))
    assert found.title == "Learning rates by number of layers"
    assert len(rows(found, "depth-search")) == 3 * 4


def test_a_part_that_is_run_is_told(store):
    """One size is missing for one seed: the others are there, in the table and in the figure."""
    found = section(store, DEPTH, by_layers, lambda spec: spec.model.options.get("num_layers") != 4 or spec.seed)
    assert {row["layers"] for row in rows(found, "depth")} == {"1", "2", "3"}
    (figure,) = drawn(found)
    assert len(figure.draw().axes) == 9


def by_size(spec, condition):
    """Losses grow with the number of factors; TPR-Attention's are far below."""
    grown = spec.task.options["factors"] / 5 if "factors" in spec.task.options else 1.0
    return {"tpr": 1e-6, "classical": 1e-2, "resnet": 1e-1}.get(spec.model.name, 1e-4) * grown


def test_sizes_are_told_apart(store):
    found = section(store, SCALING, by_size)
    said = texts(found)[0]
    assert "number of factors (5) to the largest (40)" in said
    assert "TPR-Attention's from 1.0e-06 to 8.0e-06, classical attention's from 0.010 to 0.080" in said
    assert "TPR-Attention's is the lowest of the paper's three in 12 of 12 cells" in said
    table = rows(found, "scaling")
    assert len(table) == 3 * (4 + 5 + 4)
    assert {row["best linear fit"] for row in table if row["what grows"] != "noise on the inputs (SD)"} == {"-"}
    assert {row["best linear fit"] for row in table if row["what grows"] == "noise on the inputs (SD)"} == {"1.0e-04"}
    assert {row["the copy"] for row in table} == {"1.0"}
    assert [row["size"] for row in table[:4]] == ["5", "5", "5", "10"]


def test_what_is_not_run_has_no_section(store):
    for study in (BEYOND, DEPTH, SCALING):
        assert study.chapter(Results(store, []), SETUP) == Chapter()


def test_verdicts_name_only_the_sizes_that_are_stored(store):
    some = section(store, SCALING, by_size, lambda spec: spec.task.options["factors"] in (10, 20))
    assert "(10) to the largest (20)" in texts(some)[0]
    one = section(store, DEPTH, by_layers, lambda spec: "num_layers" not in spec.model.options)
    assert "3 of 3 tests with 1 layer." in texts(one)[0]
    assert "advantage" not in texts(one)[0]


def test_one_size_does_not_grow(store):
    said = texts(section(store, SCALING, by_size, lambda spec: spec.task.options["factors"] == 20))[0]
    assert said.startswith(
        "Losses at the number of factors 20 (geometric mean of the tests): TPR-Attention's is 4.0e-06"
    )
    assert "smallest" not in said


def test_equal_losses_are_nobody_s_advantage(store):
    said = texts(section(store, SCALING, lambda spec, condition: 1e-3))[0]
    assert "TPR-Attention's is the lowest of the paper's three in 0 of 12 cells" in said


def test_runs_that_no_section_shows_are_other_runs(store):
    """A deep model is part of a study that has no section yet."""
    spec = RunSpec.of({"model": "tpr-deep", "num_heads": 8, "num_layers": 3, "steps": 10})
    save(store, map(spec.with_seed, (0, 1)), by_layers)
    document, _ = compose(store, infer_setup(store))
    (found,) = (section for section in document.sections if section.title == "Results")
    assert {(row["run"], row["seeds"]) for row in rows(found, "user-runs")} == {
        ("tpr-deep, num_heads=8, num_layers=3", "2")
    }


def test_shorter_runs_of_other_worlds_do_not_decide_the_setup(store):
    setup = Setup(seeds=2, steps=12_000)
    save(store, plans_of(["main-noninteracting"], setup), by_layers)
    save(store, plans_of(["scaling"], setup), by_size)
    assert infer_setup(store) == setup


def test_a_report_of_runs_that_all_diverged(store):
    """Losses that are not finite: nothing is claimed, and nothing breaks."""
    said = texts(section(store, SCALING, lambda spec, _: np.inf if spec.model.name == "tpr" else 1e-3))[0]
    assert "TPR-Attention's is the lowest of the paper's three in 0 of 12 cells" in said


def test_every_depth_has_its_own_model():
    plan = depth.figure(SETUP)
    names = {spec.model.name for series in plan.panels[0].series for spec in series.specs}
    assert names == {"tpr", "tpr-deep", "classical", "classical-deep", "resnet", "resnet-deep"}
