"""One piece of work: train the runs of a group that are not stored, from where they were left, and store them."""

import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import NamedTuple

import torch

from tpr_attention.experiments.checkpoints import Checkpoint, Checkpoints, Every
from tpr_attention.experiments.curves import curve
from tpr_attention.experiments.locks import HeldError, locked
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.program import can_compile
from tpr_attention.experiments.progress import Event, Failure, Progress, Waiting
from tpr_attention.experiments.provenance import provenance
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store, StoreError
from tpr_attention.experiments.train import Finished, Pause, train

__all__ = ["Work", "do", "failed"]


class Work(NamedTuple):
    """A numbered group of runs: doing it twice is doing it once."""

    number: int
    specs: tuple[RunSpec, ...]


def do(work: Work, store: Store, every: Every, asked_to_stop: Callable[[], bool] = lambda: False) -> Generator[Event]:
    """Train what is missing of a group and store it, unless another process does; when asked to stop, save it."""
    runs = tuple(spec.digest for spec in work.specs)
    try:
        with locked(store.path / ".locks", runs):
            finished = yield from _train(work, store, every, asked_to_stop)
        if finished:  # told when the locks are free: a worker may be ended then
            yield Progress(work.number, len(runs), work.specs[0].steps, work.specs[0].steps, finished=True)
    except HeldError as held:
        yield Waiting(work.number, runs, str(held))
    except Exception as error:
        yield failed(work, f"{type(error).__name__}: {error}", store)


def failed(work: Work, reason: str, store: Store) -> Failure:
    """A failure, noted in the store if that can be written."""
    runs = tuple(spec.digest for spec in work.specs)
    with suppress(StoreError):
        store.note_failure(runs, reason)
    return Failure(work.number, runs, reason)


def _train(work: Work, store: Store, every: Every, asked_to_stop: Callable[[], bool]) -> Generator[Event, None, bool]:
    """Whether all is stored in the end."""
    specs = {spec.digest: spec for spec in work.specs if spec.digest not in store}
    whole, steps = len(work.specs), work.specs[0].steps
    checkpoints = Checkpoints(store)
    left = checkpoints.find(spec.digest for spec in work.specs) if specs else None
    if left is not None:  # in its order, which is that of its state
        of_work = {spec.digest: spec for spec in work.specs}
        specs = {run: of_work[run] for run in left.runs}
    points: defaultdict[str, list[Point]] = defaultdict(list)
    for point in left.points if left is not None else ():
        points[point.run].append(point)
    begun = time.monotonic() - (left.seconds if left is not None else 0)
    saved_at, saved_step = time.monotonic(), left.step if left is not None else 0
    yield Progress(work.number, whole, saved_step, steps)
    begin = (left.step, left.state) if left is not None else None
    for event in train(list(specs.values()), begin=begin) if specs else ():
        if isinstance(event, Finished):
            seconds = round((time.monotonic() - begun) / len(specs), 3)
            _store(specs[event.run], points.pop(event.run, []), event, store, len(specs), seconds)
        elif isinstance(event, Point):
            points[event.run].append(event)
        elif isinstance(event, Pause):
            stop, now = asked_to_stop(), time.monotonic()
            due = now - saved_at >= every.seconds or (every.steps and event.step - saved_step >= every.steps)
            if stop or due or (event.step == steps and len(specs) > 1):
                everything = tuple(point for of_run in points.values() for point in of_run)
                checkpoints.write(Checkpoint(tuple(specs), event.step, event.state(), everything, now - begun))
                saved_at, saved_step = now, event.step
            if stop:
                yield Waiting(work.number, tuple(specs), f"saved at step {event.step}")
                return False
            yield Progress(work.number, whole, event.step, steps)
    if specs:
        checkpoints.drop(tuple(specs))
    return True


def _store(spec: RunSpec, points: list[Point], end: Finished, store: Store, together: int, seconds: float) -> None:
    store.save(
        spec,
        curve(points, end.role_weights),
        {name: tensor.numpy() for name, tensor in end.weights.items()},
        {
            **provenance(),
            "parameters": end.parameters,
            "threads": torch.get_num_threads(),
            "compiler_found": can_compile(),
            "trained_together": together,
            "seconds": seconds,
            "diverged": end.divergence and end.divergence._asdict(),
        },
    )
