"""Models that change once more after training: points before and after, resuming, divergence."""

import pytest
import torch

from tpr_attention.models.contract import Finishes
from tpr_attention.runner.checkpoints import CheckpointInterval, Checkpoints
from tpr_attention.runner.executors.local import _keep_memory
from tpr_attention.runner.store import Store
from tpr_attention.runner.work import Work, train_group
from tpr_attention.training.points import Point
from tpr_attention.training.prepare import prepare
from tpr_attention.training.train import Finished, Pause, train

from . import components
from .runs import LINES, check_equal, curve, of_run, weights, without_pauses

SMALL = LINES.changed({"steps": 8, "train_examples": 200, "test_examples": 120})
CALLS: list[str] = []


def ours(task="", model="", **changes):
    """A task and a model of this file, by name."""
    parts = {"task": task, "model": model}
    return SMALL.changed({part: f"{__name__}:{name}" for part, name in parts.items() if name} | changes)


class Rounds(components.Slope):
    """Adds to its weights a buffer that it draws and the mean of batches that it sees, in three steps and in one."""

    finishing_steps = (3, 1)

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.register_buffer("seen", torch.zeros(width))

    def forward(self, numbers):
        return super().forward(numbers) + self.seen

    def finish(self, stage, batches, generator):
        assert not self.training
        assert (self.seen != 0).any() == stage  # the first stage comes first, and nothing before it
        batches = iter(batches)
        for _ in range(self.finishing_steps[stage]):
            batch = next(batches)
            drawn = torch.rand(self.seen.shape, generator=generator).to(self.seen)
            with torch.no_grad():
                self.seen += batch.inputs[0].mean(0) + drawn
                self.layers[0].bias -= 1
            CALLS.append("finish")
            yield


class BranchingRounds(Rounds):
    """Called one run after the other."""

    def forward(self, numbers):
        output = super().forward(numbers)
        return output if self.layers[0].weight.sum() > 0 else -output


class EvalBranching(Rounds):
    """Can be called for many runs at once in training alone, as a model with codes that it reads."""

    def forward(self, numbers):
        output = super().forward(numbers)
        return output if self.training or float(self.seen.abs().sum()) == 0 else output.round()


class FinishedAlready(Rounds):
    """Has nothing to do after training."""

    finishing_steps = ()

    def finish(self, stage, batches, generator):
        raise AssertionError("should not be asked")


FINISHING = ["Rounds", "BranchingRounds", "EvalBranching"]


@pytest.mark.parametrize("model", FINISHING)
def test_tests_are_measured_before_and_after(model, as_users_run_it):
    spec = ours(model=model)
    assert isinstance(Rounds(2), Finishes)
    events = without_pauses(train([spec]))
    points = [event for event in events if isinstance(event, Point)]
    found = {point[1:4]: point.values for point in points}
    assert len(found) == len(points)  # no point comes twice
    assert {step for step, _, _ in found} == {0, 1, 2, 4, 8, 11, 12}
    assert {step for step, _, group in found if group is not None} == {12}
    assert {condition for step, condition, _ in found if step == 12} == {"near", "far"}
    for condition in ("near", "far"):
        assert len({found[step, condition, None] for step in (8, 11, 12)}) == 3


def test_before_finishing_a_model_is_as_if_it_did_not(as_users_run_it):
    """Its weights are then those that were finished, by its own batches and a generator of its own."""
    spec, plain = ours(model="Rounds"), ours(model="FinishedAlready")
    found, expected = curve([spec]), curve([plain])
    assert {key[1:]: values for key, values in found.items() if key[1] <= 8} == {
        key[1:]: values for key, values in expected.items()
    }
    (after,), (before,) = (weights(train([one])).values() for one in (spec, plain))
    assert torch.equal(after["layers.0.weight"], before["layers.0.weight"])
    torch.testing.assert_close(after["layers.0.bias"], before["layers.0.bias"] - 4)
    assert not before["seen"].any()
    assert (after["seen"] > 4 * 0.4).all()


