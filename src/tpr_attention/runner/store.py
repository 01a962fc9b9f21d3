"""A folder of finished runs.

The folder `<store>/<digest>/` of a run has spec.json, names.json, curve.parquet, weights.safetensors, provenance.json
and SHA256SUMS. A run is stored completely or not at all. A file that was changed is not read. Reading a run imports no
code of a user.
"""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import polars as pl
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tpr_attention.runner.files import LINK, SUMS, faults, read_checked, sums, write_fault, write_file, write_folder
from tpr_attention.training.curves import CURVE as COLUMNS
from tpr_attention.training.spec import RunSpec, SpecError

__all__ = ["CURVE", "TABLE", "WEIGHTS", "Store", "StoreError"]

SCHEMA = 3
LABEL, TABLE, FAILURES = "store.json", "runs.parquet", "failures.jsonl"
SPEC, NAMES, CURVE, WEIGHTS = "spec.json", "names.json", "curve.parquet", "weights.safetensors"
PROVENANCE = "provenance.json"
RUN = (SPEC, NAMES, CURVE, WEIGHTS, PROVENANCE)
Read = TypeVar("Read")


class StoreError(RuntimeError):
    """A store cannot be read or written; the message names the path."""


class Store:
    """Finished runs by digest."""

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = Path(path)
        try:
            if create:
                self._create()
            _check_schema(self.path / LABEL)
        except OSError as error:
            is_there = create and os.access(self.path, os.F_OK)
            said = "cannot be written" if is_there else "cannot be a store"
            raise StoreError(f"{self.path}: {said}: {error.strerror}") from error

    def _create(self) -> None:
        """Make a new store, or check that the one there is can be written."""
        if (self.path / LABEL).exists():
            probe = self.path / f".probe.{os.getpid()}"
            probe.touch()
            probe.unlink(missing_ok=True)
            return
        own = (LABEL, f"{LABEL}.sha256")  # may have been left by a killed process
        if self.path.exists() and (
            not self.path.is_dir() or any(not path.name.strip(".").startswith(own) for path in self.path.iterdir())
        ):
            raise StoreError(f"{self.path}: expected a store or a new folder, found something else")
        self.path.mkdir(parents=True, exist_ok=True)
        label = json.dumps({"schema": SCHEMA}).encode()
        write_file(self.path / f"{LABEL}.sha256", sums({LABEL: label}))
        write_file(self.path / LABEL, label)

    def __contains__(self, digest: str) -> bool:
        folder = self.path / digest
        return (folder / SPEC).exists() and not folder.is_symlink()

    def __iter__(self) -> Iterator[str]:
        """The digests of all runs, sorted."""
        return (folder.name for folder in self._folders() if folder.name in self)

    def _folders(self, *, are_links: bool = False) -> list[Path]:
        """Its folders, or links to folders, which could be taken for runs."""
        with os.scandir(self.path) as entries:
            found = [entry for entry in entries if entry.is_dir() and entry.is_symlink() == are_links]
            return sorted(Path(entry.path) for entry in found if not entry.name.startswith("."))

    def find(self, prefix: str) -> str:
        """Find the one run whose digest begins with a prefix."""
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
        names: Mapping[str, object],
    ) -> None:
        """Add a finished run, unless it is stored already.

        Args:
            curve: See `training.curves.curve`.
            names: The names of conditions, metrics, groups and axes.
        """
        if spec.digest in self:
            return
        table = BytesIO()
        curve.write_parquet(table)
        files = {
            NAMES: _json(names),
            CURVE: table.getvalue(),
            WEIGHTS: save({name: np.asarray(array, order="C") for name, array in weights.items()}),
            PROVENANCE: _json(provenance),
            SPEC: (spec.to_json() + "\n").encode(),
        }
        path = self.path / spec.digest
        try:
            write_folder(path, files)
        except OSError as error:
            if spec.digest not in self:  # another process may have been faster
                said = write_fault(error, sum(map(len, files.values())))
                raise StoreError(f"{path}: cannot be written: {said}") from error

    def spec(self, digest: str) -> RunSpec:
        """The spec of a run; an error if it is that of another run than the folder's name says."""
        spec = self._read(digest, SPEC, RunSpec.from_json)
        if spec.digest != digest:
            raise StoreError(
                f"{self.path / digest}: its {SPEC} is that of run {spec.digest}: copied, renamed or edited"
            )
        return spec

    def names(self, digest: str) -> dict[str, Any]:
        """The names of a run's conditions, metrics, groups and axes."""
        return self._read(digest, NAMES, lambda data: msgspec.to_builtins(msgspec.json.decode(data, type=_Names)))

    def curve(self, digest: str) -> pl.DataFrame:
        """The curve of a run; see `training.curves.curve`."""
        return self._read(digest, CURVE, _curve)

    def weights(self, digest: str) -> dict[str, np.ndarray]:
        """The final parameters and buffers of a run."""
        return self._read(digest, WEIGHTS, lambda data: dict(load(data)))

    def provenance(self, digest: str) -> dict[str, Any]:
        """Versions and machine of a run, its duration and its number of parameters."""
        return self._read(digest, PROVENANCE, _object)

    def divergence(self, digest: str) -> tuple[int, str] | None:
        """The step at which a run diverged and the first tensor that was not finite; None if it did not."""
        found = self.provenance(digest).get("diverged")
        if not isinstance(found, dict):
            return None
        step, tensor = found.get("step"), found.get("tensor")
        if not isinstance(step, int) or not isinstance(tensor, str):
            raise StoreError(f"{self.path / digest / PROVENANCE}: expected a step and a tensor in 'diverged'")
        return step, tensor

    def check(self, digest: str) -> RunSpec:
        """Read all that a report shows of a run. Returns its spec; raises `StoreError` for what cannot be read."""
        spec, names, curve = self.spec(digest), self.names(digest), self.curve(digest)
        if self.divergence(digest) is None:
            found = set(curve.filter(pl.col("group").is_null()).select("condition", "metric").unique().iter_rows())
            lacks = [pair for pair in product(names["conditions"], names["metrics"]) if pair not in found]
            if lacks:
                condition, metric = lacks[0]
                raise StoreError(f"{self.path / digest / CURVE}: has no {metric!r} under {condition!r}")
        return spec

    def readable(self) -> tuple[dict[str, RunSpec], list[str]]:
        """The runs that can be read, by digest, and a sentence on each of the others."""
        runs, left_out = dict[str, RunSpec](), [f"{path}: {LINK}" for path in self._folders(are_links=True)]
        for digest in self:
            try:
                runs[digest] = self.check(digest)
            except StoreError as error:
                left_out.append(str(error))
        return runs, left_out

    def discard(self, digest: str) -> None:
        """Delete a run, completely or not at all."""
        path = self.path / digest
        gone = path.with_name(f".{digest}.{secrets.token_hex(4)}")
        try:
            path.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{path}: cannot be deleted: {error.strerror}") from error

    def _read(self, digest: str, name: str, parse: Callable[[bytes], Read]) -> Read:
        path = self.path / digest / name
        try:
            return parse(read_checked(path.parent, name))
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError, SpecError, SafetensorError, pl.exceptions.PolarsError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error

    def faults(self) -> Iterator[tuple[Path, str]]:
        """Check all files. Yields those that are missing, changed, unexpected or without checksum, with the fault."""
        for name in (LABEL, TABLE):
            if name == LABEL or (self.path / name).exists():
                yield from faults(self.path / f"{name}.sha256", [name])
        yield from ((path, LINK) for path in self._folders(are_links=True))
        for folder in self._folders():
            found = faults(folder / SUMS, RUN)
            yield from found
            others = sorted({path.name for path in folder.iterdir()} - {SUMS, *RUN})
            yield from ((folder / name, "does not belong here") for name in others)
            if not found:  # each file is as written; but are they those of this run?
                try:
                    self.check(folder.name)
                except StoreError as error:
                    yield folder, str(error).removeprefix(str(folder)).lstrip(": /")

    def note_failure(self, runs: Iterable[str], reason: str) -> None:
        """Record that runs could not be trained."""
        line = json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "runs": [*runs], "why": reason})
        path = self.path / FAILURES
        try:
            with path.open("a") as file:
                file.write(f"\n{line}\n")  # on a line of its own, even if the line before is incomplete
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from error

    def failures(self) -> tuple[list[dict[str, Any]], int]:
        """The recorded failures, and the number of incomplete lines that were skipped."""
        path = self.path / FAILURES
        found, incomplete = [], 0
        for line in filter(None, path.read_bytes().splitlines()) if path.exists() else ():
            try:
                found.append(_object(line))
            except (ValueError, RecursionError):
                incomplete += 1
        return found, incomplete


