"""Who trains what: a lock for each run, which the system takes back when its holder dies."""

import fcntl
import json
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

__all__ = ["HeldError", "locked"]


class HeldError(RuntimeError):
    """Another process has the lock; the message names it."""


@contextmanager
def locked(folder: Path, names: Iterable[str]) -> Iterator[None]:
    """Hold the locks of these names, or none of them and raise `HeldError`."""
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(_lock(folder / name))
        yield


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    descriptor = _take(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _take(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 1000, 0).decode(errors="replace")
            os.close(descriptor)
            raise HeldError(_told(path.name, holder)) from None
        if _is_named(descriptor, path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)
            return descriptor
        os.close(descriptor)  # its holder has just let it go, and the name with it


def _is_named(descriptor: int, path: Path) -> bool:
    """Whether the file is still there under its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _told(name: str, holder: str) -> str:
    try:
        found = json.loads(holder)
        who = f"process {found['pid']} on {found['host']}"
    except (ValueError, TypeError, KeyError):
        who = "another process"
    return f"{name} is being trained by {who}"
