"""Work on a Ray cluster: one task for each piece, and a board on which they write how far they are.

Where a task sees the folder of the store, it works on it as a process of this machine would, with locks and
checkpoints. Where it does not, it trains in a folder of its own and sends the finished runs; one that is killed there
begins anew. When the process that asked is interrupted, its tasks save what they do; when it is killed, Ray kills them
too, and the same command goes on where each of them saved last.
"""

import logging
import os
import signal
import socket
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import ray
import torch
from ray._private import ray_constants
from ray.exceptions import RayError, RayTaskError
from ray.util.queue import Queue
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tpr_attention.experiments.checkpoints import Every
from tpr_attention.experiments.files import SUMS, sums, sums_of, write_folder
from tpr_attention.experiments.locks import HeldError, locked
from tpr_attention.experiments.progress import Event, Failure, Progress, Waiting
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.store import Store, StoreError
from tpr_attention.experiments.work import Work, do, failed

__all__ = ["on_ray"]

# A Ray of our own reports to nobody and does not ask the network in which cloud it is; another is tried once.
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0", "http_proxy": "http://127.0.0.1:9"}
ONCE = {"RAY_gcs_server_port_wait_time_s": "1"}
PATIENCE = 5.0  # seconds in which others have to answer
PAUSE = 0.5  # seconds between looks at the board
LATER = 1.0  # seconds after which work that another process holds is tried again
GRACE = 10.0  # seconds that a task has to save what it does


class _Folder(NamedTuple):
    """A finished run: its files, and their checksums where they were written."""

    run: str
    files: dict[str, bytes]
    sums: bytes


_End = tuple[Event, list[_Folder]]


def on_ray(
    address: str | None = None, *, tries: int = 3, workers: int | None = None, shared: bool = True
) -> Callable[[Sequence[Work], Store, Every], Generator[Event]]:
    """Do work on the Ray cluster at an address, or on one that is started on this machine and ends with the work.

    A process that is connected to a cluster uses that one.

    Args:
        tries: How often work is begun whose process or node dies.
        workers: Tasks at the same time on a cluster that is started here; as many as there are cores if not said.
        shared: Whether tasks look for the folder of the store; if not, all send what they trained.
    """

    def execute(work: Sequence[Work], store: Store, every: Every) -> Generator[Event]:
        locks = store.path.resolve() / ".locks"
        for token in locks.glob("seen-*"):
            with suppress(HeldError), locked(locks, [token.name]):
                pass  # its process was killed
        if work:
            with _connected(address, workers), _shown(locks) as token:
                yield from _Tasks(work, store, token if shared else None, every, tries).events()

    return execute


@contextmanager
def _connected(address: str | None, workers: int | None) -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    connect = partial(ray.init, log_to_driver=False, logging_level=logging.ERROR)
    try:
        # Or Ray would take 127.0.0.1 for the address of this machine in its network, and listen there.
        with patch.object(ray_constants, "ENABLE_RAY_CLUSTER", False), _set(ALONE if address is None else ONCE):
            if address is None:
                connect("local", num_cpus=workers, include_dashboard=False, _node_ip_address="127.0.0.1")
            else:
                _knock(address)
                connect(address)
    except (OSError, ValueError, RuntimeError, ImportError, AttributeError) as error:
        where = "on this machine" if address is None else f"at {address}"
        raise SpecError(f"ray: no cluster {where}: {str(error).splitlines()[0]}") from error
    if callable(handler):
        signal.signal(signal.SIGTERM, handler)  # Ray has put its own
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _set(settings: Mapping[str, str]) -> Iterator[None]:
    """Settings in the environment, while Ray and its processes begin."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _knock(address: str) -> None:
    """Whether anybody is there at all: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if address != "auto":
        if not port.isdecimal():
            raise ValueError("expected an address such as auto or 10.0.0.1:6379")
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()


@contextmanager
def _shown(folder: Path) -> Iterator[Path]:
    """A token in the store: those who find it see the store, and go on while it is there."""
    token = f"seen-{uuid.uuid4().hex}"
    with locked(folder, [token]):
        yield folder / token


