"""Locks between processes, one file each; the lock of a process that dies is free."""

import json
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["HeldError", "locked"]


class HeldError(RuntimeError):
    """Another process holds the lock; the message names it."""


@contextmanager
def locked(folder: Path, names: Iterable[str]) -> Iterator[None]:
    """Hold the locks of all names; raise `HeldError` and hold none if another process has one of them."""
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(_lock(folder / name))
        yield


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    # An existence lock, filelock's substitute where flock is missing, would outlive a killed process.
    lock = FileLock(path, blocking=False, thread_local=False, fallback_to_soft=False)
    while not lock.is_locked:
        try:
            lock.acquire()
        except Timeout:
            with suppress(FileNotFoundError):  # released in the meantime: once more
                raise HeldError(f"{path.name} is being trained by {_holder(path.read_bytes())}") from None
    try:
        path.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: filelock takes no lock on a file without a name
        lock.release()


def _holder(content: bytes) -> str:
    try:
        found = json.loads(content)
        return f"process {found['pid']} on {found['host']}"
    except (ValueError, TypeError, KeyError):
        return "another process"
