"""Nothing that was not run counts in any sentence or table: stores of a part of the studies."""

import random
import re
from itertools import groupby

import pytest

from tests.studies.shown import check_forms, check_opening
from tests.studies.stored import Remembered, is_broken, loss, plans_of, rows, save, summary, texts
from tpr_attention.report.document import Drawing, Section, alt_text
from tpr_attention.report.markdown import markdown
from tpr_attention.report.tables import Table
from tpr_attention.studies import STUDIES, Setup
from tpr_attention.studies.compose import compose
from tpr_attention.studies.contestants import FLOORS, PAPER
from tpr_attention.studies.paper.claims import CLAIMS
from tpr_attention.studies.paper.figures import FIGURES, MAIN, figure
from tpr_attention.studies.paper.readings import DEFAULT, READINGS
from tpr_attention.studies.study import SEARCH_SEEDS

SETUP = Setup(seeds=1, steps=10)
COMPOSITION = {name: study for name, study in STUDIES.items() if name not in ("recall", "images")}
"""Studies of the composition task; `test_recall` and `test_images` have their own stores."""
EVERYTHING = [spec for study in COMPOSITION.values() for spec in study.specs(SETUP)]
OTHERS = [name for name in READINGS if name != DEFAULT]


def end(spec, condition):
    """With the low rate of one reading, and with 100 pairs, everything is the other way round."""
    if spec.training.learning_rate == 0.001 or spec.training.train_examples == 100:
        return 1.0 if spec.model.name == "tpr" else 0.1
    return loss(spec, condition)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    store = Remembered(tmp_path_factory.mktemp("whole") / "store")
    save(store, EVERYTHING, end)
    return store


@pytest.fixture
def report(whole):
    """The report of some of the runs."""

    def make(kept):
        document, _ = compose(whole.part(kept), SETUP)
        assert not is_broken(markdown(document))
        check_opening(document)
        check_forms(document.tables)
        return {section.title: section for section in document.sections}, summary(document)

    return make


def reading(name):
    """The runs of a reading that the figures do not have, without floors."""
    runs = dict.fromkeys(spec for main in MAIN for spec in figure(main, SETUP, name).specs)
    return [spec for spec in runs if spec.model.name not in FLOORS and spec not in FIGURE_RUNS]


FIGURE_RUNS = set(plans_of(FIGURES, SETUP))


def counted(pattern, text):
    """The numbers of the one sentence that is like this; none if there is no such sentence."""
    found = [tuple(map(int, numbers)) for numbers in re.findall(pattern, text)]
    assert len(found) <= 1, text
    return found[0] if found else None


READ = r"of (\d+) (other readings? that w)"


def test_figures_without_readings(report):
    """As after `make reproduce`: no reading is counted, since none was run."""
    sections, said = report(plans_of([*FIGURES, "two-heads"], SETUP))
    assert counted(r"Of (\d+) claims of the paper, (\d+) could be judged", said) == (8, 8)
    assert "reading of what" in said
    assert not re.search(READ, said)
    assert "one choice changed" not in said
    (only,) = sections["Other readings of the paper"].blocks
    assert only.text.startswith("Not run yet")
    assert "Past the paper" not in said
    assert "What goes past the paper was not run" in said
    assert {"Past the paper: interacting factors", "Several layers: does the advantage persist?"}.isdisjoint(sections)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["low-rate"], "of 1 other reading that was run, one choice changed at a time, 1 changes a verdict"),
        (["target"], "of 1 other reading that was run, one choice changed at a time, none changes one"),
        (
            ["low-rate", "mixing", "target"],
            "of 3 other readings that were run, one choice changed at a time, 1 changes",
        ),
        (
            ["low-rate", "pairs-100", "pairs-300", "steps-300"],
            "2 change a verdict on the main figures: `low-rate`, `pairs-100`.",
        ),
    ],
)
def test_readings_that_were_run(report, names, told):
    sections, said = report([*FIGURE_RUNS, *(spec for name in names for spec in reading(name))])
    assert told in said
    assert ("`low-rate`" in said) == ("low-rate" in names)
    assert [row["reading"] for row in rows(sections, "readings")] == [
        name for name in READINGS if name in {*names, DEFAULT}
    ]


def test_readings_of_which_a_run_is_missing_are_not_counted(report):
    """Nor are those of which only the figure without interaction is there."""
    runs = {name: reading(name) for name in OTHERS}
    last = {specs[-1] for specs in runs.values()}
    one_less = [spec for specs in runs.values() for spec in specs if spec not in last]
    half = [spec for spec in one_less if spec.task.options["interaction"] is None]
    for kept in (one_less, half):
        sections, said = report([*plans_of(MAIN, SETUP), *kept])
        assert not re.search(READ, said)
        assert sections["Other readings of the paper"].blocks[0].text.startswith("Not run yet")


