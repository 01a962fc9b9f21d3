"""What the report is about: the runs that are there, and no study of which there is none."""

import re

import numpy as np
import pytest
from msgspec.structs import replace

from tests.studies.shown import check_forms
from tests.studies.stored import CONDITIONS, NAMES, is_broken, plans_of, rows, save, sections, texts
from tpr_attention.report.drawings import Curves
from tpr_attention.report.html import page
from tpr_attention.report.markdown import markdown
from tpr_attention.report.tables import Linked
from tpr_attention.report.write import write_report
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose, infer_setup
from tpr_attention.studies.contestants import TESTS
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.spec import Component, RunSpec, Training

SETUP = Setup(seeds=2, steps=10)
OWN = Component("mine:Task")


def own(seed=0, sources=None, **options):
    """A run of a user's own, which nothing imports."""
    return RunSpec(OWN, Component("mine:Model", options), Training(steps=20), seed, sources or {})


def report(store):
    return compose(store, infer_setup(store))[0]


@pytest.fixture
def mine(store):
    save(store, [own(seed, width=width) for width in (4, 8) for seed in (0, 1)], lambda spec, _: 0.1 * (1 + spec.seed))
    return store


def test_a_report_of_own_runs_is_about_them(mine):
    document = report(mine)
    assert document.title == "Runs of mine:Task"
    assert [section.title for section in document.sections] == ["Results", "Runs", "Where this comes from"]
    text = markdown(document)
    assert not is_broken(text)
    assert not re.search("paper|claim|verdict|reproduc|not run|TPR", text)


def test_it_opens_with_the_lowest_of_each_test(store):
    """Kinds that are alike are named together."""

    def end(spec, condition):
        width = spec.model.options["width"]
        return {"ood_reference": 0.5, "ood_transform": 1 / width}.get(condition, width / 10)

    save(store, [own(seed, width=width) for width in (4, 8) for seed in (0, 1)], end)
    document = report(store)
    (best,) = document.opening
    assert best.shown == "open"
    assert [(row[0], row[1], row[2]) for row in best.texts()] == [
        ("in_distribution", "mine:Model, width=4", "0.40 ± 0"),
        ("ood_reference", "mine:Model, width=4, mine:Model, width=8", "0.50 ± 0"),
        ("ood_transform", "mine:Model, width=8", "0.12 ± 0"),
        ("ood_composition", "mine:Model, width=4", "0.40 ± 0"),
    ]
    assert {(row[3], row[4], row[5]) for row in best.texts()} == {("loss", "2", "mine:Task")}
    check_forms(document.tables)
    text = markdown(document)
    assert text.index("| in_distribution |") < text.index("## Results")


def test_a_kind_with_a_seed_that_diverged_is_lowest_only_where_all_are(store):
    save(store, [own(0, width=width) for width in (4, 8)], lambda spec, _: spec.model.options["width"] / 10)
    short = curve([Point("", 0, name, None, (1.0,) * 7) for name in CONDITIONS], NAMES["metrics"])
    origin = {"parameters": 7, "diverged": {"step": 3, "tensor": "loss"}}
    store.save(own(1, width=4), short, {"w": np.zeros(1)}, origin, NAMES)
    (best,) = report(store).opening
    assert {row[1] for row in best.texts()} == {"mine:Model, width=8"}
    store.save(own(1, width=8), short, {"w": np.zeros(1)}, origin, NAMES)
    (best,) = report(store).opening
    assert {(row[1], row[2]) for row in best.texts()} == {("mine:Model, width=4", "0.40 (1 diverged)")}


def test_its_table_has_every_test_with_what_the_runs_cost(mine):
    found = rows(sections(mine, SETUP), "user-runs")
    assert [row["run"] for row in found] == ["mine:Model, width=4", "mine:Model, width=8"]
    assert {(row["seeds"], row["parameters"], row["seconds"]) for row in found} == {("2", "7", "2.0")}
    assert {found[0][condition] for condition in CONDITIONS} == {"0.15 ± 0.050"}
    assert texts(sections(mine, SETUP)["Results"]) == ["4 runs of 2 kinds, with `steps=20`."]


def test_few_other_metrics_are_not_folded(store):
    names = NAMES | {"metrics": ["cross_entropy", "accuracy"], "conditions": ["near", "far"]}
    points = [Point("", step, name, None, (0.5, 0.75)) for step in (0, 20) for name in ("near", "far")]
    store.save(own(), curve(points, names["metrics"]), {"w": np.zeros(1)}, {}, names)
    (table,) = (table for table in report(store).tables if table.name == "user-metrics")
    assert table.shown == "folded"
    (row,) = rows(sections(store, SETUP), "user-metrics")
    assert (row["metric"], row["near"], row["far"]) == ("accuracy", "0.75", "0.75")
    assert (row["parameters"], row["seconds"]) == ("-", "-")  # this run does not tell


