"""Numbers that are stored with the documentation are those that its pages show."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.studies.image_runs import CODES, save
from tpr_attention.models.images.parts import COMPOSITIONS, DECODERS, ENCODERS
from tpr_attention.report.markdown import markdown
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose, infer_setup
from tpr_attention.studies.images.contestants import BLOCKS, FIRST_SEED, MAIN, SPLITS, series_of
from tpr_attention.studies.images.goals import goals
from tpr_attention.studies.images.values import (
    ON_UNION,
    after_training,
    by_fillers,
    conditions_of,
    finished,
    finished_of,
)
from tpr_attention.tasks.images.composition import DISTORTIONS

DOCS = Path(__file__).parents[2] / "docs"
STORE = DOCS / "results" / "images"
OWN = Setup(seeds=5, steps=10_000, first_seed=FIRST_SEED)


def table_lines(text):
    return [line for line in text.splitlines() if line.startswith("|")]


@pytest.fixture(scope="module")
def report():
    store = Store(STORE)
    return compose(store, infer_setup(store))


@pytest.fixture(scope="module")
def results(report):
    return report[1]


def test_tables_of_images_are_made_of_stored_numbers(report):
    shown = table_lines((DOCS / "images.md").read_text())
    assert len(shown) > 100
    assert table_lines(markdown(report[0])) == shown


def rows_of(header):
    """The cells of a table of the page on pixels."""
    table = (DOCS / "pixels.md").read_text().split(header)[1].split("\n\n")[0]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def words_of_the_page():
    return " ".join((DOCS / "pixels.md").read_text().split())


def test_the_page_on_pixels_has_stored_numbers_of_contestants(results):
    """Intersection over union after training: in distribution, and in the worst test, over all stored seeds."""
    expected = {}
    for name, series in finished_of(ON_UNION, results, OWN).items():
        iou = {test: after_training(results, series, test, "iou").mean() for test in conditions_of("union")}
        words = series.label.removesuffix(", clean-up") if name == "union" else series.label
        expected[words] = [f"{iou.pop('in_distribution'):.3f}", f"{min(iou.values()):.3f}", str(len(series.specs))]
    found = {", ".join(row[:3]): row[3:] for row in rows_of("| encoder | composition | decoder |")}
    assert found == expected


def test_the_page_on_pixels_has_stored_numbers_of_published_splits(results):
    """Loss and squared error as sums over an image, over three seeds, in distribution and held out."""
    found = {row[0]: row[2:6] for row in rows_of("| split | held out | loss |")}
    published = finished("published", results, OWN)
    assert {len(series.specs) for series in published.values()} == {3}
    assert found == {
        split: [
            f"{results.final(series, test, metric).mean():.2f}"
            for metric in ("nll", "sse")
            for test in ("in_distribution", "ood")
        ]
        for split, series in published.items()
    }


def test_the_page_on_pixels_has_stored_numbers_of_decoders_alone(results):
    """Summed loss in distribution and held out, over three seeds."""
    decoders = finished("decoders", results, OWN)
    assert {len(series.specs) for series in decoders.values()} == {3}
    assert rows_of("| decoder alone |") == [
        [series.label, *(f"{results.final(series, test, 'nll').mean():.0f}" for test in ("in_distribution", "ood"))]
        for series in decoders.values()
    ]


def test_the_page_on_pixels_has_every_goal(results):
    assert rows_of("| goal | wanted |") == [
        [goal.words, f"{goal.wanted:g}", f"{goal.reached:.4g}", " ".join(filter(None, goal.badge[::2]))]
        for goal in goals(results, OWN)
    ]


def test_the_page_on_pixels_tells_how_often_fillers_are_enough(results):
    """In how many trainings the intersection over union is 0.99: in distribution, and in every test."""
    lowest = [
        (known, min(found))
        for split, series in finished("main", results, OWN).items()
        for known, *found in zip(
            *(by_fillers(results, series, test, "iou") for test in conditions_of(split)), strict=True
        )
    ]
    known, every = (sum(values[place] >= 0.99 for values in lowest) for place in (0, 1))
    assert (len(lowest), every) == (20, 4)
    assert f"at least 0.99 in {known} of 20 trainings, and {min(lowest)[0]:.4f} in the lowest" in words_of_the_page()
    assert "In four trainings it is at least 0.99 in every test." in words_of_the_page()


@pytest.fixture(scope="module")
def cells():
    """The main model with many pairs a test, all seeds."""
    tables = [pl.read_csv(path) for path in sorted((DOCS / "results" / "cells").glob("*.csv"))]
    seeds = {spec.seed for spec in series_of({"union": MAIN["union"]}, OWN)["union"].specs}
    assert {table["seed"][0] for table in tables} == seeds
    assert all(set(table["test"]) == set(conditions_of("union")) for table in tables)
    assert {pairs for table in tables for pairs in table["pairs"]} == {10_000}
    return pl.concat(tables)


def test_the_page_on_pixels_has_stored_numbers_of_many_pairs(cells):
    """Exactly right in distribution and in the worst test, and how many answers have a wrong factor."""
    expected = []
    for (seed,), table in cells.group_by("seed", maintain_order=True):
        row = [str(seed)]
        for codes in ("as read", "verified"):
            known = table.filter(pl.col("codes") == codes, pl.col("test") == "in_distribution")["exact"].item()
            of_codes = table.filter(pl.col("codes") == codes)
            wrong = ((1 - of_codes["factors"]) * of_codes["pairs"]).sum()
            row += [f"{100 * known:.2f} %", f"{100 * of_codes['exact'].min():.2f} %", f"{wrong:.0f}"]
        expected.append(row)
    assert rows_of("| seed | exactly right |") == expected
    as_read, verified = (sum(int(row[column]) for row in expected) for column in (3, 6))
    assert f"As read, {as_read} of 500,000 answers have a wrong factor; verified, none has." in words_of_the_page()
    assert verified == 0


def test_the_page_on_pixels_has_stored_numbers_of_the_same_contents(cells):
    """Wrong pixels of held-out answers and of known ones with the same contents, in the mean over seeds."""
    held_out = cells.filter(pl.col("codes") == "as read", pl.col("test") != "in_distribution")
    means = held_out.group_by("test", maintain_order=True).agg(pl.col("wrong_pixels", "wrong_pixels_of_known").mean())
    assert rows_of("| test | wrong pixels |") == [
        [conditions_of("union")[test], f"{new:.4f}", f"{known:.4f}", f"{new / known:.1f}" if known else "-"]
        for test, new, known in means.iter_rows()
    ]
    ratios = (means["wrong_pixels"] / means["wrong_pixels_of_known"]).to_list()
    assert (len(ratios), sum(ratio <= 1.1 for ratio in ratios)) == (9, 5)
    assert "It is met in five of nine tests." in words_of_the_page()


def test_the_page_on_pixels_names_all_parts():
    """Of the study, and of tasks and models."""
    assert {row[0] for row in rows_of("| part of the study |")} == {f"images-{name}" for name in BLOCKS}
    named = {row[0]: re.findall(r"\w+", row[1]) for row in rows_of("| key | values |")}
    assert named["model.encoder"] == [*ENCODERS]
    assert named["model.decoder"] == [*DECODERS]
    assert named["model.composition"] == [*COMPOSITIONS]
    assert named["task.distortion"] == [*DISTORTIONS]
    assert named["task.split"][: len(SPLITS)] == [*SPLITS]


def test_the_decision_on_angles_has_measured_numbers():
    """Its table, and every number that it says of nine and of 39 angles."""
    page = (DOCS / "decisions" / "0033-angles-of-images.md").read_text()
    lines = table_lines((DOCS.parent / "benchmarks" / "results" / "aliasing.md").read_text())
    names, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    measured = [dict(zip(names, row, strict=True)) for row in rows]
    plain = {row["angles"]: row for row in measured if row["canvas"] == "plain"}
    (bent,) = (row for row in measured if row["canvas"] == "bent")
    columns = "frames", "equal to another", "least distance to another angle, in pixels"
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table_lines(page)[2:]]
    assert {row[0].split(",")[0]: row[1:] for row in shown} == {
        angles: [row[name] for name in columns] for angles, row in plain.items()
    }
    nine, ten, most = plain["9"], plain["10"], plain["39"]
    near, small = "at most 2 pixels from another angle", "least distance of the smallest squares"
    words = " ".join(page.split())
    assert f"{most['squares']} of them are squares and {most['ellipses'].split()[0]} small ellipses" in words
    assert f"{most[near]} of the {most['frames']} frames are at most two pixels" in words
    assert f"against {nine[near]} of {nine['frames']} with nine angles" in words
    assert f"within {ten[small]} pixels of another angle, without it they stay {nine[small]} apart" in words
    assert {row["with another shape, scale or place"] for row in measured} == {"0"}
    assert (most["hearts"], bent["equal to another"]) == ("0", "0")


def test_what_is_kept_of_a_store(tmp_path, monkeypatch):
    """All but the weights, of which only codes are kept; and what is kept already stays."""
    first, second = series_of(MAIN, Setup(seeds=2, first_seed=FIRST_SEED))["union"].specs
    store = Store(tmp_path / "store", create=True)
    for number, spec in enumerate((first, second)):
        save(store, spec, {"w": np.ones(3), **CODES} if number else {"w": np.ones(3)})
        monkeypatch.setattr(sys, "argv", ["keep.py", str(store.path), str(tmp_path / "kept")])
        runpy.run_path(str(DOCS / "results" / "keep.py"), run_name="__main__")
        kept = Store(tmp_path / "kept")
        assert len(set(kept)) == number + 1
    for spec in (first, second):
        assert kept.check(spec.digest) == spec
        assert kept.curve(spec.digest).equals(store.curve(spec.digest))
        assert kept.provenance(spec.digest) == store.provenance(spec.digest)
        assert kept.names(spec.digest) == store.names(spec.digest)
    assert kept.weights(first.digest) == {}
    assert kept.weights(second.digest).keys() == CODES.keys()
    tables = {table.name: table for table in compose(kept, Setup(seeds=2))[0].tables}
    assert [row[0].value for row in tables["images-codes"].rows] == [second.seed]