class _Names(msgspec.Struct):
    """What `names.json` holds."""

    conditions: list[str]
    metrics: Annotated[list[str], msgspec.Meta(min_length=1)]
    groups: dict[str, list[str]] = {}
    axes: dict[str, list[str]] = {}


def _curve(data: bytes) -> pl.DataFrame:
    table = pl.read_parquet(data)
    if table.schema != pl.Schema(COLUMNS):
        raise ValueError(f"expected the columns {', '.join(COLUMNS)}, got {dict(table.schema)}")
    return table


def _check_schema(label: Path) -> None:
    if not label.exists():
        raise StoreError(f"{label.parent}: no store here; `tpr-attention reproduce` and `run` make one")
    try:
        found = _object(label.read_bytes()).get("schema")
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{label}: cannot be read: {error}") from error
    if isinstance(found, int) and found < SCHEMA:
        raise StoreError(f"{label}: written with schema {found} by an earlier version; train anew into another folder")
    if found != SCHEMA:
        raise StoreError(f"{label}: written with schema {found!r}, this version reads {SCHEMA}")


def _json(values: Mapping[str, object]) -> bytes:
    return (json.dumps(values, indent=1, sort_keys=True) + "\n").encode()


def _object(data: bytes) -> dict[str, Any]:
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found
