"""Atomic, checksummed files."""

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = [
    "LINK",
    "SUMS",
    "faults",
    "read_checked",
    "sums",
    "sums_of",
    "write_checked",
    "write_fault",
    "write_file",
    "write_folder",
]

SUMS = "SHA256SUMS"
"""The checksums of a folder's files, in the format of `sha256sum --check`."""

LINK = "a symbolic link, which is not followed"


def write_file(path: Path, data: bytes) -> None:
    """Write a file completely or not at all: under a temporary name, synchronised, then renamed."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
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
    """Write a file, and its checksum beside it; if that fails, there is no file."""
    path.unlink(missing_ok=True)
    write_file(path.with_name(f"{path.name}.sha256"), sums({path.name: data}))
    write_file(path, data)


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files with their checksums, completely or not at all."""
    partial = path.with_name(f".{path.name}")
    try:
        shutil.rmtree(partial, ignore_errors=True)  # left by a killed process
        partial.mkdir()
        for name, data in {**files, SUMS: sums(files)}.items():
            write_file(partial / name, data)
        partial.rename(path)
        _sync(path.parent)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def read_checked(folder: Path, name: str) -> bytes:
    """Read a file of such a folder; raise ValueError if its checksum differs, or if it is a symbolic link."""
    if folder.is_symlink() or (folder / name).is_symlink():
        raise ValueError(LINK)
    data = (folder / name).read_bytes()
    if sums_of(folder / SUMS).get(name) != hashlib.sha256(data).hexdigest():
        raise ValueError("changed since it was written: its SHA-256 differs")
    return data


def sums(files: Mapping[str, bytes]) -> bytes:
    """The checksums of files, one per line."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()).encode()


def sums_of(path: Path) -> dict[str, str]:
    """Read a file of checksums. Returns them by file name; a line of another form is taken for a name."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    pairs = (line.partition("  ") for line in lines if line)
    return {name or checksum: checksum for checksum, _, name in pairs}


def faults(listed: Path, names: Iterable[str]) -> list[tuple[Path, str]]:
    """Compare files with a list of checksums that should name them. Returns those with a fault, and the fault."""
    try:
        expected = sums_of(listed)
    except OSError as error:
        return [(listed, f"cannot be read: {error.strerror}")]
    unlisted = [(listed.parent / name, "not among the checksums") for name in names if name not in expected]
    foreign = [(listed, f"names {name!r}, which is no file of its folder") for name in expected if not _is_plain(name)]
    checked = [
        (listed.parent / name, _fault(listed.parent / name, expected[name])) for name in filter(_is_plain, expected)
    ]
    return unlisted + foreign + [(path, fault) for path, fault in checked if fault is not None]


def _is_plain(name: str) -> bool:
    """Whether a name is that of a file directly in a folder."""
    return name not in ("", ".", "..") and "/" not in name and "\\" not in name and "\0" not in name


def _fault(path: Path, checksum: str) -> str | None:
    if path.is_symlink():
        return LINK
    try:
        data = path.read_bytes()
    except (FileNotFoundError, ValueError):  # the latter for a name that no file can have
        return "missing"
    except OSError as error:
        return f"unreadable: {error.strerror}"
    if hashlib.sha256(data).hexdigest() == checksum:
        return None
    return "changed or truncated" if data else "empty"


def write_fault(error: OSError, size: int) -> str:
    """Why so many bytes could not be written.

    >>> write_fault(OSError(errno.ENOSPC, "No space left on device"), 51_300)
    'No space left on device; 51.3 kB are needed'
    """
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return f"{error.strerror or error}" + (f"; {_amount(size)} are needed" if is_full else "")


def _amount(size: int) -> str:
    """A number of bytes in a unit that shows it.

    >>> _amount(413), _amount(2_340_000_000)
    ('413 bytes', '2.3 GB')
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"


def _sync(folder: Path) -> None:
    """Make a rename in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
