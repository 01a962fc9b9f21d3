"""Train what a store lacks, on several processes of one thread: a stream of progress, results in the store."""

import multiprocessing
import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import torch

from tpr_attention.experiments.curves import curve
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.prepare import check
from tpr_attention.experiments.program import can_compile
from tpr_attention.experiments.progress import Event, Failure, Progress
from tpr_attention.experiments.provenance import provenance
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.train import Finished, groups, shape, train

__all__ = ["missing", "run", "train_group"]


def missing(specs: Sequence[RunSpec], store: Store) -> list[RunSpec]:
    """The distinct runs that are not stored."""
    stored = set(store)
    return [spec for spec in dict.fromkeys(specs) if spec.digest not in stored]


def run(specs: Sequence[RunSpec], store: Store, *, workers: int | None = None) -> Iterator[Event]:
    """Train and store the runs that are not stored.

    Runs of one shape are trained together; each group is one piece of work. A worker keeps to the shapes it has
    compiled, as far as there are others for the rest.

    Args:
        workers: Processes of one thread each; as many as there are cores if not said. With 0, no other process is
            started and torch keeps its threads.
    """
    wanted = missing(specs, store)
    sizes = {shape(spec): check(spec) for spec in {replace(spec, seed=0): spec for spec in wanted}.values()}
    work = sorted(groups(wanted), key=lambda group: -sizes[shape(group[0])] * group[0].steps * len(group))
    if workers == 0:
        for number, group in enumerate(work):
            yield from train_group(number, group, store)
        return
    yield from _Pool(work, store, min(workers or os.cpu_count() or 1, len(work))).events()


def train_group(number: int, group: Sequence[RunSpec], store: Store) -> Iterator[Event]:
    """Train the runs of one group and store them."""
    begun, steps = time.monotonic(), group[0].steps
    specs = {spec.digest: spec for spec in group}
    points: defaultdict[str, list[Point]] = defaultdict(list)
    last = -1
    try:
        for event in train(group):
            if isinstance(event, Finished):
                store.save(
                    specs[event.run],
                    curve(points.pop(event.run), event.role_weights),
                    {name: tensor.numpy() for name, tensor in event.weights.items()},
                    {
                        **provenance(),
                        "parameters": event.parameters,
                        "threads": torch.get_num_threads(),
                        "compiler_found": can_compile(),
                        "trained_together": len(group),
                        "seconds": round((time.monotonic() - begun) / len(group), 3),
                    },
                )
                continue
            if isinstance(event, Point):
                points[event.run].append(event)
            if event.step > last:
                last = event.step
                yield Progress(number, len(group), last, steps)
    except Exception as error:
        yield Failure(number, tuple(specs), f"{type(error).__name__}: {error}")
    else:
        yield Progress(number, len(group), steps, steps, finished=True)


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection
    shapes: set[RunSpec]


class _Pool:
    """Processes that take one group after the other."""

    def __init__(self, work: Sequence[Sequence[RunSpec]], store: Store, size: int) -> None:
        self.context = multiprocessing.get_context("spawn")  # forking after torch has threads is unsafe
        self.work = work
        self.left = list(range(len(work)))
        self.store = store
        self.workers = [self._worker() for _ in range(size)]
        self.busy: dict[Connection, int] = {}

    def _worker(self) -> _Worker:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(theirs, self.store.path), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, set())

    def events(self) -> Iterator[Event]:
        try:
            for worker in self.workers:
                self._give(worker)
            while self.busy:
                for connection in wait(list(self.busy)):
                    assert isinstance(connection, Connection)
                    yield from self._receive(connection)
        finally:
            for worker in self.workers:
                worker.process.terminate()
                worker.connection.close()
            for worker in self.workers:
                worker.process.join()

    def _receive(self, connection: Connection) -> Iterator[Event]:
        number = self.busy[connection]
        place = next(k for k, worker in enumerate(self.workers) if worker.connection is connection)
        try:
            event = connection.recv()
        except (EOFError, OSError):
            worker = self.workers[place]
            worker.process.join()
            lost = tuple(spec.digest for spec in self.work[number])
            event = Failure(number, lost, f"the process that trained it ended with code {worker.process.exitcode}")
            self.workers[place] = self._worker()
        yield event
        if isinstance(event, Failure) or event.finished:
            del self.busy[connection]
            self._give(self.workers[place])

    def _give(self, worker: _Worker) -> None:
        """The next group: one of a shape this worker knows, or that nobody knows, or any."""
        if not self.left:
            return
        known = [other.shapes for other in self.workers]
        number = min(self.left, key=lambda k: _preference(shape(self.work[k][0]), worker.shapes, known))
        self.left.remove(number)
        group = self.work[number]
        worker.shapes.add(shape(group[0]))
        self.busy[worker.connection] = number
        worker.connection.send((number, [spec.to_json() for spec in group]))


def _preference(wanted: RunSpec, own: set[RunSpec], known: Sequence[set[RunSpec]]) -> int:
    return 0 if wanted in own else 1 if not any(wanted in shapes for shapes in known) else 2


def _serve(connection: Connection, path: Path) -> None:
    """A worker's life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked decides
    torch.set_num_threads(1)
    store = Store(path)
    while True:
        try:
            number, texts = connection.recv()
        except EOFError:
            return
        for event in train_group(number, [RunSpec.from_json(text) for text in texts], store):
            connection.send(event)
