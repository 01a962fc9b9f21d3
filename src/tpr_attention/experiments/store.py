"""A folder of finished runs: `<store>/<digest>/{spec.json, curve.parquet, weights.safetensors, provenance.json}`.

A run is there as a whole or not at all: its folder is filled under another name and then renamed. Every file has its
SHA-256 beside it, and one that was changed is never read.
"""

import json
import os
import tempfile
import time
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
import polars as pl
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tpr_attention.experiments.files import (
    SUMS,
    faults,
    read_checked,
    sums,
    sums_of,
    write_checked,
    write_file,
    write_folder,
)
from tpr_attention.experiments.spec import RunSpec, SpecError

__all__ = ["Store", "StoreError"]

SCHEMA = 2
THIS = json.dumps({"schema": SCHEMA}).encode()
LABEL, TABLE, FAILURES = "store.json", "runs.parquet", "failures.jsonl"
RUN = SPEC, CURVE, WEIGHTS, PROVENANCE = "spec.json", "curve.parquet", "weights.safetensors", "provenance.json"
KEYS = [key.name for key in fields(RunSpec)]
AT_ONCE = 500  # runs of which a table is in memory
Read = TypeVar("Read")
KINDS: dict[object, type[pl.DataType]] = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String}


class StoreError(RuntimeError):
    """A store that cannot be read or written; the message names the path."""


