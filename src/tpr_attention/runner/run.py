"""Train the runs that a store lacks: plan groups of runs, and pass them to an executor."""

from collections.abc import Generator, Sequence

from tpr_attention.runner.checkpoints import CheckpointInterval, Checkpoints
from tpr_attention.runner.events import Event
from tpr_attention.runner.executors import Executor, make_executor
from tpr_attention.runner.store import Store
from tpr_attention.runner.work import Work
from tpr_attention.training.prepare import check
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.train import groups

__all__ = ["missing", "plan", "run"]

DEFAULT_INTERVAL = CheckpointInterval()


def missing(specs: Sequence[RunSpec], store: Store) -> list[RunSpec]:
    """The distinct runs that are not stored."""
    stored = set(store)
    return [spec for spec in dict.fromkeys(specs) if spec.digest not in stored]


def plan(specs: Sequence[RunSpec], store: Store, shard: tuple[int, int] = (1, 1)) -> list[Work]:
    """Check all specs and divide them into groups; those with missing runs are returned, the longest first.

    The number of a group does not depend on what is stored.

    Args:
        shard: One part of several: (2, 8) is every eighth group, beginning with the second.
    """
    stored, (part, parts) = set(store), shard
    numbered = [Work(number, tuple(group)) for number, group in enumerate(groups(list(dict.fromkeys(specs))))]
    left = [work for work in numbered[part - 1 :: parts] if not stored.issuperset(work.runs)]
    unseeded = {spec.with_seed(0): spec for work in left for spec in work.specs if spec.digest not in stored}
    sizes = {key: check(spec) for key, spec in unseeded.items()}

    def duration(work: Work) -> int:
        size = max(sizes.get(spec.with_seed(0), 0) for spec in work.specs)
        return size * work.steps * len(work.specs)

    return sorted(left, key=duration, reverse=True)


def run(
    specs: Sequence[RunSpec],
    store: Store,
    executor: Executor | None = None,
    *,
    shard: tuple[int, int] = (1, 1),
    every: CheckpointInterval = DEFAULT_INTERVAL,
) -> Generator[Event]:
    """Train and store the runs that are not stored.

    Runs whose models have the same shapes are trained together as a group. Several calls may use one store at the same
    time, on this machine or on others that share it: runs of another process are waited for, and taken over if it dies.

    Args:
        executor: Where groups are trained, see `make_executor`; one process per core of this machine if not given.
        shard: Only one part of the groups, such as (1, 2) for the first of two.
        every: How often checkpoints are written.
    """
    work = plan(specs, store, shard)
    Checkpoints(store).delete_stored()
    yield from (executor or make_executor("local"))(work, store, every)
