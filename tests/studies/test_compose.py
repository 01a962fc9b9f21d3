"""What the report says of stores whose contents are known."""

import csv

import numpy as np
import polars as pl
import pytest

from tests.studies.stored import (
    CONDITIONS,
    NAMES,
    is_broken,
    loss,
    plans_of,
    rows,
    save,
    sections,
    summary,
    texts,
)
from tpr_attention.report.document import Document
from tpr_attention.report.drawings import Curves
from tpr_attention.report.html import page
from tpr_attention.report.markdown import markdown
from tpr_attention.report.write import write_report
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose, infer_setup
from tpr_attention.studies.contestants import CONTESTANTS, PAPER
from tpr_attention.studies.paper.claims import CLAIMS
from tpr_attention.studies.paper.figures import FIGURES, MAIN, figure
from tpr_attention.studies.paper.readings import READINGS
from tpr_attention.studies.rate_search import GRID
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.spec import Component, RunSpec

SETUP = Setup(seeds=3, steps=10)


@pytest.fixture(scope="module")
def composed(reproduced):
    """The report of all figures, and its results."""
    return compose(reproduced, SETUP)


@pytest.fixture
def reported(composed):
    """Its sections by title."""
    return {section.title: section for section in composed[0].sections}


def test_failures_come_first(reported):
    claims = rows(reported, "claims")
    order = ["does not hold", "holds in part", "holds", "not run"]
    places = [order.index(row["verdict"]) for row in claims]
    assert places == sorted(places)
    verdicts = {row["claim"]: row["verdict"] for row in claims}
    assert verdicts["main figure, interactions"] == "does not hold"
    assert verdicts["main figure, no interaction"] == "holds"
    first, *others = texts(reported["The paper's claims"])
    assert first.index("not hold") < first.index("main figure, no interaction")
    assert len(others) == 5


def test_cells_by_hand(reported):
    cells = rows(reported, "cells")
    assert len(cells) == 36
    (row,) = (
        row
        for row in cells
        if (row["interaction"], row["split"], row["test"]) == ("scale_pos", "square_red", "ood_transform")
    )
    assert row["tpr: mean"] == "0.0020"
    assert row["tpr: SE"] == "5.8e-04"  # standard deviation 1e-3 over the root of three
    assert row["resnet: mean"] == "4.0e-04"
    assert (row["classical / tpr [95 %]"], row["resnet / tpr [95 %]"]) == ("4.0 [4.0 to 4.0]", "0.20 [0.20 to 0.20]")
    assert row["best linear fit"] == "0.0010"
    assert (row["best guess"], row["solvable"]) == ("0", "yes")
    assert row["tpr / best linear fit"] == "2.0"
    row = next(row for row in cells if (row["interaction"], row["heads"]) == ("none", "8"))
    assert (row["classical / tpr [95 %]"], row["resnet / tpr [95 %]"]) == ("40 [40 to 40]", "20 [20 to 20]")
    assert (row["best linear fit"], row["tpr / best linear fit"]) == ("0", "-")
    assert [row["test"] for row in cells[:3]] == ["ood_reference", "ood_transform", "ood_composition"]


def test_roles_and_actions_by_hand(reported):
    row = next(row for row in rows(reported, "roles") if row["interaction"] == "scale_pos")
    assert (row["model"], row["shape"], row["scale"], row["colour"]) == ("tpr", "0.0010", "0.0020", "0.0030")
    assert "loss" not in row
    row = next(row for row in rows(reported, "actions") if row["interaction"] == "scale_pos")
    assert (row["model"], row["shape"]) == ("tpr", "0.0030")
    assert "colour" not in row  # no example has it


def test_sizes_and_origin(reported):
    sizes = rows(reported, "sizes")
    assert {(row["model"], row["parameters"]) for row in sizes} == {(name, "7") for name in PAPER}
    rates = {(row["model"], row["interaction"], row["heads"]): row["learning rate"] for row in sizes}
    assert rates == {
        (name, interaction or "none", str(heads) if CONTESTANTS[name].has_heads else "-"): f"{rate:g}"
        for name in PAPER
        for (interaction, heads), rate in CONTESTANTS[name].rates.items()
    }
    assert {row["what"]: row["which"] for row in rows(reported, "provenance")} == {"commit": "abc"}
    assert texts(reported["Where this comes from"])[0].startswith("153 of 153 stored runs are in this report.")


