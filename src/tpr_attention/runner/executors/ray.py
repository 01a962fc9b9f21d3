"""Train groups of runs as tasks of a Ray cluster.

A task that sees the folder of the store uses it as a process of this machine does, with locks and checkpoints. One that
does not trains in a temporary folder and sends the finished runs; if it is killed, it starts from the beginning. When
this process is interrupted, its tasks write checkpoints. When it is killed, Ray ends its tasks, and the same command
resumes them from their last checkpoints.
"""

import logging
import os
import signal
import socket
import tempfile
import time
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Read when Ray is imported. Without it, Ray replaces 127.0.0.1 by an address that other machines can reach.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

import ray
import torch
from ray.exceptions import RayError, RayTaskError
from ray.util.queue import Queue
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tpr_attention.runner.checkpoints import CheckpointInterval
from tpr_attention.runner.events import Event, Failure, Progress, Waiting
from tpr_attention.runner.executors import Executor, ExecutorSettings
from tpr_attention.runner.executors.pending import Pending
from tpr_attention.runner.files import SUMS, sums, sums_of, write_folder
from tpr_attention.runner.locks import HeldError, locked
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.runner.work import Work, record_failure, train_group
from tpr_attention.training.spec import SpecError

__all__ = ["ray_executor"]

# A cluster that is started here sends no statistics and does not ask the network for its cloud provider.
OFFLINE = {"RAY_USAGE_STATS_ENABLED": "0", "http_proxy": "http://127.0.0.1:9"}
ONE_ATTEMPT = {"RAY_gcs_server_port_wait_time_s": "1"}
ANSWER_SECONDS = 5.0  # for an answer of another process
POLL_SECONDS = 0.5
GRACE_SECONDS = 10.0  # that a task has to write a checkpoint

Folder = dict[str, bytes]
"""The files of a finished run by name, with their checksums."""


def ray_executor(settings: ExecutorSettings, *, shared: bool = True) -> Executor:
    """Make the executor of the Ray cluster at an address, or of one on this machine that ends with the work.

    A process that is connected to a cluster uses that one.

    Args:
        shared: Whether tasks look for the folder of the store; if not, all of them send what they trained.
    """

    def execute(work: Sequence[Work], store: Store, every: CheckpointInterval) -> Generator[Event]:
        locks = store.path.resolve() / ".locks"
        for token in locks.glob("driver-*"):
            with suppress(HeldError), locked(locks, [token.name]):
                pass  # deletes the token of a killed process
        token = locks / f"driver-{uuid.uuid4().hex}"
        if work:
            with _connected(settings), locked(locks, [token.name]):
                pending = Pending(work, store, settings.attempts)
                yield from _Tasks(pending, store, token if shared else None, every).events()

    return execute


@contextmanager
def _connected(settings: ExecutorSettings) -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if settings.address is None:
            if ray.util.get_node_ip_address() not in ("127.0.0.1", "::1"):  # type: ignore[no-untyped-call]
                raise ValueError("other machines could reach it; set RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0")
            with _environment(OFFLINE):
                ray.init("local", num_cpus=settings.workers, include_dashboard=False, **quiet)
        else:
            _check_reachable(settings.address)
            with _environment(ONE_ATTEMPT):
                ray.init(settings.address, **quiet)
    except (OSError, ValueError, RuntimeError, ImportError, AttributeError) as error:
        where = "on this machine" if settings.address is None else f"at {settings.address}"
        raise SpecError(f"ray: no cluster {where}: {str(error).splitlines()[0]}") from error
    if callable(handler):
        signal.signal(signal.SIGTERM, handler)  # Ray has replaced it
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for Ray and the processes that it starts."""
    before = {name: value for name, value in os.environ.items() if name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            os.environ.pop(name, None)
        os.environ.update(before)


def _check_reachable(address: str) -> None:
    """Connect to an address once, because Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if address != "auto":
        if not port.isdecimal():
            raise ValueError("expected an address such as auto or 10.0.0.1:6379")
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()