def test_floors_that_are_stored_are_lines_to_compare_with(store):
    """Also under the paper's names of its tests."""
    keys = {"split": "square_pos", "noise": 0.25, "steps": 10}
    save(store, [RunSpec.of({**keys, "model": name}) for name in ("linear", "linear-floor", "oracle")])
    (figure,) = report(store).drawings
    assert isinstance(figure, Curves)
    assert {tuple(panel.floors) for panel in figure.panels} == {("linear-floor", "oracle")}
    assert figure.columns == ["in_distribution", *TESTS.values()]
    assert {"best linear fit", "best guess"} <= set(figure.labels.values())
    assert len(rows(sections(store, SETUP), "user-runs")) == 3


def test_equal_keys_of_other_code_are_told_apart(store):
    versions = [{"mine:Model": "1a2b3c4d5e6f", "mine:Task": "777777777777"}, {"mine:Model": "aaaaaa000000"}]
    save(store, [own(seed, sources, width=4) for sources in versions for seed in (0, 1)])
    save(store, [own(0, versions[1], width=8)])
    named = {row["run"] for row in rows(sections(store, SETUP), "user-runs")}
    assert named == {
        "mine:Model, width=4 (source 1a2b3c, 777777)",
        "mine:Model, width=4 (source aaaaaa, unknown)",
        "mine:Model, width=8",
    }


def test_a_task_that_has_other_tests_now_has_a_row_of_its_own(store):
    save(store, [own(0, {"mine:Task": "1a2b3c4d5e6f"})])
    names = NAMES | {"conditions": ["new"]}
    points = curve([Point("", 20, "new", None, (0.5,) * 7)], names["metrics"])
    store.save(own(0, {"mine:Task": "aaaaaa000000"}), points, {"w": np.zeros(1)}, {}, names)
    (figure,) = report(store).drawings
    assert figure.rows == ["mine:Task (source 1a2b3c)", "mine:Task (source aaaaaa)"]


def test_many_tasks_have_a_short_title(store):
    save(store, [replace(own(), task=Component(f"mine:T{place}")) for place in range(5)])
    assert report(store).title == "Runs of mine:T0, mine:T1, mine:T2 and 2 other tasks"


@pytest.mark.parametrize("plan", ["depth", "scaling", "beyond"])
def test_a_report_of_one_study_past_the_paper_is_about_it(store, plan):
    save(store, plans_of([plan], Setup(seeds=1, steps=10)))
    document = report(store)
    assert document.title.startswith("TPR-Attention, ")
    assert not {"The paper's claims", "All cells", "Decisions"} & {section.title for section in document.sections}
    assert f"`tpr-attention reproduce --studies {plan}`" in texts(document.sections[-1])[-1]


def test_own_runs_beside_a_study_are_a_section(mine):
    save(mine, plans_of(["main-noninteracting"], SETUP))
    titles = [section.title for section in compose(mine, SETUP)[0].sections]
    assert {"The paper's claims", "Other runs", "Runs"} <= set(titles)


def links(document):
    """The runs that cells of tables lead to; those of the first screen's map lead to sections."""
    cells = [cell for table in document.tables if not table.is_map for row in table.rows for cell in row]
    return [cell.place for cell in cells if isinstance(cell, Linked)]


def test_numbers_lead_to_digests(store):
    save(store, [*plans_of(["main-interacting", "search", "depth", "beyond"], SETUP), own()])
    document = compose(store, SETUP)[0]
    (runs,) = (table for table in document.tables if table.name == "runs")
    assert set(links(document)) <= set(runs.row_names)
    assert len(set(runs.row_names)) == len(runs.row_names)
    digests = [digest for row in runs.rows for digest in re.findall("`(.*?)`", row[-1])]
    assert sorted(digests) == sorted(store)
    text = page(document, {drawing.name: b"" for drawing in document.drawings})
    assert len(re.findall('<a href="#run-', text)) == len(links(document)) > 100
    assert set(re.findall('href="#(run-.*?)"', text)) <= set(re.findall('id="(run-.*?)"', text))


def test_links_are_small(store):
    save(store, plans_of(["main-noninteracting", "main-interacting"], Setup(seeds=1, steps=10)))
    document = compose(store, Setup(seeds=1, steps=10))[0]
    text = page(document, {drawing.name: b"" for drawing in document.drawings})
    assert sum(map(len, re.findall(r'<a href="#run-\w+">|</a>| id="run-\w+"', text))) < 20_000


def test_what_cannot_be_read_is_left_out_and_named(written, tmp_path):
    save(written, [own(seed, width=width) for width in (4, 8) for seed in (0, 1)])
    lost = own(0, width=4).digest
    (written.path / lost / "curve.parquet").write_bytes(b"torn")
    document, results = compose(written, infer_setup(written))
    assert lost not in results.specs
    said = texts(document.sections[-1])
    assert said[0] == "3 of 3 stored runs are in this report."
    assert said[1].startswith("Left out, because they cannot be read:")
    assert lost in said[1]
    write_report(document, tmp_path / "report", losses=results.final_values())
