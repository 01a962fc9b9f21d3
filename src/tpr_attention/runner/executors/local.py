"""Train groups of runs in processes of this machine."""

import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Generator, Hashable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import torch

from tpr_attention.runner.checkpoints import CheckpointInterval
from tpr_attention.runner.events import Event, Progress, Waiting
from tpr_attention.runner.executors import Executor, ExecutorSettings
from tpr_attention.runner.executors.pending import RETRY_SECONDS, Pending
from tpr_attention.runner.store import Store
from tpr_attention.runner.work import Work, record_failure, train_group
from tpr_attention.training.train import group_key

__all__ = ["in_this_process", "local_executor"]

GRACE_SECONDS = 60.0  # that a worker has to write a checkpoint
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # of mallopt(3)


def local_executor(settings: ExecutorSettings) -> Executor:
    """Make the executor of this machine."""
    if settings.workers == 0:
        return in_this_process
    return partial(_in_processes, workers=settings.workers or os.cpu_count() or 1, attempts=settings.attempts)


def in_this_process(work: Sequence[Work], store: Store, every: CheckpointInterval) -> Generator[Event]:
    """Train all groups in this process, one after the other."""
    left = list(work)
    while left:
        held = []
        for item in left:
            for event in train_group(item, store, every):
                if isinstance(event, Waiting):
                    held.append(item)
                yield event
        left = held
        if left:
            time.sleep(RETRY_SECONDS)


def _in_processes(
    work: Sequence[Work], store: Store, every: CheckpointInterval, workers: int, attempts: int
) -> Generator[Event]:
    if work:
        yield from _Pool(Pending(work, store, attempts), store, every, min(workers, len(work))).events()


class _Worker(NamedTuple):
    """A worker process; `keys` are the group keys that it has trained, and may have compiled."""

    process: BaseProcess
    connection: Connection
    keys: set[Hashable]


class _Pool:
    """Worker processes of one thread each, which train one group after the other."""

    def __init__(self, pending: Pending, store: Store, every: CheckpointInterval, size: int) -> None:
        self.context = multiprocessing.get_context("spawn")  # forking after torch has started threads is unsafe
        self.pending, self.store, self.every = pending, store, every
        self.busy: dict[Connection, Work] = {}
        self.workers: dict[Connection, _Worker] = {}
        for _ in range(size):
            self._start_worker()

    def _start_worker(self) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(theirs, self.store.path, self.every), daemon=True)
        process.start()
        theirs.close()
        self.workers[ours] = _Worker(process, ours, set())

    def events(self) -> Generator[Event]:
        try:
            while self.pending or self.busy:
                for worker in self.workers.values():
                    if worker.connection not in self.busy:
                        self._assign(worker)
                for connection in wait(list(self.busy), RETRY_SECONDS if self.pending else None):
                    assert isinstance(connection, Connection)
                    yield self._receive(connection)
        finally:
            self._stop()

    def _assign(self, worker: _Worker) -> None:
        """Give a worker a group whose key it knows, else one whose key no worker knows, else any."""
        known = {key for other in self.workers.values() for key in other.keys}

        def rank(work: Work) -> int:
            key = group_key(work.specs[0])
            return 0 if key in worker.keys else 1 if key not in known else 2

        if ready := self.pending.ready():
            work = min(ready, key=rank)
            self.pending.take(work)
            worker.keys.add(group_key(work.specs[0]))
            self.busy[worker.connection] = work
            with suppress(OSError):  # it died while it was idle, which is noticed when its answer is read
                worker.connection.send(work)

    def _receive(self, connection: Connection) -> Event:
        try:
            event: Event = connection.recv()
        except (EOFError, OSError):
            return self._replace(connection)
        if not isinstance(event, Progress) or event.finished:
            work = self.busy.pop(connection)
            if isinstance(event, Waiting):
                self.pending.retry(work)
        return event

    def _replace(self, connection: Connection) -> Event:
        """Start another process in place of one that died."""
        process = self.workers.pop(connection).process
        process.join()
        connection.close()
        self._start_worker()
        reason = f"the process that trained it ended with code {process.exitcode}"
        return self.pending.after_death(self.busy.pop(connection), reason)

    def _stop(self) -> None:
        """End all workers, after those that train have written a checkpoint."""
        deadline = time.monotonic() + GRACE_SECONDS
        for worker in self.workers.values():
            worker.process.terminate()
        try:
            for worker in self.workers.values():
                worker.process.join(max(0, deadline - time.monotonic()))
        finally:
            for worker in self.workers.values():
                worker.process.kill()
                worker.process.join()
                worker.connection.close()


class _StopRequest:
    """SIGTERM as a request to stop: at once if no step would be lost, else at the next pause."""

    def __init__(self) -> None:
        self.received = self.has_steps_to_save = False
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides
        signal.signal(signal.SIGTERM, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = True
        if not self.has_steps_to_save:
            os._exit(0)


def _keep_memory() -> None:
    """Ask glibc to keep what is freed: tensors of some megabytes, made anew in every step, else cost page faults."""
    with suppress(OSError, AttributeError):
        allocator = ctypes.CDLL("libc.so.6")
        for option, number in ((M_MMAP_THRESHOLD, 2**25), (M_TRIM_THRESHOLD, 2**30), (M_TOP_PAD, 2**26)):
            allocator.mallopt(option, number)


def _serve(connection: Connection, path: Path, every: CheckpointInterval) -> None:
    """Main loop of a worker process."""
    request = _StopRequest()
    torch.set_num_threads(1)
    _keep_memory()
    store = Store(path)
    while not request.received:
        try:
            work: Work = connection.recv()
        except EOFError:
            return
        try:
            first = None
            for event in train_group(work, store, every, lambda: request.received):
                if isinstance(event, Progress):
                    first = event.step if first is None else first
                    request.has_steps_to_save = event.step > first and not event.finished
                connection.send(event)
        except BrokenPipeError:
            return
        except (KeyboardInterrupt, GeneratorExit) as error:  # of a user's code: Ctrl-C does not reach this process
            with suppress(BrokenPipeError):
                connection.send(record_failure(work, f"a model or a task has raised {error!r}", store))
        finally:
            request.has_steps_to_save = False  # also after a failure, or an idle process would not end when asked to