def test_the_main_figures_only(report):
    sections, said = report(plans_of(MAIN, SETUP))
    assert counted(r"Of (\d+) claims of the paper, (\d+) could be judged", said) == (8, 2)
    verdicts = {row["claim"]: (row["verdict"], row["cells"]) for row in rows(sections, "claims")}
    assert verdicts.pop("main figure, no interaction") == ("holds", "3 of 3")
    assert verdicts.pop("main figure, interactions") == ("does not hold", "0 of 6")
    assert verdicts == {
        "no interaction, everywhere": ("not run", "3 of 18 stored"),
        "numerical interaction, everywhere": ("not run", "3 of 9 stored"),
        "categorical interaction, everywhere": ("not run", "3 of 9 stored"),
        "substitution is learned": ("not run", "3 of 18 stored"),
        "generalises under interaction": ("not run", "6 of 18 stored"),
        "particularly when factors interact": ("not run", "6 of 18 stored"),
    }
    assert "in 3 of 3 cells that are stored, of 18," in said
    assert "in 0 of 6 cells that are stored, of 18," in said
    assert "in 6 of these 6 cells" in said
    assert {row["claim"] for row in rows(sections, "evidence")} == {
        "main figure, no interaction",
        "main figure, interactions",
    }


@pytest.mark.parametrize("kept", [(), plans_of(["search"], SETUP)], ids=["nothing", "only the search"])
def test_nothing_of_the_figures(report, kept):
    sections, said = report(kept)
    assert said.startswith("No claim of the paper can be judged yet: `tpr-attention reproduce` trains what is missing.")
    assert texts(sections["The paper's claims"])[0].startswith("No part of the paper's figures is complete yet")
    assert {row["verdict"] for row in rows(sections, "claims")} == {"not run"}
    assert rows(sections, "cells") == []
    assert sections["Figures"].blocks == []
    count = len(set(kept))
    assert texts(sections["Where this comes from"])[0].startswith(f"{count} of {count} stored runs")


def test_all_studies_have_numbers_of_one_form(report):
    """Every table of the composition task's studies, and pictures that all have texts of their own."""
    sections, said = report(EVERYTHING)
    tables = {block.name for section in sections.values() for block in section.blocks if isinstance(block, Table)}
    assert {"cells", "sizes", "data", "beyond", "laws", "depth", "scaling", "search", "runs"} <= tables
    drawings = [block for section in sections.values() for block in section.blocks if isinstance(block, Drawing)]
    assert len({alt_text(drawing) for drawing in drawings}) == len(drawings) > 10
    assert "Past the paper, `tpr-laws` has the lowest loss" in said


def task_of(spec):
    return spec.task.options.get("split"), spec.task.options.get("interaction")


def test_past_the_paper_in_part(report):
    """One task, without interaction, and another of which one seed of one floor is missing."""
    runs = [spec for spec in plans_of(["beyond"], SETUP) if spec.model.options.get("carries", True)]
    kept = [spec for spec in runs if task_of(spec) == ("square_pos", None)]
    kept += [spec for spec in runs if task_of(spec) == ("square_red", "shape_col")][:-1]
    sections, said = report(kept)
    assert counted(r"Of (\d+) cells that are stored, of 27, (\d+) are solvable. `tpr-laws` reaches", said) == (3, 3)
    assert counted(r"Past the paper, `tpr-laws` reaches .* in (\d+) of (\d+) cells that were run", said)[1] == 3
    assert "with an interaction among them" not in said
    assert {row["split"] for row in rows(sections, "beyond")} == {"square_pos"}


def test_any_part_at_all(report):
    """Kinds of runs are left out at random: every number is that of what is stored, counted here in another way."""
    draw = random.Random(0)
    share = draw.choice([0.02, 0.05, 0.2])
    plans = [name for study in COMPOSITION.values() for name in study.plans if draw.random() > 0.2]
    kept = {spec for spec in plans_of(plans, SETUP) if draw.random() > share}
    sections, said = report(kept)
    stored = {name: {spec for spec in specs if spec in kept} for name, specs in BY_STUDY.items()}
    _check_cells(sections, said, kept)
    _check_readings(said, kept)
    _check_beyond(sections, said, stored["beyond"])
    _check_depth(sections, stored["depth"])
    _check_scaling(sections, stored["scaling"])


BY_STUDY = {name: study.specs(SETUP) for name, study in COMPOSITION.items()}


def complete(specs, kept, key, needed=lambda spec: True):
    """The keys of all specs of which every one that is needed is stored."""
    ordered = sorted((spec for spec in specs if needed(spec)), key=lambda spec: str(key(spec)))
    return {value for value, group in groupby(ordered, key) if kept.issuperset(group)}


