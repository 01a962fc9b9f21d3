"""Train what a store lacks: a numbered list of work, mapped to whoever does it; results are in the store."""

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from tpr_attention.experiments.checkpoints import Every
from tpr_attention.experiments.local import here, on_processes
from tpr_attention.experiments.prepare import check
from tpr_attention.experiments.progress import Event
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.train import groups
from tpr_attention.experiments.work import Work

__all__ = ["Executor", "missing", "plan", "run"]

SELDOM = Every()

Executor = Callable[[Sequence[Work], Store, Every], Generator[Event]]
"""Who does the work: it may do it anywhere, in any order, more than once, as long as it ends up in the store."""


def missing(specs: Sequence[RunSpec], store: Store) -> list[RunSpec]:
    """The distinct runs that are not stored."""
    stored = set(store)
    return [spec for spec in dict.fromkeys(specs) if spec.digest not in stored]


def plan(specs: Sequence[RunSpec], store: Store, shard: tuple[int, int] = (1, 1)) -> list[Work]:
    """The work there is: groups of runs of one shape, numbered the same whatever is stored, the longest first.

    Args:
        shard: Which part of how many: (2, 8) is every eighth group, from the second on.
    """
    stored, (part, parts) = set(store), shard
    numbered = [Work(number, tuple(group)) for number, group in enumerate(groups(list(dict.fromkeys(specs))))]
    left = [work for work in numbered[part - 1 :: parts] if any(spec.digest not in stored for spec in work.specs)]
    kinds = {replace(spec, seed=0): spec for work in left for spec in work.specs if spec.digest not in stored}
    sizes = {kind: check(spec) for kind, spec in kinds.items()}
    size = {work.number: max(sizes.get(replace(spec, seed=0), 0) for spec in work.specs) for work in left}
    return sorted(left, key=lambda work: -size[work.number] * work.specs[0].steps * len(work.specs))


def run(
    specs: Sequence[RunSpec],
    store: Store,
    *,
    workers: int | None = None,
    shard: tuple[int, int] = (1, 1),
    every: Every = SELDOM,
    executor: Executor | None = None,
) -> Generator[Event]:
    """Train and store the runs that are not stored.

    Runs of one shape are trained together; each group is one piece of work. Several calls may work on one store at the
    same time, here or on machines that share it: what another process trains is waited for, and taken over if it dies.

    Args:
        workers: Processes of one thread each; as many as there are cores if not said. With 0, no other process is
            started and torch keeps its threads.
        shard: Do only the first of two parts with (1, 2), and so on.
        every: How often trainings are saved, to go on from there after an interruption.
        executor: Who does the work instead of processes on this machine.
    """
    work = plan(specs, store, shard)
    if executor is not None:
        yield from executor(work, store, every)
    elif workers == 0:
        yield from here(work, store, every)
    elif work:
        yield from on_processes(work, store, every, workers or os.cpu_count() or 1)
