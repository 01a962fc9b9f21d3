"""Train a group of runs from its last checkpoint, and store them."""

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from math import isfinite
from typing import NamedTuple

import torch

from tpr_attention.runner.checkpoints import Checkpoint, CheckpointInterval, Checkpoints
from tpr_attention.runner.events import Event, Failure, Progress, Waiting
from tpr_attention.runner.locks import HeldError, locked
from tpr_attention.runner.provenance import provenance
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.stack import can_compile
from tpr_attention.training.train import Finished, Pause, train

__all__ = ["Work", "record_failure", "train_group"]


class Work(NamedTuple):
    """A numbered group of runs that are trained together; what is stored is not trained again."""

    number: int
    specs: tuple[RunSpec, ...]

    @property
    def runs(self) -> tuple[str, ...]:
        """The digests of the runs."""
        return tuple(spec.digest for spec in self.specs)

    @property
    def steps(self) -> int:
        """The number of steps, which is the same for all runs."""
        return self.specs[0].training.steps


def train_group(
    work: Work, store: Store, every: CheckpointInterval, should_stop: Callable[[], bool] = lambda: False
) -> Generator[Event]:
    """Train and store the runs of a group that are not stored, unless another process trains one of them.

    Args:
        should_stop: Asked at every pause; if it says so, a checkpoint is written and the training ends.
    """
    try:
        with locked(store.path / ".locks", work.runs):
            trained = yield from _train_missing(work, store, every, should_stop)
        if trained is not None:  # reported after the locks are free, because a worker may be ended then
            yield Progress(work.number, len(work.specs), work.steps, work.steps, finished=True, trained=trained)
    except HeldError as held:
        yield Waiting(work.number, work.runs, str(held))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except SystemExit as end:
        yield record_failure(work, f"a model or a task has called sys.exit({end.code!r})", store)
    except BaseException as error:  # a user's may be no `Exception`
        yield record_failure(work, f"{type(error).__name__}: {error}", store)


def record_failure(work: Work, reason: str, store: Store) -> Failure:
    """Note in the store, if it can be written, that a group failed."""
    with suppress(StoreError):
        store.note_failure(work.runs, reason)
    return Failure(work.number, work.runs, reason)


def _train_missing(
    work: Work, store: Store, every: CheckpointInterval, should_stop: Callable[[], bool]
) -> Generator[Event, None, int | None]:
    """Returns how many runs were trained; None if it was stopped before all are stored."""
    missing = [run for run in work.runs if run not in store]
    if not missing:
        return 0
    checkpoints = Checkpoints(store)
    last = checkpoints.find(work.runs)
    begin = None if last is None else (last.step, last.state)
    last = last or Checkpoint(tuple(missing), 0, {}, ())
    by_digest = {spec.digest: spec for spec in work.specs}
    specs = [by_digest[run] for run in last.runs]  # in the order of the checkpoint's state
    points: defaultdict[str, list[Point]] = defaultdict(list)
    for point in last.points:
        points[point.run].append(point)
    saved_at, saved_step = time.monotonic(), last.step
    started = saved_at - last.seconds
    yield Progress(work.number, len(work.specs), last.step, work.steps)
    for event in train(specs, begin=begin):
        if isinstance(event, Point):
            points[event.run].append(event)
        elif isinstance(event, Finished):
            times = {
                "seconds": time.monotonic() - started,
                "training_seconds": last.training_seconds + event.training_seconds,
                "finishing_seconds": event.finishing_seconds,
            }
            _save(store, by_digest[event.run], points.pop(event.run, []), event, len(specs), times)
        elif isinstance(event, Pause):
            stop, now = should_stop(), time.monotonic()
            is_due = now - saved_at >= every.seconds or (every.steps and event.step - saved_step >= every.steps)
            if stop or is_due or (event.step == work.steps > saved_step and len(specs) > 1):
                so_far = tuple(point for of_run in points.values() for point in of_run)
                times = {
                    "seconds": now - started,
                    "training_seconds": last.training_seconds + event.training_seconds,
                }
                checkpoints.write(Checkpoint(last.runs, event.step, event.state(), so_far, **times))
                saved_at, saved_step = now, event.step
            if stop:
                yield Waiting(work.number, last.runs, f"saved at step {event.step}")
                return None
            yield Progress(work.number, len(work.specs), event.step, work.steps)
    checkpoints.delete(last.runs)
    return len(missing)


def _save(
    store: Store, spec: RunSpec, points: list[Point], end: Finished, together: int, times: Mapping[str, float]
) -> None:
    """Store a run with its share of the times of its group."""
    about = {
        **provenance(),
        "device": spec.training.device,
        "parameters": end.parameters,
        "threads": torch.get_num_threads(),
        "compiler_found": can_compile(),
        "trained_together": together,
        **{name: round(seconds / together, 3) for name, seconds in times.items() if isfinite(seconds)},
        "diverged": end.divergence and end.divergence._asdict(),
    }
    weights = {name: tensor.detach().cpu().numpy() for name, tensor in end.weights.items()}
    store.save(spec, curve(points, end.names["metrics"]), weights, about, end.names)
