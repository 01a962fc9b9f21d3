"""Training on the command line: what is stored is skipped, the rest is shown as it goes on."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from rich.console import Console

from tpr_attention.console import clock, follow
from tpr_attention.runner.checkpoints import CheckpointInterval
from tpr_attention.runner.estimate import estimate
from tpr_attention.runner.executors import Executor, ExecutorSettings, make_executor
from tpr_attention.runner.run import missing, plan
from tpr_attention.runner.store import Store
from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.stack import can_compile
from tpr_attention.training.train import is_worth_compiling

__all__ = ["TrainingSettings", "open_store", "train_missing"]


class TrainingSettings(NamedTuple):
    """Where runs are trained, and how often they are saved: options of the commands that train."""

    workers: int | None = None
    executor: str = "local"
    ray_address: str | None = None
    shard: str = "1/1"
    checkpoint_seconds: float = 30.0
    checkpoint_steps: int | None = None
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
    _ = settings.part
    if not settings.dry_run:
        settings.make_executor()
    if settings.dry_run and not os.path.exists(path):  # noqa: PTH110 (also for what cannot be a path)
        with tempfile.TemporaryDirectory() as folder:
            yield Store(folder, create=True)
    else:
        yield Store(path, create=not settings.dry_run)


def train_missing(specs: Sequence[RunSpec], store: Store, settings: TrainingSettings, console: Console) -> int:
    """Train the runs that are not stored. Returns the exit code."""
    left = missing(specs, store)
    where = "" if settings.dry_run else f" in {store.path}"
    said = f"{len(specs)} runs, {len(specs) - len(left)} of them stored{where}"
    console.print(said, highlight=False, markup=False, soft_wrap=True)
    if not left:
        return 0
    work, stored = plan(specs, store, settings.part), set(store)
    count = sum(spec.digest not in stored for piece in work for spec in piece.specs)
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
        failures = follow(events, count, workers, console)
    if not settings.is_part or not missing(specs, store):
        store.write_table()
    lost = sum(len(failure.runs) for failure in failures)
    trained = count - lost
    said = f"{trained} run{'s' if trained != 1 else ''} trained"
    console.print(said + (f", {lost} failed" if lost else ""), highlight=False)
    return 1 if lost else 0