def _check_cells(sections, said, kept):
    cells, judged = set(), 0
    for name in FIGURES:
        for panel in figure(name, SETUP).panels:
            if all(spec in kept for series in panel.series for spec in series.specs):
                cells.add(tuple(panel.cell.values()))
    for claim in CLAIMS:
        runs = [spec for name in claim.figures for spec in figure(name, SETUP).specs if spec.model.name in PAPER]
        judged += kept.issuperset(runs)
    table = rows(sections, "cells")
    assert {(row["interaction"], row["split"], row["heads"], row["test"]) for row in table} == cells
    assert counted(r"Of (\d+) claims of the paper, (\d+) could be judged", said) == ((8, judged) if judged else None)
    assert sum(row["verdict"] != "not run" for row in rows(sections, "claims")) == judged
    for sentence, interacts in (("Without interaction", False), ("With interacting factors", True)):
        number = sum((cell[0] != "none") == interacts for cell in cells)
        pattern = rf"{sentence}, .* in (\d+) of (\d+) cells.* baseline in (\d+), and undecided in (\d+);"
        found = counted(pattern, said)
        assert (found is None) == (number == 0)
        assert not found or (found[1], found[0] + found[2] + found[3]) == (number, number)
    floors = [row for row in table if row["best linear fit"] not in ("-", "0") and row["best guess"] != "-"]
    limits = counted(r"in (\d+) of these (\d+) cells a baseline", said)
    assert (limits[1] if limits else 0) <= len(floors)


def _check_readings(said, kept):
    run = [name for name in OTHERS if kept.issuperset(spec for spec in _contestants(name))]
    expected = [str(len(run))] if run and kept.issuperset(_contestants(DEFAULT)) else []
    assert [found[0] for found in re.findall(READ, said)[:1]] == expected


def _contestants(name):
    panels = [panel for main in MAIN for panel in figure(main, SETUP, name).panels]
    return {spec for panel in panels for series in panel.series for spec in series.specs}


def _check_beyond(sections, said, kept):
    tasks = complete(BY_STUDY["beyond"], kept, task_of, lambda spec: spec.model.options.get("carries", True))
    part = "" if len(tasks) == 9 else " that are stored, of 27,"
    assert (counted(rf"Of (\d+) cells{part} (\d+) are solvable. `tpr-laws` reaches", said) or [0])[0] == 3 * len(tasks)
    section = sections.get("Past the paper: every cell")
    table = rows(section, "beyond") if isinstance(section, Section) else []
    assert {(row["split"], row["interaction"]) for row in table} == {(split, other or "none") for split, other in tasks}


def layers_of(spec):
    return spec.task.options["interaction"] or "none", spec.model.options.get("num_layers", 1)


def _is_of_depth(spec):
    """Neither a floor, nor the model that has no layers, nor of the search for rates."""
    return spec.model.name not in (*FLOORS, "tpr-laws") and spec.seed < min(SEARCH_SEEDS)


def _check_depth(sections, kept):
    expected = complete(BY_STUDY["depth"], kept, layers_of, lambda spec: _is_of_depth(spec))
    section = sections.get("Several layers: does the advantage persist?")
    assert (section is None) == (not expected)
    if section:
        assert {(row["interaction"], int(row["layers"])) for row in rows(section, "depth")} == expected
        said = texts(section)[0]
        for interaction in {one for one, _ in expected}:
            words = "Without interaction" if interaction == "none" else f"With the {interaction} interaction"
            (sentence,) = (part for part in said.split(". ") if part.startswith(words))
            told = {int(layers) for layers in re.findall(r"of 3 tests with (\d)", sentence)}
            assert told == {layers for one, layers in expected if one == interaction}


def world_of(spec):
    return tuple(spec.task.options[key] for key in ("factors", "filler_dim", "noise"))


def _check_scaling(sections, kept):
    worlds = complete(BY_STUDY["scaling"], kept, world_of)
    sizes = {
        "number of factors": {f for f, d, n in worlds if (d, n) == (3, 0)},
        "size of fillers": {d for f, d, n in worlds if (f, n) == (5, 0)},
        "noise on the inputs (SD)": {n for f, d, n in worlds if n},
    }
    section = sections.get("Larger and noisier worlds")
    assert (section is None) == (not worlds)
    if section:
        table, said = rows(section, "scaling"), texts(section)[0]
        for words, found in sizes.items():
            assert {float(row["size"]) for row in table if row["what grows"] == words} == found
            ends = f"From the smallest {words} ({min(found):g}) to the largest ({max(found):g})" if found else words
            assert (ends in said) == (len(found) > 1)
        told = [int(number) for number in re.findall(r"lowest of the paper's three in \d+ of (\d+) cells", said)]
        assert told == [3 * len(found) for found in sizes.values() if found]
