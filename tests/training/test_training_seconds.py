"""Runs record the processor time of their steps, and that of what comes after training: not that of tests."""

import time

import pytest

from tpr_attention.runner.checkpoints import CheckpointInterval, Checkpoints
from tpr_attention.runner.store import Store
from tpr_attention.runner.work import Work, train_group
from tpr_attention.training.stack import Stack

from .test_finishing import ours

SPECS = tuple(ours(model="Rounds", seed=seed) for seed in (0, 1))
STEP, STAGE = 3.0, 500.0
"""Seconds of a step, and of a stage after training, by the clock of these tests."""


@pytest.fixture
def clock(monkeypatch, as_users_run_it):
    """A processor clock: a step takes `STEP` seconds, a stage after training `STAGE`, and all else an hour."""
    now = [0.0]
    advance, evaluate, finish = Stack.advance, Stack.evaluate, Stack.finish

    def steps(stack, start, end, seconds):
        reached = advance(stack, start, end, seconds)
        now[0] += STEP * (reached - start)
        return reached

    def tests(stack, *arguments, **options):
        now[0] += 3600.0
        return evaluate(stack, *arguments, **options)

    def after(stack, stage):
        now[0] += STAGE
        yield from finish(stack, stage)

    monkeypatch.setattr(time, "process_time", lambda: now[0])
    for name, timed in (("advance", steps), ("evaluate", tests), ("finish", after)):
        monkeypatch.setattr(Stack, name, timed)
    return now


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", create=True)


def recorded(store, name="training_seconds"):
    return [store.provenance(spec.digest).get(name) for spec in SPECS]


def stop_after(pauses, store):
    """Begin the training and stop it, and leave a checkpoint."""
    answers = iter([False] * pauses)
    events = train_group(Work(0, SPECS), store, CheckpointInterval(), lambda: next(answers, True))
    assert "saved at step" in list(events)[-1].reason


def test_steps_alone_count_and_are_shared_by_the_runs_of_a_group(clock, store):
    list(train_group(Work(0, SPECS), store, CheckpointInterval()))
    assert recorded(store) == [8 * STEP / 2] * 2
    assert recorded(store, "finishing_seconds") == [2 * STAGE / 2] * 2
    assert clock[0] > 3600


@pytest.mark.parametrize("pauses", [0, 1, 3, 5, 7])
def test_a_resumed_run_has_the_time_before(clock, store, pauses):
    """Also one that is stopped twice, and while it finishes; steps whose result was lost do not count."""
    stop_after(pauses, store)
    clock[0] += 3600.0
    stop_after(0, store)
    list(train_group(Work(0, SPECS), store, CheckpointInterval()))
    assert recorded(store) == [8 * STEP / 2] * 2
    assert recorded(store, "finishing_seconds") == [2 * STAGE / 2] * 2  # it begins anew


def test_nothing_is_recorded_where_a_part_is_not_known(clock, store):
    """A checkpoint that is older than the field."""
    stop_after(2, store)
    checkpoints = Checkpoints(store)
    found = checkpoints.find([spec.digest for spec in SPECS])
    assert found.training_seconds == 2 * STEP
    checkpoints.write(found._replace(training_seconds=float("nan")))
    list(train_group(Work(0, SPECS), store, CheckpointInterval()))
    assert recorded(store) == [None, None]
    assert "seconds" in store.provenance(SPECS[0].digest)


def test_it_is_the_clock_of_the_processor(store, monkeypatch, as_users_run_it):
    """A step that waits takes no time."""
    advance = Stack.advance

    def slow(*arguments):
        time.sleep(0.5)
        return advance(*arguments)

    monkeypatch.setattr(Stack, "advance", slow)
    list(train_group(Work(0, SPECS), store, CheckpointInterval()))
    assert 0 < sum(recorded(store)) < 4 * 0.5
    assert store.provenance(SPECS[0].digest)["seconds"] >= 4 * 0.5 / 2
