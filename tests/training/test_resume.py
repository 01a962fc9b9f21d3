"""The same bits every time: from any pause, with compact examples, and beside runs that diverge."""

import pytest
import torch

from tpr_attention.training.points import Point
from tpr_attention.training.prepare import prepare
from tpr_attention.training.train import Finished, Pause, train

from ..models import contestants
from . import components
from .runs import LINES, SMALL, check_equal, of_run, own, weights, without_pauses

PLAIN = contestants.__name__


def test_the_same_bits_every_time():
    specs = [SMALL.with_seed(seed) for seed in range(2)]
    torch.manual_seed(1)
    first = list(train(specs))
    torch.manual_seed(2)
    check_equal(first, train(specs))


@pytest.mark.parametrize(
    "spec",
    [
        SMALL,
        SMALL.changed({"model": "classical-roles"}),
        SMALL.changed({"model": f"{PLAIN}:Drops"}),
        SMALL.changed({"model": f"{PLAIN}:Normed"}),
        SMALL.changed({"model": "oracle"}),
        LINES.changed({"optimiser": "sgd", "schedule": "constant"}),
        own("Dropping"),
        own("Branching").changed({"task": f"{components.__name__}:CompactLines"}),
    ],
    ids=lambda spec: f"{spec.model.name.partition(':')[2] or spec.model.name}-{spec.training.optimiser}",
)
def test_a_training_goes_on_from_any_pause(spec, monkeypatch, as_users_run_it):
    """Bitwise, whatever it draws on the way and whatever it keeps in buffers and moments."""
    monkeypatch.setattr("tpr_attention.training.train.PAUSE_SECONDS", 0.0)
    untrained = spec.model.name == "oracle"
    specs = [spec.with_seed(seed) for seed in range(2)]
    events, pauses = [], []
    for event in train(specs):
        events.append(event)
        if isinstance(event, Pause):
            pauses.append((len(events), event.step, {name: tensor.clone() for name, tensor in event.state().items()}))
    assert [step for _, step, _ in pauses] == ([0, 30] if untrained else list(range(31)))
    for place, step, state in pauses[:: 1 if untrained else 7] + pauses[-1:]:
        kept = {name: tensor.clone() for name, tensor in state.items()}
        check_equal(events[place:], train(specs, begin=(step, state)))
        assert all(torch.equal(tensor, kept[name]) for name, tensor in state.items())


@pytest.mark.parametrize("size", [1, 3])
def test_compact_examples_give_the_bits_of_whole_batches(size):
    """Stacked and resumed."""
    tasks = [f"{components.__name__}:{name}" for name in ("CompactLines", "WholeLines")]
    compact, whole = (
        [LINES.changed({"task": task, "task.size": size, "seed": seed, "test_examples": 50}) for seed in range(3)]
        for task in tasks
    )
    events, expected = list(train(compact)), list(train(whole))
    assert [event[1:4] for event in without_pauses(events) if isinstance(event, Point)] == [
        event[1:4] for event in without_pauses(expected) if isinstance(event, Point)
    ]
    for one, other in zip(without_pauses(events), without_pauses(expected), strict=True):
        if isinstance(one, Point):
            assert one.values == other.values
        else:
            assert all(torch.equal(tensor, other.weights[key]) for key, tensor in one.weights.items())
    for event in train(compact):
        if isinstance(event, Pause) and event.step == 8:
            state = {name: tensor.clone() for name, tensor in event.state().items()}
    rest = [event for event in without_pauses(events) if isinstance(event, Finished) or event.step > 8]
    check_equal(rest, train(compact, begin=(8, state)))


def test_compact_tests_in_parts_have_the_metrics_of_the_whole():
    """120 examples in parts of 50, 50 and 20, also for each group."""
    found, expected = (
        list(train([LINES.changed({"task": f"{components.__name__}:{name}", "test_examples": 120})]))
        for name in ("CompactLines", "WholeLines")
    )
    points, wanted = ([event for event in events if isinstance(event, Point)] for events in (found, expected))
    assert {point.group for point in points} == {None, "kind=a", "kind=b", "kind=c"}
    for one, other in zip(points, wanted, strict=True):
        assert one[1:4] == other[1:4]
        assert one.values == pytest.approx(other.values, rel=1e-5)


