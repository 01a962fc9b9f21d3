"""The image study: its runs, and what its report says of a part of them."""

import random

import pytest

from tests.studies.stored import Remembered, is_broken
from tpr_attention.report.markdown import markdown
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose, infer_setup
from tpr_attention.studies.images import IMAGES
from tpr_attention.studies.images.contestants import FIRST_SEED
from tpr_attention.studies.images.sections import conditions_of
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.prepare import make_task

SETUP = Setup(seeds=2)
SPECS = IMAGES.specs(SETUP)
METRICS = ("loss", "nll", "sse", "iou", "wrong_pixels", "exact", "factors")


def conditions(spec):
    """The tests of a task."""
    if spec.task.name == "images-reconstruction":
        return ("in_distribution", "ood")
    return tuple(conditions_of(spec.task.options["split"]))


def end(spec, test):
    """Exactly right in nine tenths where nothing is held out, and in eight tenths elsewhere; less with later seeds."""
    share = (0.9 if test == "in_distribution" else 0.8) - 0.1 * (spec.seed - FIRST_SEED)
    return (0.01, 3.0, 1.0, 0.95, 2.0, share, 1.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    store = Remembered(tmp_path_factory.mktemp("images") / "store")
    origin = {"seconds": 2.0, "parameters": 7, "commit": "abc"}
    for spec in SPECS:
        tests, steps = conditions(spec), spec.training.steps
        names = {"conditions": list(tests), "metrics": list(METRICS), "groups": {}, "axes": {}}
        cleaned = [steps + 10] if spec.model.options.get("clean_up") else []
        points = [
            Point("", step, test, None, values)
            for test in tests
            for step, values in [
                (0, (1.0,) * 7),
                (steps, (0.1, 9.0, 2.0, 0.5, 5.0, 0.0, 0.25)),
                *((after, end(spec, test)) for after in cleaned),
            ]
        ]
        store.save(spec, curve(points, METRICS), {}, origin, names)
    return store


def test_tests_are_those_of_the_task():
    for task in {spec.task.name: spec for spec in SPECS}.values():
        assert set(make_task(task.task, 0).conditions) == set(conditions(task))


@pytest.fixture(scope="module")
def document(whole):
    return compose(whole, SETUP)[0]


def test_the_worst_seed_and_the_worst_test_are_said(document):
    said = markdown(document)
    assert "80.0 % of the answers are exactly right in distribution, and 70.0 % in the worst of nine tests" in said
    assert "never showed, both in the worst seed." in said
    main = next(table for table in document.tables if table.name == "images-main")
    assert [row[:2] for row in main.texts()[:2]] == [
        ["square_red", "in distribution"],
        ["square_red", "reference held out"],
    ]
    assert main.texts()[0][3:] == ["80.0 %", "100 %", "2.0", "0.5000", "0.5000", "2"]


def test_contestants_are_compared_before_the_clean_up(document):
    table = next(table for table in document.tables if table.name == "images-others")
    assert len(table.rows) == 13  # with the quick version
    assert {tuple(row[1:6]) for row in table.texts()} == {("0.10", "0.500", "0.500", "25.0 %", "25.0 %")}


def test_the_setup_that_is_found_out_shows_all_runs(whole):
    _, results = compose(whole, infer_setup(whole))
    assert set(results.specs.values()) == set(SPECS)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_was_not_run_counts(whole, seed):
    draw = random.Random(seed)
    kept = [spec for spec in SPECS if draw.random() < draw.choice([0.05, 0.5, 0.95])]
    document, results = compose(whole.part(kept), SETUP)
    assert not is_broken(markdown(document))
    assert len(results.specs) == len(kept)
    counted = [row[-1] for table in document.tables for row in table.rows if table.name == "images-published"]
    assert sum(counted) == sum(spec.model.name == "images-autoencoder" for spec in kept)


def test_steps_may_be_fewer():
    assert {spec.training.steps for spec in IMAGES.specs(Setup(1, steps=7))} == {7}
    assert {spec.seed for spec in SPECS} == {FIRST_SEED, FIRST_SEED + 1}