def test_tables_are_files(composed, tmp_path):
    """Figures are written elsewhere: they take their time."""
    document, results = composed
    sections = [section for section in document.sections if section.title != "Figures"]
    write_report(Document(document.title, sections), tmp_path, losses=results.final_values())
    with (tmp_path / "tables" / "cells.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 36
    losses = pl.read_parquet(tmp_path / "tables" / "losses.parquet")
    assert set(losses["step"]) == {10}
    whole = losses.filter(pl.col("group").is_null())
    assert len(whole) == 153 * len(CONDITIONS) * len(NAMES["metrics"])
    assert len(losses) == len(pl.read_csv(tmp_path / "tables" / "losses.csv"))
    assert r"\begin{tabular}" in (tmp_path / "tables" / "cells.tex").read_text()
    assert {block.name for block in document.drawings} == {*FIGURES}


def test_runs_that_diverged_are_counted_and_not_averaged(written):
    specs = plans_of(["main-interacting"], SETUP)
    wanted = ("resnet", "scale_pos", 1)
    (lost,) = (spec for spec in specs if (spec.model.name, spec.task.options["interaction"], spec.seed) == wanted)
    save(written, (spec for spec in specs if spec != lost))
    short = curve([Point("", 0, name, None, (1.0,) * 7) for name in CONDITIONS], NAMES["metrics"])
    origin = {"parameters": 7, "commit": "abc", "diverged": {"step": 3, "tensor": "loss"}}
    written.save(lost, short, {"w": np.zeros(1)}, origin, NAMES)
    found = sections(written, SETUP)
    cells = [row for row in rows(found, "cells") if row["interaction"] == "scale_pos"]
    assert cells
    for row in cells:
        assert row["resnet: mean"].endswith(" (1 diverged)")
        assert "inf" not in row["resnet: mean"]
        assert "diverged" not in row["tpr: mean"]
    drawn = found["Figures"].blocks[0]
    assert (drawn.name, isinstance(drawn, Curves)) == ("main-interacting", True)
    assert "Left out: 1 run that diverged." in drawn.notes


def test_readings_are_judged_apart(store):
    for reading in ("default", "low-rate", "matched", "mixing"):
        specs = [spec for name in MAIN for spec in figure(name, SETUP, reading).specs]
        better = (lambda spec, _: 1.0 if spec.model.name == "tpr" else 0.1) if reading == "low-rate" else loss
        save(store, specs, better)
    found = {row["reading"]: row for row in rows(sections(store, SETUP), "readings")}
    assert set(found) == {"default", "low-rate", "matched", "mixing"}
    assert found["default"]["main figure, no interaction"] == "holds"
    assert found["low-rate"]["main figure, no interaction"] == "does not hold"
    assert found["matched"]["main figure, no interaction"] == "holds"
    assert found["matched"]["what is different"] == READINGS["matched"].title
    assert found["default"]["substitution is learned"] == "does not hold"
    assert found["mixing"]["main figure, no interaction"] == "unchanged"
    assert found["mixing"]["main figure, interactions"] == "does not hold"


def test_a_reading_that_changes_nothing_is_not_counted(store):
    """Where all runs have 300 steps, the reading with 300 steps is the default one."""
    setup = Setup(seeds=2, steps=300)
    save(store, plans_of(MAIN, setup))
    save(store, (spec for name in MAIN for spec in figure(name, setup, "steps-1000").specs))
    document, _ = compose(store, setup)
    assert "of 1 other reading that was run" in summary(document)
    found = {section.title: section for section in document.sections}
    assert [row["reading"] for row in rows(found, "readings")] == ["default", "steps-1000"]


def test_search_tells_the_best_rate(store):
    save(store, plans_of(["search"], SETUP), lambda spec, _: 1e-3 if spec.training.learning_rate == 0.03 else 1e-2)
    found = rows(sections(store, SETUP), "search")
    assert len(found) == 12
    assert {row["best"] for row in found} == {"0.03"}
    assert {row["0.03"] for row in found} == {"0.0010"}
    assert {row["is the one used"] for row in found} == {"yes", "no"}
    assert [f"{rate:g}" for rate in GRID] == [key for key in found[0] if key in {f"{rate:g}" for rate in GRID}]


def test_an_empty_store_has_a_report(store, tmp_path):
    document, results = compose(store, infer_setup(store))
    page = write_report(document, tmp_path / "report", losses=results.final_values())
    assert "figures is complete yet" in page.read_text()
    assert "No part of the paper's figures is complete yet" in (tmp_path / "report" / "report.md").read_text()


@pytest.mark.parametrize(
    ("kept", "judged"),
    [
        (lambda spec: spec.model.name == "tpr", 0),
        (lambda spec: spec.seed == 0, 0),
        (lambda spec: spec.model.name in PAPER, 2),
        (lambda spec: spec.task.options["interaction"] is None, 1),
        (lambda spec: (spec.model.name, spec.seed) != ("resnet", 1), 0),
    ],
    ids=["one model", "one seed", "no floors", "no interaction", "one run is missing"],
)
def test_what_is_not_finished_has_a_report(store, kept, judged):
    save(store, filter(kept, plans_of(MAIN, SETUP)))
    document = compose(store, SETUP)[0]
    text = markdown(document)
    assert not is_broken(text)
    assert "main-noninteracting.png" in text
    assert ("is complete yet" in text) == (judged == 0)
    verdicts = [row["verdict"] for row in rows({section.title: section for section in document.sections}, "claims")]
    assert verdicts.count("not run") == len(CLAIMS) - judged


@pytest.mark.parametrize("setup", [Setup(seeds=1, steps=10), SETUP], ids=["one seed", "seeds that are all equal"])
def test_what_has_no_spread_has_numbers(store, setup):
    save(store, plans_of(FIGURES, setup), lambda spec, condition: loss(spec.with_seed(0), condition))
    document, _ = compose(store, setup)
    assert not is_broken(markdown(document))
    verdicts = [row["verdict"] for row in rows({section.title: section for section in document.sections}, "claims")]
    assert "not run" not in verdicts
    assert f"with {setup.seeds} seed{'' if setup.seeds == 1 else 's'} and 10 steps" in summary(document)


def test_runs_of_users_are_shown_beside(store):
    known = RunSpec.of({"steps": 10, "model": "linear"})
    unknown = RunSpec(known.task, Component("<b>mine</b>:Net", {"scale": 2.0}), known.training)  # read, not imported
    mine = [spec.with_seed(seed) for spec in (known, unknown) for seed in (0, 1)]
    save(store, [*plans_of(["main-noninteracting"], SETUP), *mine])
    found = sections(store, SETUP)
    drawn = [block for block in found["Other runs"].blocks if isinstance(block, Curves)]
    assert [block.name for block in drawn] == ["user-runs"]
    table = rows(found, "user-runs")
    assert len(table) == 2
    row = next(row for row in table if row["run"] == "linear")
    assert texts(found["Other runs"]) == ["4 runs of 2 kinds, with `steps=10`."]
    assert (row["task"], row["seeds"], row["metric"]) == ("composition", "2", "loss")
    assert {row[condition] for condition in CONDITIONS} == {"0.015 ± 0.0050"}
    assert (row["parameters"], row["seconds"]) == ("7", "2.0")
    others = rows(found, "user-metrics")
    assert {row["metric"] for row in others} == {*NAMES["metrics"]} - {"loss"}
    assert {row["run"] for row in table} == {"linear", "<b>mine</b>:Net, scale=2.0"}
    assert "<b>mine" not in page(compose(store, SETUP)[0], {})


def test_the_setup_is_found_out(store):
    assert infer_setup(store) == Setup()
    save(store, plans_of(["main-interacting", "search"], SETUP))
    assert infer_setup(store) == SETUP
    save(store, [RunSpec.of({"steps": 77, "model": "linear", "seed": seed}) for seed in range(50)])
    assert infer_setup(store) == SETUP


def test_a_further_run_of_a_kind_does_not_change_the_setup(store):
    """A user trains one more seed of what a figure has: the figure stays complete."""
    save(store, plans_of(["main-noninteracting"], SETUP))
    save(store, [RunSpec.of({"steps": 10, "seed": 7})])
    assert infer_setup(store) == SETUP


def test_one_run_that_is_also_of_a_figure_is_found(store):
    save(store, [RunSpec.of({"steps": 10, "seed": 7})])
    assert infer_setup(store) == Setup(seeds=8, steps=10)