class _Tasks:
    def __init__(self, work: Sequence[Work], store: Store, token: Path | None, every: Every, tries: int) -> None:
        self.later = [(0.0, piece) for piece in work]
        self.store, self.token, self.every, self.tries = store, token, every, tries
        self.deaths: Counter[int] = Counter()
        self.running: dict[Any, Work] = {}
        self.begun: set[int] = set()
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        self.board: Any = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here}).actor
        # Ray's own retries would not be told, and those after a lack of memory not be counted.
        self.task = ray.remote(num_cpus=1, max_retries=0)(_task)

    def events(self) -> Generator[Event]:
        try:
            while self.later or self.running:
                now = time.monotonic()
                for work in [work for due, work in self.later if due <= now]:
                    self._begin(work)
                self.later = [(due, work) for due, work in self.later if due > now]
                ended = ray.wait(list(self.running), timeout=PAUSE)[0] if self.running else []
                yield from self._told()
                for task in ended:
                    yield self._end(task, self.running.pop(task))
                if not self.running:
                    time.sleep(PAUSE if self.later else 0)
        finally:
            self._stop()

    def _begin(self, work: Work) -> None:
        missing = tuple(spec for spec in work.specs if spec.digest not in self.store)
        work = work._replace(specs=missing or work.specs)
        texts = [spec.to_json() for spec in work.specs]
        self.running[self.task.remote(work.number, texts, self.token, self.every, self.board)] = work

    def _told(self) -> list[Progress]:
        """What is new on the board; if that is lost, nothing is shown until the end."""
        told: list[Progress] = []
        with suppress(RayError):
            size = ray.get(self.board.qsize.remote(), timeout=PATIENCE)
            told = ray.get(self.board.get_nowait_batch.remote(size), timeout=PATIENCE)
        self.begun |= {event.group for event in told}
        working = {work.number for work in self.running.values()}
        return [event for event in told if event.group in working]

    def _end(self, task: Any, work: Work) -> Event:
        self.begun.discard(work.number)
        event: Event
        try:
            event, folders = ray.get(task)
            for folder in folders:
                _keep(folder, self.store)
        except HeldError as held:
            event = Waiting(work.number, _runs(work), str(held))
        except RayTaskError as error:
            event = failed(work, str(error.cause), self.store)
        except RayError as error:
            event = self._again(work, str(error).splitlines()[0])
        except (OSError, StoreError) as error:
            event = failed(work, str(error), self.store)
        if isinstance(event, Waiting):
            self.later.append((time.monotonic() + LATER, work))
        return event

    def _again(self, work: Work, reason: str) -> Event:
        """The process or the node of a task has died: it is begun again where it was saved last."""
        self.deaths[work.number] += 1
        if self.deaths[work.number] < self.tries:
            return Waiting(work.number, _runs(work), f"{reason} It is begun again.")
        return failed(work, f"{reason} That was the last of {self.tries} times.", self.store)

    def _stop(self) -> None:
        """Let every task that has begun save what it does, and end the others."""
        if self.token is not None:
            self.token.unlink(missing_ok=True)
        saving = [task for task, work in self.running.items() if self.token is not None and work.number in self.begun]
        with suppress(RayError):
            for task in self.running.keys() - saving:
                ray.cancel(task)
            for task in ray.wait(saving, num_returns=len(saving), timeout=GRACE)[1] if saving else ():
                ray.cancel(task)


def _keep(folder: _Folder, store: Store) -> None:
    if sums(folder.files) != folder.sums:
        raise StoreError(f"{folder.run}: changed on its way")
    with locked(store.path / ".locks", [folder.run]):
        if folder.run not in store:
            write_folder(store.path / folder.run, folder.files)


def _runs(work: Work) -> tuple[str, ...]:
    return tuple(spec.digest for spec in work.specs)


def _task(number: int, texts: list[str], token: Path | None, every: Every, board: Any) -> tuple[Event, list[_Folder]]:
    """What is done at the other end: one piece of work, in the store or in a folder of its own."""
    torch.set_num_threads(1)
    work = Work(number, tuple(map(RunSpec.from_json, texts)))
    if token is not None and token.exists():
        return _last(do(work, Store(token.parents[1]), every, lambda: not token.exists()), board), []
    with tempfile.TemporaryDirectory() as path:
        store = Store(path, create=True)
        event = _last(do(work, store, every), board)
        if isinstance(event, Failure):
            raise RuntimeError(event.reason)  # to be noted where the store is
        return event, [_folder(store.path / run) for run in store]


def _last(events: Iterable[Event], board: Any) -> Event:
    """The last event; those before are written on the board, and nobody waits for that."""
    for event in events:
        if isinstance(event, Progress) and not event.finished:
            board.put_nowait.remote(event)
    return event


def _folder(path: Path) -> _Folder:
    listed = path / SUMS
    return _Folder(path.name, {name: (path / name).read_bytes() for name in sums_of(listed)}, listed.read_bytes())
