"""What the report says of stores whose contents are known."""

import csv
import re
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tpr_attention.experiments.contestants import CONTESTANTS, RATES
from tpr_attention.experiments.curves import curve
from tpr_attention.experiments.layout import TESTS, Setup
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.readings import READINGS
from tpr_attention.experiments.search import GRID
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.studies import READ_AGAIN, STUDIES, specs_of
from tpr_attention.report.claims import CLAIMS
from tpr_attention.report.compose import compose, gather
from tpr_attention.report.document import Figure, Table, Text
from tpr_attention.report.markdown import markdown
from tpr_attention.report.write import infer_setup, write_report

SETUP = Setup(seeds=3, steps=10)
ENDS = {"tpr": 1e-3, "classical": 4e-3, "resnet": 2e-3, "linear-floor": 5e-4, "oracle": 0.0}


def loss(spec, condition):
    """TPR-Attention is lower without interaction, the ResNet with one."""
    end = ENDS.get(spec.model, 1e-2) * (1 + spec.seed) * (bool(spec.interaction) or spec.model != "linear-floor")
    return end / 10 if (spec.model == "resnet") == bool(spec.interaction) and spec.model in ("tpr", "resnet") else end


def save(store, specs, end=loss):
    roles = {"shape": 0.5, "colour": 0.5}
    for spec in specs:
        points = []
        for condition in ("in_distribution", *TESTS):
            last = end(spec, condition)
            points += [
                Point(spec.digest, 0, condition, (1.0, 1.0)),
                Point(spec.digest, 10, condition, (last / 2, 1.5 * last)),
            ]
            points.append(Point(spec.digest, 10, condition, (last, 2 * last), "shape"))
        origin = {"seconds": 2.0, "parameters": 7, "commit": "abc"}
        store.save(spec, curve(points, roles), {"w": np.zeros(1)}, origin)


def blocks(store, setup=SETUP):
    document = compose(gather(store, setup))
    return {section.title: section.blocks for section in document.sections}


def table(sections, name):
    (found,) = (b for bs in sections.values() for b in bs if isinstance(b, Table) and b.name == name)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_failures_come_first(store):
    save(store, specs_of(STUDIES, SETUP))
    sections = blocks(store)
    claims = table(sections, "claims")
    order = ["does not hold", "holds in part", "holds", "not run"]
    places = [order.index(row["verdict"]) for row in claims]
    assert places == sorted(places)
    assert {row["claim"]: row["verdict"] for row in claims}["main figure, interactions"] == "does not hold"
    assert {row["claim"]: row["verdict"] for row in claims}["main figure, no interaction"] == "holds"
    first = sections["Summary"][0].text
    assert first.index("not hold") < first.index("main figure, no interaction")
    assert len(sections["Summary"]) == 5


def test_cells_by_hand(store):
    save(store, specs_of(STUDIES, SETUP))
    rows = table(blocks(store), "cells")
    assert len(rows) == 36
    row = next(
        row for row in rows if (row["interaction"], row["split"], row["test"]) == ("scale_pos", "square_red", "Test 2")
    )
    assert row["tpr: mean"] == "0.0020"
    assert row["tpr: SE"] == "5.8e-04"  # standard deviation 1e-3 over the root of three
    assert row["resnet: mean"] == "4.0e-04"
    assert (row["better baseline"], row["its loss / tpr's [95 %]"]) == ("resnet", "0.20 [0.20, 0.20]")
    assert row["best linear fit"] == "0.0010"
    assert (row["best guess"], row["solvable"]) == ("0", "yes")
    assert row["tpr / best linear fit"] == "2.0"
    row = next(row for row in rows if (row["interaction"], row["heads"]) == ("none", "8"))
    assert (row["better baseline"], row["its loss / tpr's [95 %]"]) == ("resnet", "20 [20, 20]")
    assert (row["best linear fit"], row["tpr / best linear fit"]) == ("0", "-")
    assert [row["test"] for row in rows[:3]] == ["Test 1", "Test 2", "Test 3"]


def test_roles_and_actions_by_hand(store):
    save(store, specs_of(["main-interacting"], SETUP))
    sections = blocks(store)
    row = table(sections, "roles")[0]
    assert (row["model"], row["shape"], row["colour"]) == ("tpr", "0.0010", "0.0030")
    row = table(sections, "actions")[0]
    assert (row["model"], row["shape"]) == ("tpr", "0.0030")


def test_sizes_and_origin(store):
    save(store, specs_of(["main-interacting"], SETUP))
    sections = blocks(store)
    sizes = table(sections, "sizes")
    assert {(row["model"], row["parameters"]) for row in sizes} == {(label, "7") for label in CONTESTANTS}
    rates = {(row["model"], row["interaction"], row["heads"]): row["learning rate"] for row in sizes}
    assert rates == {
        (label, interaction, "-" if label == "resnet" else "8"): f"{RATES[label, interaction, 8]:g}"
        for label in CONTESTANTS
        for interaction in ("scale_pos", "shape_col")
    }
    assert {row["what"]: row["which"] for row in table(sections, "provenance")} == {"commit": "abc"}
    (counted, *_) = (block.text for block in sections["Where this comes from"] if isinstance(block, Text))
    assert counted.startswith("30 stored runs, 18 of them trainings")


