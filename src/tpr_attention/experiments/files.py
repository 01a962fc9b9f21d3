"""Writing files so that what is there is whole, and reading them so that what was changed is not taken for it."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

__all__ = ["SUMS", "faults", "read_checked", "sums", "sums_of", "write_checked", "write_file", "write_folder"]

SUMS = "SHA256SUMS"
"""The checksums of a folder's files, as `sha256sum --check` reads them."""


def write_file(path: Path, data: bytes) -> None:
    """All of it or nothing: under another name, to the disk, then renamed."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def write_checked(path: Path, data: bytes) -> None:
    """A file, and its checksum beside it."""
    write_file(path, data)
    write_file(path.with_name(f"{path.name}.sha256"), sums({path.name: data}))


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """A folder of files and their checksums, which is there as a whole or not at all."""
    partial = path.with_name(f".{path.name}")
    try:
        shutil.rmtree(partial, ignore_errors=True)  # left by a process that was killed
        partial.mkdir()
        for name, data in {**files, SUMS: sums(files)}.items():
            write_file(partial / name, data)
        partial.rename(path)
        _sync(path.parent)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def read_checked(folder: Path, name: str) -> bytes:
    """A file of such a folder; a ValueError if it is not what was written."""
    data = (folder / name).read_bytes()
    if sums_of(folder / SUMS).get(name) != hashlib.sha256(data).hexdigest():
        raise ValueError("changed since it was written: its SHA-256 is another")
    return data


def sums_of(path: Path) -> dict[str, str]:
    """The checksums in a file, by name."""
    pairs = (line.split("  ", 1) for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def faults(listed: Path) -> list[tuple[Path, str]]:
    """Which files of a list of checksums are missing, torn or changed, and how."""
    try:
        expected = sums_of(listed)
    except OSError as error:
        return [(listed, f"cannot be read: {error.strerror}")]
    found = []
    for name, checksum in expected.items():
        path = listed.with_name(name)
        try:
            data = path.read_bytes()
        except OSError as error:
            found.append((path, "missing" if isinstance(error, FileNotFoundError) else f"unreadable: {error.strerror}"))
            continue
        if hashlib.sha256(data).hexdigest() != checksum:
            found.append((path, "changed, or torn" if data else "empty"))
    return found


def sums(files: Mapping[str, bytes]) -> bytes:
    """The checksums of files, one a line."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()).encode()


def _sync(folder: Path) -> None:
    """So that a renamed entry is there after the power has failed."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