class Store:
    """Finished runs by digest."""

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = Path(path)
        try:
            self._open(self.path / LABEL, create)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be a store: {error.strerror}") from error

    def _open(self, label: Path, create: bool) -> None:
        if create and not label.exists():
            known = (LABEL, f"{LABEL}.sha256")  # and what a killed process left
            if self.path.exists() and (
                not self.path.is_dir()
                or any(not path.name.strip(".").startswith(known) for path in self.path.iterdir())
            ):
                raise StoreError(f"{self.path}: expected a store or a new folder, found something else")
            self.path.mkdir(parents=True, exist_ok=True)
            write_file(label.with_name(f"{LABEL}.sha256"), sums({LABEL: THIS}))
            write_file(label, THIS)
        elif create:
            probe = self.path / f".probe.{os.getpid()}"
            probe.touch()  # better now than after the first training
            probe.unlink()
        if not label.exists():
            raise StoreError(f"{self.path}: no store here; `tpr-attention reproduce` and `run` make one")
        try:
            found = _object(label.read_bytes()).get("schema")
        except ValueError as error:
            raise StoreError(f"{label}: cannot be read: {error}") from error
        if found != SCHEMA:
            raise StoreError(f"{label}: written with schema {found!r}, this version reads {SCHEMA}")

    def __contains__(self, digest: str) -> bool:
        return (self.path / digest / SPEC).exists()

    def __iter__(self) -> Iterator[str]:
        """The digests of all runs, sorted."""
        return (folder.name for folder in self._folders() if folder.name in self)

    def _folders(self) -> list[Path]:
        with os.scandir(self.path) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir() and not entry.name.startswith("."))

    def find(self, prefix: str) -> str:
        """The digest of the only run whose digest begins so."""
        found = [digest for digest in self if digest.startswith(prefix)]
        if len(found) != 1:
            near = f"{len(found)} runs: {', '.join(found[:5])}" if found else "no run"
            raise StoreError(f"{self.path}: expected one run that begins with {prefix!r}, found {near}")
        return found[0]

    def save(
        self,
        spec: RunSpec,
        curve: pl.DataFrame,
        weights: Mapping[str, np.ndarray],
        provenance: Mapping[str, object],
    ) -> None:
        """Add a finished run, unless it is there."""
        if spec.digest in self:
            return
        table = BytesIO()
        curve.write_parquet(table)
        files = {
            CURVE: table.getvalue(),
            WEIGHTS: save({name: np.asarray(array, order="C") for name, array in weights.items()}),
            PROVENANCE: (json.dumps(provenance, indent=1, sort_keys=True) + "\n").encode(),
            SPEC: (spec.to_json() + "\n").encode(),
        }
        try:
            write_folder(self.path / spec.digest, files)
        except OSError as error:
            if spec.digest not in self:  # another process may have been faster
                needed = f"{sum(map(len, files.values())) / 1e6:.1f} MB are needed"
                path = self.path / spec.digest
                raise StoreError(f"{path}: cannot be written: {error.strerror}; {needed}") from error

    def spec(self, digest: str) -> RunSpec:
        """What was trained."""
        return self._read(digest, SPEC, lambda data: RunSpec.of(_object(data)))

    def curve(self, digest: str) -> pl.DataFrame:
        """The losses; see `points.curve`."""
        return self._read(digest, CURVE, pl.read_parquet)

    def weights(self, digest: str) -> dict[str, np.ndarray]:
        """The final parameters and buffers."""
        return self._read(digest, WEIGHTS, lambda data: dict(load(data)))

    def provenance(self, digest: str) -> dict[str, object]:
        """Where the run comes from, its seconds and its number of parameters."""
        return self._read(digest, PROVENANCE, _object)

    def _read(self, digest: str, name: str, parse: Callable[[bytes], Read]) -> Read:
        path = self.path / digest / name
        try:
            return parse(read_checked(path.parent, name))
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, SpecError, SafetensorError, pl.exceptions.PolarsError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error

    def faults(self) -> Iterator[tuple[Path, str]]:
        """Which files are missing, torn or changed, and how; also those that no checksum vouches for."""
        for name in (LABEL, TABLE):
            if name == LABEL or (self.path / name).exists():
                yield from faults(self.path / f"{name}.sha256")
        for folder in self._folders():
            found = faults(folder / SUMS)
            yield from found
            known = {SUMS, *RUN}
            listed = {path.name for path, _ in found} | set(sums_of(folder / SUMS) if (folder / SUMS).exists() else ())
            yield from ((folder / name, "not among the checksums") for name in sorted(known - listed - {SUMS}))
            for path in sorted(folder.iterdir()):
                if path.name not in known:
                    yield path, "does not belong here"

    def note_failure(self, runs: Iterable[str], reason: str) -> None:
        """Keep a record of runs that could not be trained."""
        line = json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "runs": [*runs], "why": reason})
        try:
            with (self.path / FAILURES).open("ab+") as file:
                if file.tell() and not _ends_line(file):
                    file.write(b"\n")  # the last one was torn
                file.write(line.encode() + b"\n")
        except OSError as error:
            raise StoreError(f"{self.path / FAILURES}: cannot be written: {error.strerror}") from error

    def failures(self) -> tuple[list[dict[str, object]], int]:
        """What was noted, and how many lines were torn and are left out."""
        path = self.path / FAILURES
        found, torn = [], 0
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                found.append(_object(line))
            except ValueError:
                torn += 1
        return found, torn

    def curves(self, digests: Iterable[str]) -> pl.DataFrame:
        """The curves of these runs under each other, with the run in a further column."""
        frames = [self.curve(digest).select(pl.lit(digest).alias("run"), pl.all()) for digest in digests]
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema={"run": pl.String})

    def specs(self, digests: Iterable[str]) -> pl.DataFrame:
        """These runs and their specs, one a row, with the step at which a run diverged."""
        rows = [{"run": one, **_row(self.spec(one)), "diverged_at": self.diverged_at(one)} for one in digests]
        return pl.DataFrame(rows, schema={"run": pl.String, **_kinds(), "diverged_at": pl.Int64})

    def table(self, digests: Iterable[str]) -> pl.DataFrame:
        """The curves of these runs under each other, with the run and its spec in further columns."""
        digests = list(digests)
        return self.specs(digests).join(self.curves(digests), on="run", how="left", maintain_order="left_right")

    def diverged_at(self, digest: str) -> int | None:
        """The step that a run could not take, if it diverged."""
        divergence = self.provenance(digest).get("diverged")
        return divergence.get("step") if isinstance(divergence, dict) else None

    def write_table(self) -> Path:
        """One Parquet file over all runs, for polars, pandas and the like; made in parts, so that memory suffices."""
        path, digests = self.path / TABLE, list(self)
        try:
            with tempfile.TemporaryDirectory(prefix=".table.", dir=self.path) as folder:
                parts = []
                for start in range(0, max(1, len(digests)), AT_ONCE):
                    parts.append(Path(folder) / f"{start}.parquet")
                    self.table(digests[start : start + AT_ONCE]).write_parquet(parts[-1])
                whole = Path(folder) / TABLE
                pl.concat([pl.scan_parquet(part, glob=False) for part in parts], how="diagonal_relaxed").sink_parquet(
                    whole
                )
                write_checked(path, whole.read_bytes())
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
        return path


def _kinds() -> dict[str, typing.Any]:
    """The columns of a spec: what is not a number or a text is written as JSON."""
    return {name: _kind((hint, *typing.get_args(hint))) for name, hint in typing.get_type_hints(RunSpec).items()}


def _kind(parts: tuple[object, ...]) -> typing.Any:
    is_json = any(typing.get_origin(part) in (tuple, Mapping) for part in parts)
    return pl.String if is_json else next(KINDS[part] for part in parts if part in KINDS)


def _row(spec: RunSpec) -> dict[str, object]:
    values = {name: getattr(spec, name) for name in KEYS}
    return {
        name: json.dumps(value if isinstance(value, tuple) else dict(value))
        if isinstance(value, tuple | Mapping)
        else value
        for name, value in values.items()
    }


def _ends_line(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _object(data: bytes) -> dict[str, object]:
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found