@pytest.mark.parametrize("model", FINISHING)
def test_weights_that_are_stored_are_those_that_were_measured_last(model, as_users_run_it):
    spec = ours(model=model)
    events = list(train([spec]))
    run = prepare(spec)
    run.model.load_state_dict(weights(events)[spec.digest])
    batch = run.tests["far"].map(lambda tensor: tensor[0])
    with torch.no_grad():
        measured = run.task.measure(run.model.eval()(*batch.inputs), batch)
    (last,) = (event.values for event in events if event[1:4] == (12, "far", None))
    assert last == pytest.approx([float(values.mean()) for values in measured.values()], rel=1e-5)


@pytest.mark.parametrize("model", FINISHING)
def test_together_is_as_alone(model, as_users_run_it):
    specs = [ours(model=model, seed=seed) for seed in range(3)]
    together = list(train(specs))
    for spec in specs:
        alone = list(train([spec]))
        found, expected = weights(together)[spec.digest], weights(alone)[spec.digest]
        for key, tensor in expected.items():
            torch.testing.assert_close(found[key], tensor, rtol=1e-5, atol=1e-6)
        points = [event for event in of_run(together, spec) if isinstance(event, Point)]
        for one, other in zip(points, (event for event in alone if isinstance(event, Point)), strict=True):
            assert one[:4] == other[:4]
            assert one.values == pytest.approx(other.values, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("model", FINISHING)
def test_a_finish_that_is_interrupted_is_done_again_with_the_same_bits(model, as_users_run_it):
    """Pauses within it have the step and the state of the end of training; nothing comes twice."""
    specs = [ours(model=model, seed=seed) for seed in range(2)]
    events, pauses = [], []
    for event in train(specs):
        events.append(event)
        if isinstance(event, Pause):
            pauses.append((len(events), event.step, {name: tensor.clone() for name, tensor in event.state().items()}))
    at_end = [pause for pause in pauses if pause[1] == 8]
    assert len(at_end) == 1 + 2 * 4
    assert max(step for _, step, _ in pauses) == 8
    for place, step, state in (at_end[0], at_end[3], at_end[6], at_end[-1]):
        assert all(torch.equal(tensor, at_end[0][2][name]) for name, tensor in state.items())
        before = [event for event in events[:place] if isinstance(event, Point)]
        rest = list(train(specs, begin=(step, state)))
        check_equal(events[place:], rest)
        again = [*before, *(event for event in rest if isinstance(event, Point))]
        assert again == [event for event in events if isinstance(event, Point)]


class Diverges(Rounds):
    """With a large step it is not finite."""

    def forward(self, numbers):
        return super().forward(numbers) / (self.layers[0].weight.abs().max() < 1e3)


def test_a_run_that_diverged_is_not_finished(as_users_run_it):
    specs = [ours(model="Diverges", seed=seed, learning_rate=rate) for seed, rate in enumerate((0.01, 1e5, 0.02))]
    CALLS.clear()
    events = list(train(specs))
    assert CALLS.count("finish") == 2 * 4
    ends = {event.run: event for event in events if isinstance(event, Finished)}
    assert [ends[spec.digest].divergence is None for spec in specs] == [True, False, True]
    last = [max(event.step for event in of_run(events, spec) if isinstance(event, Point)) for spec in specs]
    assert last[0] == last[2] == 12
    assert last[1] < 8
    assert not ends[specs[1].digest].weights["seen"].any()
    assert ends[specs[0].digest].weights["seen"].all()


def test_a_group_that_diverged_wholly_is_not_finished(as_users_run_it):
    CALLS.clear()
    events = list(train([ours(model="Diverges", learning_rate=1e5)]))
    assert "finish" not in CALLS
    assert events[-1].divergence is not None


def test_a_finish_does_not_write_a_checkpoint_at_every_pause(tmp_path, monkeypatch, as_users_run_it):
    """A group of several runs writes one when they are trained; those of finishing would be the same again."""
    written = []
    write = Checkpoints.write
    monkeypatch.setattr(Checkpoints, "write", lambda self, one: written.append(one.step) or write(self, one))
    specs = tuple(ours(model="Rounds", seed=seed) for seed in range(2))
    list(train_group(Work(0, specs), Store(tmp_path, create=True), CheckpointInterval()))
    assert written == [8]


def test_freed_memory_may_be_kept():
    _keep_memory()
