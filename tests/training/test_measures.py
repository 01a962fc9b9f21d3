"""A loss without its metrics, and metrics that are measured at the end only."""

import pytest
import torch

from tpr_attention.tasks.task import FinalMeasure, LossAlone
from tpr_attention.training.points import Point
from tpr_attention.training.prepare import prepare
from tpr_attention.training.train import Finished, train

from . import components
from .runs import LINES, curve, of_run, weights

SMALL = LINES.changed({"steps": 8, "train_examples": 200, "test_examples": 120})
CALLS: list[str] = []


def ours(task="", model="", **changes):
    """A task and a model of this file, by name."""
    parts = {"task": task, "model": model}
    return SMALL.changed({part: f"{__name__}:{name}" for part, name in parts.items() if name} | changes)


class Alone(components.Lines):
    """The same loss by itself; what is called is noted."""

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)

    def loss(self, output, batch):
        CALLS.append("loss")
        return (output - batch.target).square().mean(-1)

    def measure(self, output, batch):
        CALLS.append("measure")
        return super().measure(output, batch)


class OtherLoss(Alone):
    """A loss that is not the first metric, which no task should have: it shows what is trained."""

    def loss(self, output, batch):
        return (output - batch.target).abs().mean(-1)


class MeasuredLoss(components.Lines):
    """The loss of `OtherLoss` as the first metric."""

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)

    def measure(self, output, batch):
        return {"absolute": (output - batch.target).abs().mean(-1), **super().measure(output, batch)}


class Branches(components.Branching):
    """Called one run after the other."""


@pytest.mark.parametrize("model", ["", "Branches"])
def test_a_loss_alone_is_what_steps_ask_for(model, as_users_run_it):
    """Also if models are called one by one; metrics are measured at points only."""
    assert isinstance(Alone(), LossAlone)
    assert not isinstance(components.Lines(), LossAlone)
    specs = [ours("Alone", model, seed=seed) for seed in range(2)]
    expected = [ours("", model, seed=seed) for seed in range(2)]
    CALLS.clear()
    events = list(train(specs))
    assert CALLS.count("loss") == 8
    CALLS.clear()
    list(train([spec.changed({"steps": 9}) for spec in specs]))
    more = CALLS.copy()
    CALLS.clear()
    list(train([spec.changed({"steps": 15}) for spec in specs]))
    assert (more.count("loss"), CALLS.count("loss")) == (9, 15)
    assert CALLS.count("measure") == more.count("measure")  # both have points at 0, 1, 2, 4, 8 and the end
    plain = list(train(expected))
    for spec, other in zip(specs, expected, strict=True):
        found, wanted = (
            [event[1:] for event in of_run(run, one) if isinstance(event, Point)]
            for run, one in ((events, spec), (plain, other))
        )
        assert found == wanted


def test_it_is_the_loss_that_is_trained(as_users_run_it):
    (found,), (expected,), (other,) = (
        weights(train([ours(name)], dtype=torch.float64)).values() for name in ("OtherLoss", "MeasuredLoss", "Alone")
    )
    for key, tensor in expected.items():
        torch.testing.assert_close(found[key], tensor, rtol=1e-9, atol=1e-9)
        assert not torch.allclose(found[key], other[key], rtol=1e-4)
    train_points = [values for (_, _, condition), values in curve([ours("OtherLoss")]).items() if condition == "train"]
    expected_points = [v for (_, _, condition), v in curve([ours("MeasuredLoss")]).items() if condition == "train"]
    assert train_points == [pytest.approx(values, rel=1e-5) for values in expected_points]


class MeasuresMore(components.CompactLines):
    """At the end also the smallest error, by a function that cannot be called for many runs at once."""

    quick_examples = 60

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)

    def measure(self, output, batch):
        CALLS.append(f"quick {len(output)}")
        return super().measure(output, batch)

    def measure_finally(self, output, batch):
        CALLS.append(f"final {len(output)}")
        error = (output - batch.target).abs()
        return {
            **super().measure(output, batch),
            "smallest": error.amin(-1),
            "sure": error.new_tensor(error.tolist()).sum(-1),
        }


def test_more_is_measured_at_the_end_on_more_examples(as_users_run_it):
    """120 test examples in parts of 50: two of them before the end, all three at the end."""
    assert isinstance(MeasuresMore(), FinalMeasure)
    specs = [ours("MeasuresMore", seed=seed) for seed in range(2)]
    plain = [spec.changed({"task": f"{components.__name__}:CompactLines"}) for spec in specs]
    CALLS.clear()
    events = list(train(specs))
    finals = [call for call in CALLS if call.startswith("final")]
    names = {event.run: event.names for event in events if isinstance(event, Finished)}
    found = {event[:3]: event.values for event in events if isinstance(event, Point) and event.group is None}
    whole = curve(plain)
    for spec, one in zip(specs, plain, strict=True):
        assert names[spec.digest]["metrics"] == ["loss", "largest", "smallest", "sure"]
        run = prepare(one)
        for condition in ("near", "far"):
            parts = [run.tests[condition].batch(number) for number in range(2)]
            with torch.no_grad():
                measured = [run.task.measure(run.model(*part.inputs), part) for part in parts]
            means = [float(torch.stack([part[name] for part in measured]).mean()) for name in ("loss", "largest")]
            assert found[spec.digest, 0, condition] == pytest.approx(means, rel=1e-5)
            for step in (1, 2, 4):
                assert len(found[spec.digest, step, condition]) == 2
                assert found[spec.digest, step, condition] != whole[one.digest, step, condition]
            last = found[spec.digest, 8, condition]
            assert len(last) == 4
            assert last[:2] == pytest.approx(whole[one.digest, 8, condition], rel=1e-6)
            assert last[2] < last[1] <= last[3]
    groups = [event for event in events if isinstance(event, Point) and event.group is not None]
    assert groups
    assert {len(point.values) for point in groups} == {4}
    assert {point.step for point in groups} == {8}
    tests = 2 * 2  # conditions and runs
    assert finals[-3 * tests :].count("final 50") == 2 * tests
    assert finals[-3 * tests :].count("final 20") == tests
    assert len(finals) - 3 * tests == 2  # once a run, to know the names


def test_few_examples_are_all_measured_before_the_end():
    spec = ours("MeasuresMore", test_examples=30)
    plain = spec.changed({"task": f"{components.__name__}:CompactLines"})
    found, expected = curve([spec]), curve([plain])
    assert found[spec.digest, 4, "far"] == expected[plain.digest, 4, "far"]
