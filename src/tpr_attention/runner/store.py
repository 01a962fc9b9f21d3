"""A folder of finished runs.

The folder `<store>/<digest>/` of a run has spec.json, names.json, curve.parquet, weights.safetensors, provenance.json
and SHA256SUMS. A run is stored completely or not at all. A file that was changed is not read. Reading a run imports no
code of a user.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tpr_attention.runner.files import SUMS, faults, read_checked, sums, write_checked, write_file, write_folder
from tpr_attention.training.curves import CURVE as COLUMNS
from tpr_attention.training.spec import RunSpec, SpecError, Training

__all__ = ["CURVE", "WEIGHTS", "Store", "StoreError"]

SCHEMA = 3
LABEL, TABLE, FAILURES = "store.json", "runs.parquet", "failures.jsonl"
SPEC, NAMES, CURVE, WEIGHTS = "spec.json", "names.json", "curve.parquet", "weights.safetensors"
PROVENANCE = "provenance.json"
RUN = (SPEC, NAMES, CURVE, WEIGHTS, PROVENANCE)
PART = 500  # runs whose curves are in memory while the table is written
TRAINING = [f"training.{name}" for name in Training.__struct_fields__ if name != "device"]  # that is not stored
DTYPES: dict[type, pl.DataType] = {bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64(), str: pl.String()}
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
            raise StoreError(f"{self.path}: cannot be a store: {error.strerror}") from error

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
        return (self.path / digest / SPEC).exists()

    def __iter__(self) -> Iterator[str]:
        """The digests of all runs, sorted."""
        return (folder.name for folder in self._folders() if folder.name in self)

    def _folders(self) -> list[Path]:
        with os.scandir(self.path) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir() and not entry.name.startswith("."))

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
                needed = f"{sum(map(len, files.values())) / 1e3:,.0f} kB are needed"
                raise StoreError(f"{path}: cannot be written: {error.strerror}; {needed}") from error

    def spec(self, digest: str) -> RunSpec:
        """The spec of a run."""
        return self._read(digest, SPEC, RunSpec.from_json)

    def names(self, digest: str) -> dict[str, Any]:
        """The names of a run's conditions, metrics, groups and axes."""
        return self._read(digest, NAMES, _object)

    def curve(self, digest: str) -> pl.DataFrame:
        """The curve of a run; see `training.curves.curve`."""
        return self._read(digest, CURVE, pl.read_parquet)

    def weights(self, digest: str) -> dict[str, np.ndarray]:
        """The final parameters and buffers of a run."""
        return self._read(digest, WEIGHTS, lambda data: dict(load(data)))

    def provenance(self, digest: str) -> dict[str, Any]:
        """Versions and machine of a run, its duration and its number of parameters."""
        return self._read(digest, PROVENANCE, _object)

    def diverged_at(self, digest: str) -> int | None:
        """The step at which a run diverged, if it did."""
        divergence = self.provenance(digest).get("diverged")
        return divergence.get("step") if isinstance(divergence, dict) else None

    def _read(self, digest: str, name: str, parse: Callable[[bytes], Read]) -> Read:
        path = self.path / digest / name
        try:
            return parse(read_checked(path.parent, name))
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, SpecError, SafetensorError, pl.exceptions.PolarsError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error

    def faults(self) -> Iterator[tuple[Path, str]]:
        """Check all files. Yields those that are missing, changed, unexpected or without checksum, with the fault."""
        for name in (LABEL, TABLE):
            if name == LABEL or (self.path / name).exists():
                yield from faults(self.path / f"{name}.sha256", [name])
        for folder in self._folders():
            yield from faults(folder / SUMS, RUN)
            others = sorted({path.name for path in folder.iterdir()} - {SUMS, *RUN})
            yield from ((folder / name, "does not belong here") for name in others)

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
            except ValueError:
                incomplete += 1
        return found, incomplete

    def specs(self, digests: Iterable[str]) -> pl.DataFrame:
        """One row per run: task, model, seed, every option and training field, and the step at which it diverged.

        Options are columns such as `task.<option>`, null where a run does not have it. An option that is a list or a
        mapping, or of different types in different runs, is JSON text.
        """
        digests = list(digests)
        rows = [self.spec(digest).keys() for digest in digests]
        known = dict.fromkeys(key for row in rows for key in row)
        options = [key for section in ("task.", "model.") for key in known if key.startswith(section)]
        return pl.DataFrame(
            [
                pl.Series("run", digests, pl.String),
                *(
                    _column(key, [row.get(key) for row in rows])
                    for key in ("task", "model", "seed", *options, *TRAINING)
                ),
                pl.Series("diverged_at", [self.diverged_at(digest) for digest in digests], pl.Int64),
            ]
        )

    def curves(self, digests: Iterable[str]) -> pl.DataFrame:
        """The curves of runs below each other, with the run as first column."""
        frames = [self.curve(digest).select(pl.lit(digest).alias("run"), *COLUMNS) for digest in digests]
        return pl.concat([pl.DataFrame(schema={"run": pl.String(), **COLUMNS}), *frames])

    def table(self, digests: Iterable[str]) -> pl.DataFrame:
        """The curves of runs below each other, with the run and the columns of `specs`."""
        return self._joined(self.specs(digests))

    def _joined(self, specs: pl.DataFrame) -> pl.DataFrame:
        return specs.join(self.curves(specs["run"]), on="run", how="left", maintain_order="left_right")

    def write_table(self) -> Path:
        """Write the table of all runs as one Parquet file, in parts so that curves of few runs are in memory."""
        path, specs = self.path / TABLE, self.specs(self)
        try:
            with tempfile.TemporaryDirectory(prefix=".table.", dir=self.path) as folder:
                parts = [Path(folder) / f"{start}.parquet" for start in range(0, max(1, len(specs)), PART)]
                for number, part in enumerate(parts):
                    self._joined(specs[number * PART : (number + 1) * PART]).write_parquet(part)
                whole = Path(folder) / TABLE
                pl.concat([pl.scan_parquet(part, glob=False) for part in parts]).sink_parquet(whole)
                write_checked(path, whole.read_bytes())
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
        return path


def _check_schema(label: Path) -> None:
    if not label.exists():
        raise StoreError(f"{label.parent}: no store here; `tpr-attention reproduce` and `run` make one")
    try:
        found = _object(label.read_bytes()).get("schema")
    except ValueError as error:
        raise StoreError(f"{label}: cannot be read: {error}") from error
    if isinstance(found, int) and found < SCHEMA:
        raise StoreError(f"{label}: written with schema {found} by an earlier version; train anew into another folder")
    if found != SCHEMA:
        raise StoreError(f"{label}: written with schema {found!r}, this version reads {SCHEMA}")


def _column(name: str, values: Sequence[object]) -> pl.Series:
    """Values as a column: JSON text if they are not all null or of one simple type."""
    kinds = {type(value) for value in values if value is not None} or {str}
    kind = float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else None
    if kind in DTYPES:
        return pl.Series(name, values, DTYPES[kind])
    return pl.Series(name, [None if value is None else json.dumps(value) for value in values], pl.String)


def _json(values: Mapping[str, object]) -> bytes:
    return (json.dumps(values, indent=1, sort_keys=True) + "\n").encode()


def _object(data: bytes) -> dict[str, Any]:
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found