def test_runs_that_diverged_are_counted_and_not_averaged(store):
    specs = specs_of(["main-interacting"], SETUP)
    save(store, specs)
    (lost,) = (spec for spec in specs if (spec.model, spec.interaction, spec.seed) == ("resnet", "scale_pos", 1))
    folder = store.path / lost.digest
    shutil.rmtree(folder)
    conditions = ("in_distribution", *TESTS)
    short = curve([Point("", 0, name, (1.0, 1.0)) for name in conditions], {"shape": 0.5, "colour": 0.5})
    origin = {"parameters": 7, "commit": "abc", "diverged": {"step": 3, "tensor": "loss"}}
    store.save(lost, short, {"w": np.zeros(1)}, origin)
    sections = blocks(store)
    cells = [row for row in table(sections, "cells") if row["interaction"] == "scale_pos"]
    assert cells
    for row in cells:
        assert row["resnet: mean"].endswith(" (1 diverged)")
        assert "inf" not in row["resnet: mean"]
        assert "diverged" not in row["tpr: mean"]
    page = write_report(store, store.path.parent / "report", SETUP)
    assert "Left out: 1 runs that diverged." in page.read_text()


def test_readings_are_judged_apart(store):
    for reading in ("ours", "low-rate", "matched"):
        specs = specs_of(READ_AGAIN, replace(SETUP, reading=reading))
        better = (lambda spec, condition: 1.0 if spec.model == "tpr" else 0.1) if reading == "low-rate" else loss
        save(store, specs, better)
    rows = {row["reading"]: row for row in table(blocks(store), "readings")}
    assert set(rows) >= {"ours", "low-rate", "matched"}
    assert rows["ours"]["main figure, no interaction"] == "holds"
    assert rows["low-rate"]["main figure, no interaction"] == "does not hold"
    assert rows["matched"]["main figure, no interaction"] == "holds"
    assert rows["matched"]["what is different"] == READINGS["matched"].title
    assert rows["ours"]["substitution is learned"] == "does not hold"
    assert rows["mixing"]["main figure, no interaction"] == "unchanged"


def test_search_tells_the_best_rate(store):
    save(store, specs_of(["search"], SETUP), lambda spec, condition: 1e-3 if spec.learning_rate == 0.03 else 1e-2)
    rows = table(blocks(store), "search")
    assert len(rows) == 12
    assert {row["best"] for row in rows} == {"0.03"}
    assert {row["0.03"] for row in rows} == {"0.0010"}
    assert {row["is the one used"] for row in rows} == {"yes", "no"}
    assert [f"{rate:g}" for rate in GRID] == [key for key in rows[0] if key in {f"{rate:g}" for rate in GRID}]


def test_an_empty_store_has_a_report(store, tmp_path):
    page = write_report(store, tmp_path / "report", infer_setup(store))
    assert "No part of the paper&#x27;s figures is complete yet" in page.read_text()
    assert "No part of the paper's figures is complete yet" in (tmp_path / "report" / "report.md").read_text()


@pytest.mark.parametrize(
    ("kept", "judged"),
    [
        (lambda spec: spec.model == "tpr", 0),
        (lambda spec: spec.seed == 0, 0),
        (lambda spec: spec.model in CONTESTANTS, 2),
        (lambda spec: spec.interaction is None, 1),
        (lambda spec: (spec.model, spec.seed) != ("resnet", 1), 0),
    ],
    ids=["one model", "one seed", "no floors", "no interaction", "one run is missing"],
)
def test_what_is_not_finished_has_a_report(store, kept, judged):
    save(store, filter(kept, specs_of(READ_AGAIN, SETUP)))
    text = markdown(compose(gather(store, SETUP)))
    assert "nan" not in re.sub(r"\w*nan\w+|\w+nan\w*", "", text)
    assert "main-noninteracting.png" in text
    assert ("is complete yet" in text) == (judged == 0)
    assert text[: text.index("## Figures")].count("| not run |") == len(CLAIMS) - judged


@pytest.mark.parametrize("setup", [Setup(seeds=1, steps=10), SETUP], ids=["one seed", "seeds that are all equal"])
def test_what_has_no_spread_has_numbers(store, setup):
    save(store, specs_of(STUDIES, setup), lambda spec, condition: loss(replace(spec, seed=0), condition))
    text = markdown(compose(gather(store, setup)))
    assert "| not run |" not in text[: text.index("## Figures")]
    assert not re.search(r"\bnan\b|\binf\b", text, re.IGNORECASE)


def test_runs_of_ones_own_are_shown_beside(store, tmp_path):
    own = [
        replace(RunSpec(steps=10), model=model, seed=seed) for model in ("linear", "<b>mine</b>:Net") for seed in (0, 1)
    ]
    save(store, [*specs_of(["main-noninteracting"], SETUP), *own])
    sections = blocks(store)
    assert [block.study.name for block in sections["Other runs"] if isinstance(block, Figure)] == ["own-runs"]
    rows = table(sections, "own-runs")
    assert len(rows) == 6
    row = next(row for row in rows if row["run"] == "linear, steps=10")
    assert (row["seeds"], row["mean"], row["SE"]) == ("2", "0.015", "0.0050")
    page = write_report(store, tmp_path / "report", SETUP).read_text()
    assert "<b>mine" not in page


def test_tables_are_files(store, tmp_path):
    save(store, specs_of(STUDIES, SETUP))
    write_report(store, tmp_path, SETUP)
    with (tmp_path / "tables" / "cells.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 36
    losses = pl.read_parquet(tmp_path / "tables" / "losses.parquet")
    assert set(losses["step"]) == {10}
    assert len(losses) == len(pl.read_csv(tmp_path / "tables" / "losses.csv")) == 153 * 4 * 2
    assert r"\begin{tabular}" in (tmp_path / "tables" / "cells.tex").read_text()
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".png", ".svg", ".pdf"}


def test_the_setup_is_found_out(store):
    assert infer_setup(store) == Setup()
    save(store, specs_of(["main-interacting", "search"], SETUP))
    assert infer_setup(store) == SETUP
    save(store, [RunSpec(steps=77, model="linear", seed=seed) for seed in range(50)])
    assert infer_setup(store) == SETUP
