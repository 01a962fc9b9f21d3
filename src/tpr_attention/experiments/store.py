"""A folder of finished runs: `<store>/<digest>/{spec.json, curve.parquet, weights.safetensors, provenance.json}`.

A run is there as a whole or not at all: its folder is filled under another name and then renamed.
"""

import json
import os
import shutil
import typing
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tpr_attention.experiments.files import write_file
from tpr_attention.experiments.spec import RunSpec, SpecError

__all__ = ["Store", "StoreError"]

SCHEMA = 1
LABEL, TABLE = "store.json", "runs.parquet"
SPEC, CURVE, WEIGHTS, PROVENANCE = "spec.json", "curve.parquet", "weights.safetensors", "provenance.json"
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
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                raise StoreError(f"{self.path}: expected a store or a new folder, found something else")
            self.path.mkdir(parents=True, exist_ok=True)
            write_file(label, json.dumps({"schema": SCHEMA}).encode())
        if not label.exists():
            raise StoreError(f"{self.path}: no store here; `tpr-attention reproduce` and `run` make one")
        found = _json(label).get("schema")
        if found != SCHEMA:
            raise StoreError(f"{label}: written with schema {found!r}, this version reads {SCHEMA}")

    def __contains__(self, digest: str) -> bool:
        return (self.path / digest / SPEC).exists()

    def __iter__(self) -> Iterator[str]:
        """The digests of all runs, sorted."""
        with os.scandir(self.path) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
        return (name for name in names if name in self)

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
        folder = self.path / f".{spec.digest}.{os.getpid()}"
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name, data in files.items():
                write_file(folder / name, data)
            folder.rename(self.path / spec.digest)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            if spec.digest not in self:  # another process may have been faster
                raise StoreError(f"{self.path / spec.digest}: cannot be written: {error.strerror}") from error

    def spec(self, digest: str) -> RunSpec:
        """What was trained."""
        path = self.path / digest / SPEC
        try:
            return RunSpec.of(_json(path))
        except SpecError as error:
            raise StoreError(f"{path}: not a spec: {error}") from error

    def curve(self, digest: str) -> pl.DataFrame:
        """The losses; see `points.curve`."""
        path = self.path / digest / CURVE
        try:
            return pl.read_parquet(path, glob=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error

    def weights(self, digest: str) -> dict[str, np.ndarray]:
        """The final parameters and buffers."""
        path = self.path / digest / WEIGHTS
        try:
            return dict(load(path.read_bytes()))
        except (OSError, SafetensorError, ValueError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error

    def provenance(self, digest: str) -> dict[str, object]:
        """Where the run comes from, its seconds and its number of parameters."""
        return _json(self.path / digest / PROVENANCE)

    def table(self, digests: Iterable[str]) -> pl.DataFrame:
        """The curves of these runs under each other, with the run and its spec in further columns."""
        frames = [self.curve(digest).select(*_columns(self.spec(digest)), pl.all()) for digest in digests]
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema={"run": pl.String})

    def write_table(self) -> Path:
        """One Parquet file over all runs, for polars, pandas and the like."""
        path, table = self.path / TABLE, BytesIO()
        self.table(self).write_parquet(table)
        try:
            write_file(path, table.getvalue())
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
        return path


def _columns(spec: RunSpec) -> list[pl.Expr]:
    """A spec as columns: what is not a number or a text is written as JSON."""
    columns = [pl.lit(spec.digest).alias("run")]
    for name, hint in typing.get_type_hints(RunSpec).items():
        kind = next((KINDS[part] for part in (hint, *typing.get_args(hint)) if part in KINDS), None)
        value = getattr(spec, name)
        if typing.get_origin(hint) in (tuple, Mapping) or isinstance(value, tuple):
            kind, value = pl.String, json.dumps(value)
        columns.append(pl.lit(value, dtype=kind or pl.String).alias(name))
    return columns


def _json(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise StoreError(f"{path}: expected a JSON object")
    return found
