"""Work on the processes of this machine."""

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Generator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import torch

from tpr_attention.experiments.checkpoints import Every
from tpr_attention.experiments.progress import Event, Progress, Waiting
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.train import shape
from tpr_attention.experiments.work import Work, do, failed

__all__ = ["TRIES", "here", "on_processes"]

TRIES = 3
"""How often work is begun whose process dies."""

LATER = 1.0  # seconds after which work that another process holds is tried again
GRACE = 60.0  # seconds that a process has to save what it does


def here(work: Sequence[Work], store: Store, every: Every) -> Generator[Event]:
    """All work in this process, one piece after the other."""
    left = list(work)
    while left:
        held = []
        for piece in left:
            for event in do(piece, store, every):
                if isinstance(event, Waiting):
                    held.append(piece)
                yield event
        left = held
        if left:
            time.sleep(LATER)


def on_processes(work: Sequence[Work], store: Store, every: Every, size: int) -> Generator[Event]:
    """Processes of one thread that take one piece after the other."""
    yield from _Pool(work, store, every, min(size, len(work))).events()


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection
    shapes: set[RunSpec]


class _Pool:
    def __init__(self, work: Sequence[Work], store: Store, every: Every, size: int) -> None:
        self.context = multiprocessing.get_context("spawn")  # forking after torch has threads is unsafe
        self.left = list(work)
        self.later: list[tuple[float, Work]] = []
        self.tries: Counter[int] = Counter()
        self.store, self.every = store, every
        self.workers = [self._worker() for _ in range(size)]
        self.busy: dict[Connection, Work] = {}

    def _worker(self) -> _Worker:
        ours, theirs = self.context.Pipe()
        arguments = (theirs, self.store.path, self.every)
        process = self.context.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, set())

    def events(self) -> Generator[Event]:
        try:
            while self.left or self.later or self.busy:
                now = time.monotonic()
                self.left += [work for due, work in self.later if due <= now]
                self.later = [(due, work) for due, work in self.later if due > now]
                for worker in self.workers:
                    if worker.connection not in self.busy:
                        self._give(worker)
                for connection in wait(list(self.busy), LATER if self.later else None) if self.busy else ():
                    assert isinstance(connection, Connection)
                    yield self._receive(connection)
                if not self.busy and not self.left:
                    time.sleep(LATER if self.later else 0)
        finally:
            self._stop()

    def _receive(self, connection: Connection) -> Event:
        work = self.busy[connection]
        try:
            event: Event = connection.recv()
        except (EOFError, OSError):
            return self._bury(connection, work)
        if isinstance(event, Waiting):
            self.later.append((time.monotonic() + LATER, work))
        if not isinstance(event, Progress) or event.finished:
            del self.busy[connection]
        return event

    def _bury(self, connection: Connection, work: Work) -> Event:
        """A process has died: another takes its place, and its work is begun again where it was saved last."""
        place = next(k for k, worker in enumerate(self.workers) if worker.connection is connection)
        dead = self.workers[place].process
        dead.join()
        self.workers[place] = self._worker()
        del self.busy[connection]
        runs = tuple(spec.digest for spec in work.specs)
        reason = f"the process that trained it ended with code {dead.exitcode}"
        self.tries[work.number] += 1
        if self.tries[work.number] < TRIES:
            self.left.append(work)
            return Waiting(work.number, runs, f"{reason}; it is begun again")
        return failed(work, f"{reason}, {TRIES} times", self.store)

    def _give(self, worker: _Worker) -> None:
        """The next piece: one of a shape this worker knows, or that nobody knows, or any."""
        if not self.left:
            return
        known = [other.shapes for other in self.workers]
        work = min(self.left, key=lambda piece: _preference(shape(piece.specs[0]), worker.shapes, known))
        self.left.remove(work)
        worker.shapes.add(shape(work.specs[0]))
        self.busy[worker.connection] = work
        worker.connection.send((work.number, [spec.to_json() for spec in work.specs]))

    def _stop(self) -> None:
        """Let every process save what it does."""
        deadline = time.monotonic() + GRACE
        for worker in self.workers:
            worker.process.terminate()
        try:
            for worker in self.workers:
                worker.process.join(max(0, deadline - time.monotonic()))
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.process.join()
                worker.connection.close()


def _preference(wanted: RunSpec, own: set[RunSpec], known: Sequence[set[RunSpec]]) -> int:
    return 0 if wanted in own else 1 if not any(wanted in shapes for shapes in known) else 2


class _Wish:
    """Whether this process was asked to end: at once while it has nothing to lose, else at the next pause."""

    def __init__(self) -> None:
        self.has_begun = self.stop = False
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked decides
        signal.signal(signal.SIGTERM, self._asked)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.stop = True
        if not self.has_begun:
            os._exit(0)


def _serve(connection: Connection, path: Path, every: Every) -> None:
    """A worker's life."""
    wish = _Wish()
    torch.set_num_threads(1)
    store = Store(path)
    while True:
        try:
            number, texts = connection.recv()
            work = Work(number, tuple(map(RunSpec.from_json, texts)))
            first = None
            for event in do(work, store, every, lambda: wish.stop):
                if isinstance(event, Progress):
                    first = event.step if first is None else first
                    wish.has_begun = event.step > first and not event.finished
                connection.send(event)
            if wish.stop:
                return
        except (EOFError, BrokenPipeError):
            return
