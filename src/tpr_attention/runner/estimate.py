"""Estimate how long a training takes: from stored runs of the same kind, or from a few steps."""

import time
from collections.abc import Container, Hashable, Sequence
from contextlib import suppress
from statistics import mean

import torch

from tpr_attention.runner.store import Store
from tpr_attention.runner.work import Work
from tpr_attention.training.prepare import prepare
from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.stack import Stack, can_compile
from tpr_attention.training.train import group_key, is_worth_compiling

__all__ = ["estimate"]

STEPS = 10  # that are measured
GAIN, COMPILATION = 2.5, 20.0  # how much faster compiled steps are, and the seconds that compilation takes


def estimate(work: Sequence[Work], store: Store, workers: int) -> float:
    """Estimate the seconds that as many processes need for the runs that are not stored."""
    keys = {item.number: group_key(item.specs[0]) for item in work}
    of_run = _seconds_of_stored(store, {item.specs[0].task.name for item in work})
    for item in work:
        if keys[item.number] not in of_run:
            of_run[keys[item.number]] = _measured_seconds(item.specs)
    each = [of_run[keys[item.number]] * sum(run not in store for run in item.runs) for item in work]
    return max(sum(each) / workers, max(each, default=0.0))


def _seconds_of_stored(store: Store, tasks: Container[str]) -> dict[Hashable, float]:
    """The mean duration of stored runs of these tasks by group key; other tasks are not imported."""
    found: dict[Hashable, list[float]] = {}
    for digest in store:
        spec, seconds = store.spec(digest), store.provenance(digest).get("seconds")
        if spec.task.name in tasks and isinstance(seconds, float):
            with suppress(SpecError):  # a task of a user may have changed since
                found.setdefault(group_key(spec), []).append(seconds)
    return {key: mean(seconds) for key, seconds in found.items()}


def _measured_seconds(specs: Sequence[RunSpec]) -> float:
    """The duration of one run of a group, from a few steps."""
    start = time.monotonic()
    run = prepare(specs[0])
    preparation = time.monotonic() - start
    stack = Stack([run] * len(specs), compiled=False)
    if not stack.trained:
        return preparation
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a worker process
    stack.advance(0, 1)
    start = time.monotonic()
    stack.advance(1, 1 + STEPS)
    seconds = (time.monotonic() - start) / STEPS * specs[0].training.steps / len(specs)
    torch.set_num_threads(threads)
    if is_worth_compiling(specs) and can_compile():
        seconds = seconds / GAIN + COMPILATION / len(specs)
    return preparation + seconds