class _Tasks:
    """The tasks of this process. Those that find the file `token` use the store, and stop when it is deleted."""

    def __init__(self, pending: Pending, store: Store, token: Path | None, every: CheckpointInterval) -> None:
        self.pending, self.store, self.token, self.every = pending, store, token, every
        self.running: dict[Any, Work] = {}
        self.progressed: set[int] = set()
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        self.progress: Any = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here}).actor
        self.task = ray.remote(num_cpus=1, max_retries=0)(_task)  # retries of Ray itself are not reported

    def events(self) -> Generator[Event]:
        try:
            while self.pending or self.running:
                for work in self.pending.ready():
                    self.pending.take(work)
                    self._start(work)
                ended = ray.wait(list(self.running), timeout=POLL_SECONDS)[0] if self.running else []
                yield from self._new_progress()
                for task in ended:
                    yield self._end(task, self.running.pop(task))
                if not self.running and self.pending:
                    time.sleep(POLL_SECONDS)
        finally:
            self._stop()

    def _start(self, work: Work) -> None:
        missing = tuple(spec for spec in work.specs if spec.digest not in self.store)
        work = work._replace(specs=missing or work.specs)
        gpus = int(work.specs[0].training.device.startswith("cuda"))
        self.running[self.task.options(num_gpus=gpus).remote(work, self.token, self.every, self.progress)] = work

    def _new_progress(self) -> list[Progress]:
        """The progress since the last call; none if the queue is lost."""
        new: list[Progress] = []
        with suppress(RayError):
            size = ray.get(self.progress.qsize.remote(), timeout=ANSWER_SECONDS)
            new = ray.get(self.progress.get_nowait_batch.remote(size), timeout=ANSWER_SECONDS)
        self.progressed |= {event.group for event in new}
        running = {work.number for work in self.running.values()}
        return [event for event in new if event.group in running]

    def _end(self, task: Any, work: Work) -> Event:
        self.progressed.discard(work.number)
        try:
            event, folders = ray.get(task)
            for run, files in folders.items():
                _store(run, files, self.store)
        except HeldError as held:
            event = Waiting(work.number, work.runs, str(held))
        except RayTaskError as error:
            return record_failure(work, str(error.cause), self.store)
        except RayError as error:  # the process or the node has died
            return self.pending.after_death(work, str(error).splitlines()[0].rstrip("."))
        except (OSError, StoreError) as error:
            return record_failure(work, str(error), self.store)
        if isinstance(event, Waiting):
            self.pending.retry(work)
        return event  # type: ignore[no-any-return]

    def _stop(self) -> None:
        """End all tasks, after those that have trained and see the store have written a checkpoint."""
        saving = []
        if self.token is not None:
            self.token.unlink(missing_ok=True)
            saving = [task for task, work in self.running.items() if work.number in self.progressed]
        with suppress(RayError):
            for task in self.running.keys() - saving:
                ray.cancel(task)
            for task in ray.wait(saving, num_returns=len(saving), timeout=GRACE_SECONDS)[1] if saving else ():
                ray.cancel(task)


def _store(run: str, files: Folder, store: Store) -> None:
    """Store a run that a task has sent."""
    content = {name: data for name, data in files.items() if name != SUMS}
    if sums(content) != files[SUMS]:
        raise StoreError(f"{run}: changed on its way")
    with locked(store.path / ".locks", [run]):
        if run not in store:
            write_folder(store.path / run, content)


def _task(work: Work, token: Path | None, every: CheckpointInterval, progress: Any) -> tuple[Event, dict[str, Folder]]:
    """Train a group in a process of the cluster. Returns the last event, and the runs if this process stores none."""
    torch.set_num_threads(1)
    if token is not None and token.exists():
        store = Store(token.parents[1])
        return _last(train_group(work, store, every, lambda: not token.exists()), progress), {}
    with tempfile.TemporaryDirectory() as path:
        store = Store(path, create=True)
        event = _last(train_group(work, store, every), progress)
        if isinstance(event, Failure):
            raise RuntimeError(event.reason)  # recorded where the store is
        return event, {run: _files(store.path / run) for run in store}


def _last(events: Iterable[Event], progress: Any) -> Event:
    """Send progress, without waiting for an answer. Returns the last event."""
    for event in events:
        if isinstance(event, Progress) and not event.finished:
            progress.put_nowait.remote(event)
    return event


def _files(folder: Path) -> Folder:
    return {name: (folder / name).read_bytes() for name in (*sums_of(folder / SUMS), SUMS)}
