"""How long work will take: from stored runs of the same shape, or from a few steps of it."""

import time
from collections.abc import Sequence
from statistics import mean

import torch

from tpr_attention.experiments.prepare import prepare
from tpr_attention.experiments.program import Program, can_compile
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.train import is_worth_compiling, shape
from tpr_attention.experiments.work import Work

__all__ = ["estimate"]

STEPS = 10  # that are measured
GAIN, COMPILATION = 2.5, 20.0  # how much faster compiled steps are, and the seconds that compilation takes


def estimate(work: Sequence[Work], store: Store, workers: int) -> float:
    """Seconds, roughly, for as many processes."""
    known: dict[RunSpec, list[float]] = {}
    for digest in store:
        seconds = store.provenance(digest).get("seconds")
        if isinstance(seconds, float):
            known.setdefault(shape(store.spec(digest)), []).append(seconds)
    of_run = {}
    for piece in work:
        kind = shape(piece.specs[0])
        if kind not in of_run:
            of_run[kind] = mean(known[kind]) if kind in known else _tried(piece.specs)
    each = [of_run[shape(piece.specs[0])] * sum(spec.digest not in store for spec in piece.specs) for piece in work]
    return max(sum(each) / workers, max(each, default=0.0))


def _tried(specs: Sequence[RunSpec]) -> float:
    """The seconds of one of these runs, trained with the others, from a few of its steps."""
    start = time.monotonic()
    run = prepare(specs[0])
    preparation = time.monotonic() - start
    program = Program([run] * len(specs), compiled=False)
    if not program.trained:
        return preparation
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker has
    program.advance(0, 1)
    start = time.monotonic()
    program.advance(1, 1 + STEPS)
    steps = (time.monotonic() - start) / STEPS * specs[0].steps / len(specs)
    torch.set_num_threads(threads)
    if is_worth_compiling(specs) and can_compile():
        steps = steps / GAIN + COMPILATION / len(specs)
    return preparation + steps