def test_compact_batches_are_made_when_they_are_needed(monkeypatch):
    spec = LINES.changed({"task": f"{components.__name__}:CompactLines", "steps": 3, "train_examples": 5000})
    made = []
    monkeypatch.setattr(
        components.CompactLines,
        "batch",
        lambda self, examples, dtype, batch=components.CompactLines.batch: (
            made.append(len(examples)) or batch(self, examples, dtype)
        ),
    )
    list(train([spec]))
    assert max(made) == 50
    assert len(made) < 40  # of a hundred batches three were needed, and tests of two parts each


def test_compact_examples_are_not_taken_for_sorted_ones():
    """A model that folds needs examples sorted by group, which compact ones are not."""
    spec = own("FoldingSlope").changed({"task": f"{__name__}:CompactEven"})
    assert prepare(spec).even_group is None
    other = spec.changed({"task": f"{components.__name__}:WholeLines"})
    (found,), (expected,) = (weights(train([one])).values() for one in (spec, other))
    assert torch.equal(found["weight"], expected["weight"])


class CompactEven(components.CompactLines):
    """Could draw even groups, too."""

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.even_group = "kind"


class Explodes(contestants.Swap):
    """Infinite once a gate is large: only a high rate takes it there."""

    def update(self, reference, transform, action):
        return super().update(reference, transform, action) / (self.gate.abs().max() < 3)


@pytest.mark.parametrize("model", [f"{__name__}:Explodes", "tpr", "resnet"])
def test_a_run_that_diverges_stops_alone(model, as_users_run_it):
    """The others are bitwise as if it had lived, and it keeps the last weights that were finite."""
    swap = model.endswith("Explodes")
    rates = [0.001, 5.0 if swap else 1e30, 0.002]
    options = {"scale": 0.01} if swap else {"start_at_copy": False}
    specs = [
        SMALL.changed({"model": model, **options, "seed": seed, "learning_rate": rate})
        for seed, rate in enumerate(rates)
    ]
    tame = [specs[0], specs[1].changed({"learning_rate": 0.001}), specs[2]]
    events, tamed = list(train(specs)), list(train(tame))
    ends = {event.run: event for event in events if isinstance(event, Finished)}
    divergence = ends[specs[1].digest].divergence
    assert divergence is not None
    assert 1 < divergence.step <= 30
    assert divergence.tensor == "output" if swap else divergence.tensor.split()[0] in ("output", "loss", "norm")
    assert all(tensor.isfinite().all() for tensor in ends[specs[1].digest].weights.values())
    late = {event.step for event in events if isinstance(event, Point) and event.run == specs[1].digest}
    assert max(late) < divergence.step
    survivors = [specs[0], specs[2]]
    assert all(ends[spec.digest].divergence is None for spec in survivors)
    for spec in survivors:
        check_equal(of_run(events, spec), of_run(tamed, spec))


class BadAfterThree(components.Lines):
    """The fourth batch of training has a target that is not finite."""

    def draw(self, condition, count, generator, dtype):
        batch = super().draw(condition, count, generator, dtype)
        if count > 160 and condition == "train":
            batch.target[160] = torch.inf
        return batch


class SteepLoss(components.Lines):
    """A loss whose gradient is infinite at some examples."""

    def measure(self, output, batch):
        error = (output - batch.target).square().sum(-1)
        return {"loss": error + (batch.inputs[0][:, 0] - batch.inputs[0][:, 0] * output[:, 0]).mul(0).abs().sqrt()}


def test_divergence_names_the_step_and_the_tensor():
    for task, step, tensor in (
        ("BadAfterThree", 4, "target"),
        ("SteepLoss", 1, "gradient of layers.0.weight"),
    ):
        spec = LINES.changed({"task": f"{__name__}:{task}", "steps": 10})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tpr_attention.training.prepare._try", lambda *_: None)  # which would refuse the second
            (end,) = (event for event in train([spec]) if isinstance(event, Finished))
        assert end.divergence == (step, tensor)


def test_a_group_that_diverges_wholly_ends_early():
    events = list(train([SMALL.changed({"learning_rate": 1e30})]))
    end = events[-1]
    assert end.divergence is not None
    assert end.weights
    assert max(event.step for event in events if isinstance(event, Pause)) < 30
    assert not any(isinstance(event, Point) and event.group for event in events)
