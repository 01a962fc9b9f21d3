"""Training on the command line: what is stored is skipped, the rest is shown as it goes on."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from rich.console import Console

from tpr_attention.console import clock, follow
from tpr_attention.experiments.checkpoints import Every
from tpr_attention.experiments.estimate import estimate
from tpr_attention.experiments.program import can_compile
from tpr_attention.experiments.run import Executor, missing, plan, run
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.train import is_worth_compiling

__all__ = ["How", "opened", "train_missing"]


class How(NamedTuple):
    """Where runs are trained, and how often they are saved."""

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
    def is_part(self) -> bool:
        """Whether others train the rest."""
        return self.part[1] > 1


@contextmanager
def opened(path: str, how: How) -> Iterator[Store]:
    """The store of a command; one that only asks, or asks for what cannot be, leaves no new folder behind."""
    _ = how.part
    if how.dry_run and not os.path.exists(path):  # noqa: PTH110 (also for what cannot be a path)
        with tempfile.TemporaryDirectory() as folder:
            yield Store(folder, create=True)
    else:
        yield Store(path, create=not how.dry_run)


def train_missing(specs: Sequence[RunSpec], store: Store, how: How, console: Console) -> int:
    """Train the runs that are not stored; the exit code."""
    left = missing(specs, store)
    said = f"{len(specs)} runs, {len(specs) - len(left)} of them stored" + (
        f" in {store.path}" if not how.dry_run else ""
    )
    console.print(said, highlight=False, markup=False, soft_wrap=True)
    if not left:
        return 0
    work = plan(specs, store, how.part)
    stored = set(store)
    own = sum(spec.digest not in stored for piece in work for spec in piece.specs)
    if how.is_part:
        console.print(f"part {how.shard}: {own} runs in {len(work)} groups", highlight=False)
    workers = how.workers or os.cpu_count() or 1
    if how.dry_run:
        seconds = estimate(work, store, workers)
        console.print(
            f"{own} trainings in {len(work)} groups, about {clock(seconds)} on {workers} processes", highlight=False
        )
        return 0
    if not can_compile() and is_worth_compiling(left):
        console.print("no C++ compiler (g++ or clang++) found: steps are not compiled, and two to three times slower")
    every = Every(how.checkpoint_seconds, how.checkpoint_steps)
    events = run(specs, store, workers=workers, shard=how.part, every=every, executor=_executor(how))
    with closing(events):  # interrupted here, they are told to stop and save
        failures = follow(events, own, workers, console)
    if not how.is_part or not missing(specs, store):
        store.write_table()
    lost = sum(len(failure.runs) for failure in failures)
    console.print(f"{own - lost} runs trained" + (f", {lost} failed" if lost else ""), highlight=False)
    return 1 if lost else 0


def _executor(how: How) -> Executor | None:
    if how.executor == "local":
        return None
    try:
        from tpr_attention.experiments.on_ray import on_ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise SpecError('--executor ray: Ray is not installed; pip install "tpr-attention[ray]"') from error
    return on_ray(how.ray_address)
