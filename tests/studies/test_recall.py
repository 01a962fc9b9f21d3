"""The recall study: its runs, what its report says of a part of them, and the sizes of states."""

import random
from functools import cache
from unittest import mock

import numpy as np
import pytest
import torch

from tests.studies.stored import Remembered, is_broken, sections, texts
from tpr_attention.report.document import Drawing
from tpr_attention.report.markdown import markdown
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose, infer_setup
from tpr_attention.studies.recall import RECALL
from tpr_attention.studies.recall.published import ONCE
from tpr_attention.studies.recall.state_sizes import state_size
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.prepare import make_task, prepare
from tpr_attention.training.spec import RunSpec

SETUP = Setup(seeds=2)
SPECS = RECALL.specs(SETUP)


@cache
def conditions(name, setting):
    """The tests of a task; those of keys with replacement have numbers of draws of their own."""
    return {
        "recall-capacity": ("in_distribution", *(("draws_x1", "draws_x8", "draws_x20") if setting else ())),
        "recall-compositional": tuple(
            f"{name}{end}" for end in ("", "_x4", "_x16") for name in ("in_distribution", "ood")
        ),
        "recall-hops": tuple(f"hops_{hops}" for hops in (1, 2, 4, 8)),
    }.get(name, ("in_distribution", "ood", "ood_long"))


def save(store, specs, end):
    """Add runs that nobody trained; they end with a loss and an accuracy that are a function of the spec."""
    with mock.patch("os.fsync", return_value=None):
        for spec in specs:
            tests = conditions(spec.task.name, spec.task.options.get("setting") == "replacement")
            names = {"conditions": list(tests), "metrics": ["loss", "accuracy"], "groups": {}, "axes": {}}
            points = [
                Point("", step, test, None, values)
                for test in tests
                for step, values in ((0, (1.0, 0.0)), (spec.training.steps, end(spec)))
            ]
            origin = {"seconds": 2.0, "parameters": 7, "commit": "abc"}
            store.save(spec, curve(points, names["metrics"]), {"w": np.zeros(1)}, origin, names)


def perfect_softmax(spec):
    """Softmax attention is right, others have a loss by seed."""
    is_softmax = "softmax" in spec.model.name or spec.model.options.get("match") == "softmax"
    return (0.0, 1.0) if is_softmax else (0.001 * (1 + spec.seed), 0.95)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    store = Remembered(tmp_path_factory.mktemp("recall") / "store")
    save(store, SPECS, perfect_softmax)
    return store


@pytest.fixture(scope="module")
def document(whole):
    return compose(whole, SETUP)[0]


@pytest.fixture
def found(document):
    """Sections by title."""
    return {section.title: section for section in document.sections}


def test_softmax_comes_first_where_it_is_as_good(found):
    assert texts(found["Recall: how many pairs a memory holds"])[0].startswith(
        "Softmax attention, which keeps every pair, is as good or better at every number of pairs: with 600 pairs its "
        "loss is 0, that of TPR-Attention 0.0015."
    )
    assert texts(found["Recall: keys of two parts in new pairings"])[0].startswith(
        "With a softmax over all pairs, the share of new pairings that are recalled is, at every length, at least 100 %"
    )
    assert texts(found["Recall: kinds of pairs that training lacks (SAR)"])[0].startswith(
        "Softmax attention recalls 100 % of 250 pairs"
    )


def test_the_state_is_said_beside_the_loss(found):
    (said, *_) = texts(found["Recall: how many pairs a memory holds"])
    assert "With 400 pairs and a constant state of 425,984 numbers (2.8 times that of DPFP-3)" in said
    assert "the published DPFP-3 has 0.036" in said


def test_every_table_says_what_contestants_cost(document):
    tables = [table for table in document.tables if table.name.startswith("recall-")]
    assert len(tables) == 7
    for table in tables:
        assert [column.title for column in table.columns][-3:] == ["state", "parameters", "seconds"]
        assert all(cell not in ("", "-") for row in table.texts() for cell in row[-3:])


def test_figures_are_drawn(document):
    drawings = [block for block in document.drawings if block.name.startswith("recall-")]
    assert len(drawings) == 6
    capacity = next(one for one in drawings if one.name == "recall-capacity")
    assert isinstance(capacity, Drawing)
    capacity.draw()
    published = [trace for trace in capacity.plot()["data"] if trace.get("name", "").startswith("published")]
    assert [trace["y"][-1] for trace in published] == [ONCE[name][600] for name in ("softmax", "linear", "DPFP-3")]
    assert {trace["mode"] for trace in published} == {"markers"}


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_was_not_run_counts(whole, seed):
    draw = random.Random(seed)
    kept = [spec for spec in SPECS if draw.random() < draw.choice([0.05, 0.5, 0.95])]
    kinds = {spec.with_seed(0) for spec in kept} if seed % 2 else set()
    kept = [spec for spec in SPECS if spec in kept or spec.with_seed(0) in kinds]
    document, results = compose(whole.part(kept), SETUP)
    assert not is_broken(markdown(document))
    complete = {kind for kind in {one.with_seed(0) for one in SPECS} if {kind, kind.with_seed(1)} <= set(kept)}
    rows = [row for table in document.tables if table.name.startswith("recall-") for row in table.rows]
    assert len(rows) == len(complete)
    assert len(results.specs) == len(kept)


def test_an_empty_store_says_nothing(tmp_path):
    store = Store(tmp_path / "store", create=True)
    assert not any(title.startswith("Recall") for title in sections(store, SETUP))


def test_thin_is_a_part(whole):
    assert set(RECALL.plans["recall-thin"](SETUP)) < set(SPECS)


def test_steps_may_be_fewer():
    assert {spec.training.steps for spec in RECALL.specs(Setup(1, steps=7))} == {1, 7}


def test_the_setup_that_is_found_out_shows_all_runs(whole):
    """Contestants have steps of their own: those of most runs would leave out what is trained longer."""
    _, results = compose(whole, infer_setup(whole))
    assert set(results.specs.values()) == set(SPECS)


def one_of_each_task():
    """A spec for each task and model, the smallest of them."""
    found = {}
    for spec in sorted(SPECS, key=lambda spec: spec.task.options.get("num_pairs", 0)):
        found.setdefault((spec.task.name, spec.model.name, spec.model.options.get("write")), spec)
    return list(found.values())


@pytest.mark.parametrize("spec", one_of_each_task(), ids=lambda spec: f"{spec.task.name} {spec.model.name}")
def test_tests_are_those_of_the_task(spec):
    setting = spec.task.options.get("setting") == "replacement"
    assert set(make_task(spec.task, 0).conditions) <= set(conditions(spec.task.name, setting))


@pytest.mark.parametrize("write", ["sum", "delta", "replace"])
def test_states_have_the_size_that_is_said(write):
    matches = 1 if write == "replace" else 2
    spec = RunSpec.of(
        {"task": "recall-capacity", "num_pairs": 9, "model": "recall-tpr", "model.values": "one-hot", "write": write}
        | {"model.filler_dim": 4, "num_matches": matches, "train_examples": 100, "test_examples": 1}
    )
    run = prepare(spec)
    objects = run.model.objects.pairs(run.task.draw("train", 1, torch.Generator(), torch.float32).inputs[0])
    _, state = run.model.layer.stream(objects)
    assert state.memory.numel() == state_size(spec)


def test_the_same_pairs_kept_by_a_softmax():
    spec = RunSpec.of({"task": "recall-sar", "model": "recall-tpr", "match": "softmax"})
    assert state_size(spec) == 100 * 3 * 32
