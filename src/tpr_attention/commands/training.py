"""Training on the command line: what is stored is skipped, the rest is shown as it goes on."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from rich.console import Console

from tpr_attention.console import clock, counted, follow
from tpr_attention.runner.checkpoints import CheckpointInterval, Checkpoints
from tpr_attention.runner.estimate import estimate
from tpr_attention.runner.executors import Executor, ExecutorSettings, make_executor
from tpr_attention.runner.run import missing, plan
from tpr_attention.runner.store import Store
from tpr_attention.runner.tables import write_table
from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.stack import can_compile
from tpr_attention.training.train import is_worth_compiling

__all__ = ["TrainingSettings", "changed_sources", "open_store", "train_missing"]


class TrainingSettings(NamedTuple):
    """Where runs are trained, and how often they are saved: options of the commands that train."""

    workers: int | None = None
    executor: str = "local"
    ray_address: str | None = None
    shard: str = "1/1"
    checkpoint_seconds: float = 30.0
    checkpoint_steps: int | None = None
    again: bool = False
    dry_run: bool = False

    @property
    def part(self) -> tuple[int, int]:
        """Which part of how many."""
        part, _, parts = self.shard.partition("/")
        if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
            raise SpecError(f"--shard: expected a part of the whole such as 2/8, got {self.shard!r}")
        return int(part), int(parts)

    @property
    def processes(self) -> int:
        """How many trainings there are at the same time."""
        return self.workers or os.cpu_count() or 1

    def make_executor(self) -> Executor:
        """Where groups of runs are trained."""
        return make_executor(self.executor, ExecutorSettings(self.processes, self.ray_address))

    @property
    def is_part(self) -> bool:
        """Whether others train the rest."""
        return self.part[1] > 1


@contextmanager
def open_store(path: str, settings: TrainingSettings) -> Iterator[Store]:
    """The store of a command. A dry run, or a request that cannot be, leaves no new folder behind."""
    if settings.again and (settings.is_part or settings.dry_run):
        raise SpecError("--again: expected neither --shard nor --dry-run beside it, because stored runs are deleted")
    if not settings.dry_run:
        settings.make_executor()
    if settings.dry_run and not os.path.exists(path):  # noqa: PTH110 (also for what cannot be a path)
        with tempfile.TemporaryDirectory() as folder:
            yield Store(folder, create=True)
    else:
        yield Store(path, create=not settings.dry_run)


def train_missing(specs: Sequence[RunSpec], store: Store, settings: TrainingSettings, console: Console) -> int:
    """Train the runs that are not stored. Returns the exit code."""
    if settings.again:
        _delete(specs, store, console)
    left = missing(specs, store)
    for spec in set(specs).difference(left):
        store.spec(spec.digest)  # is what its name says
    where = "" if settings.dry_run else f" in {store.path}"
    said = f"{counted(len(specs), 'run')}, {len(specs) - len(left)} of them stored{where}"
    console.print(said, highlight=False, markup=False, soft_wrap=True)
    if not left:
        return 0
    for source in changed_sources(left, store):
        console.print(
            f"{source} has changed since runs that are stored; training anew",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    work, stored = plan(specs, store, settings.part), set(store)
    lacking = {piece.number: sum(run not in stored for run in piece.runs) for piece in work}
    count = sum(lacking.values())
    if settings.is_part:
        console.print(f"part {settings.shard}: {count} runs in {len(work)} groups", highlight=False)
    workers = settings.processes
    if settings.dry_run:
        seconds = clock(estimate(work, store, workers))
        said = f"{count} trainings in {len(work)} groups, about {seconds} on {workers} processes"
        console.print(said, highlight=False)
        return 0
    if not can_compile() and is_worth_compiling(left):
        console.print("no C++ compiler (g++ or clang++) found: steps are not compiled, and two to three times slower")
    every = CheckpointInterval(settings.checkpoint_seconds, settings.checkpoint_steps)
    events = settings.make_executor()(work, store, every)
    with closing(events):  # interrupted here, they are told to stop and save
        failures, trained = follow(events, count, workers, console)
    if not settings.is_part or not missing(specs, store):
        write_table(store)
    lost = sum(run not in store for failure in failures for run in failure.runs)
    others = sum(lacking[group] - here for group, here in trained.items())
    here = count - lost - others
    said = f"{here} run{'s' if here != 1 else ''} trained"
    said += f", {others} by other processes" if others else ""
    console.print(said + (f", {lost} failed" if lost else ""), highlight=False)
    return 1 if failures else 0


def changed_sources(specs: Iterable[RunSpec], store: Store) -> list[str]:
    """The user's files that had other contents in stored runs that are the same but for that."""
    of_users = {spec.without_sources(): spec for spec in specs if spec.sources}
    if not of_users:
        return []
    changed = dict[str, None]()
    for before in store.readable()[0].values():
        spec = of_users.get(before.without_sources())
        if spec is not None:
            changed |= {name: None for name, now in spec.sources.items() if before.sources.get(name) != now}
    return list(changed)


def _delete(specs: Sequence[RunSpec], store: Store, console: Console) -> None:
    """Delete stored runs and checkpoints, so that all are trained from the start."""
    stored = [spec.digest for spec in dict.fromkeys(specs) if spec.digest in store]
    Checkpoints(store).discard(spec.digest for spec in specs)
    for digest in stored:
        store.discard(digest)
    console.print(f"{len(stored)} stored runs deleted, to be trained again", highlight=False)
