"""What stored runs answer to the same examples."""

import numpy as np
import pytest
import torch

from tests.runner.specs import CURVE, NAMES, tiny
from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.runner.executors.local import in_this_process
from tpr_attention.runner.inference import PART, answers_of, failures_of
from tpr_attention.runner.run import run
from tpr_attention.runner.store import Store
from tpr_attention.tasks.images.composition import ImageComposition
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import SpecError

RUNS = {"first": tiny(model="linear"), "second": tiny(model="linear", seed=1), "oracle": tiny(model="oracle")}
TEST = "ood_reference"
ROWS = 2 * PART + 50


class CopyOfTheReference(torch.nn.Module):
    """A model of images that learns nothing."""

    def __init__(self, num_actions: int, num_roles: int, side: int, channels: int) -> None:
        super().__init__()

    def forward(self, reference, transform, action):
        """The reference, less sure."""
        return 0.1 + 0.8 * reference


COPY = tiny(task="images-composition", model=f"{__name__}:CopyOfTheReference")
"""Exactly right where both images agree in the factor."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("answers") / "store", create=True)
    list(run(list(RUNS.values()), store, in_this_process))
    return store


def test_each_run_answers_with_its_own_weights(store):
    found = answers_of(store, RUNS, TEST, 4)
    task = make_task(RUNS["first"].task, 0)
    batch = task.draw(TEST, 4, named_generator(0, f"examples/{TEST}"), torch.float32)
    for label, spec in RUNS.items():
        model = build(spec.model.name, task, spec.seed, **spec.model.options)
        model.load_state_dict({name: torch.from_numpy(one) for name, one in store.weights(spec.digest).items()})
        with torch.no_grad():
            output = model.eval()(*batch.inputs)
        expected = {name: float(values.mean()) for name, values in task.measure(output, batch).items()}
        assert found.metrics[label] == pytest.approx(expected)
        assert (found.answers[label] == task.pictures(batch._replace(target=output))["target"].numpy()).all()
    assert found.metrics["first"] != found.metrics["second"]
    assert (found.answers["oracle"] == found.target).all()
    assert set(found.given) == {"reference", "transform"}
    actions = task.group_names["action"]
    assert [words[0] for words in found.examples] == [actions[int(number)] for number in batch.groups["action"]]
    assert (found.test, found.left_out) == (TEST, [])


def test_the_last_test_if_none_is_named(store):
    assert answers_of(store, {"only": RUNS["oracle"]}, None, 1).test == "ood_composition"
    with pytest.raises(SpecError, match="did you mean 'ood_reference'"):
        answers_of(store, RUNS, "ood_refrence", 1)


def test_runs_with_other_weights_are_left_out(store, tmp_path):
    """Of an earlier version, whose model had other parameters."""
    other, spec = Store(tmp_path / "store", create=True), RUNS["first"]
    other.save(spec, store.curve(spec.digest), {"w": np.zeros(1)}, {}, store.names(spec.digest))
    found = answers_of(other, {"old": spec}, TEST, 2)
    assert (found.left_out, found.answers, found.metrics) == (["old"], {}, {})


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """A store with the copy, and one with weights of an earlier version."""
    stores = [Store(tmp_path_factory.mktemp("copies") / name, create=True) for name in ("store", "old")]
    for store, weights in zip(stores, ({}, {"w": np.zeros(1)}), strict=True):
        store.save(COPY, CURVE, weights, {}, NAMES)
    return stores


@pytest.mark.parametrize("most", [3, 90, 10_000])
def test_answers_that_are_not_exact(copies, most):
    """The first of them, over several parts."""
    found = failures_of(copies[0], "copy", COPY, TEST, most, ROWS)
    task = make_task(COPY.task, 0)
    generator, inputs, targets = named_generator(0, f"failures/{TEST}"), [], []
    for count in (PART, PART, 50):
        batch = task.draw(TEST, count, generator, torch.float32)
        inputs.append(batch.inputs[0])
        targets.append(batch.target)
    reference, target = torch.cat(inputs), torch.cat(targets)
    every = (reference != target).flatten(1).any(1).nonzero().flatten()
    wrong = every[:most]
    assert PART < len(every) < ROWS
    assert len(found.examples) == len(wrong)
    pictures = (target[wrong] * 255).byte().permute(0, 2, 3, 1).numpy()
    assert (found.target == pictures).all()
    assert (found.given["reference"] == (reference[wrong] * 255).byte().permute(0, 2, 3, 1).numpy()).all()
    assert ((found.answers["copy"] > 127) == (found.given["reference"] > 127)).all()
    assert found.metrics["copy"]["exact"] == 0
    assert (found.test, found.left_out) == (TEST, [])


def test_no_failures_to_show(copies, monkeypatch):
    """Of weights of an earlier version, and where all is right."""
    store, old = copies
    assert failures_of(old, "copy", COPY, TEST, 3, ROWS) is None
    monkeypatch.setattr(ImageComposition, "measure", lambda task, output, batch: {"exact": torch.ones(len(output))})
    assert failures_of(store, "copy", COPY, TEST, 3, ROWS) is None
