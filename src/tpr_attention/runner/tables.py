"""Stored runs as one table."""

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from tpr_attention.runner.files import write_checked
from tpr_attention.runner.store import TABLE, Store, StoreError
from tpr_attention.training.curves import CURVE
from tpr_attention.training.spec import Training
from tpr_attention.training.values import SURROGATES

__all__ = ["curves_of", "specs_of", "table_of", "write_table"]

PART = 500  # runs whose curves are in memory while the table is written
TRAINING = [f"training.{name}" for name in Training.__struct_fields__ if name != "device"]  # that is not stored
DTYPES: dict[type, pl.DataType] = {bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64(), str: pl.String()}


def specs_of(store: Store, digests: Iterable[str]) -> pl.DataFrame:
    """One row per run: task, model, seed, all options and training fields, sources, the step at which it diverged.

    Options are columns such as `task.<option>`, null where a run does not have it. An option that is a list or a
    mapping, or of different types in different runs, is JSON text.
    """
    digests = list(digests)
    specs = [store.spec(digest) for digest in digests]
    rows = [spec.keys() for spec in specs]
    known = dict.fromkeys(key for row in rows for key in row)
    options = [key for section in ("task.", "model.") for key in known if key.startswith(section)]
    return pl.DataFrame(
        [
            pl.Series("run", digests, pl.String),
            *(_column(key, [row.get(key) for row in rows]) for key in ("task", "model", "seed", *options, *TRAINING)),
            _column("sources", [spec.sources or None for spec in specs]),
            pl.Series("diverged_at", [end and end[0] for end in map(store.divergence, digests)], pl.Int64),
        ]
    )


def curves_of(store: Store, digests: Iterable[str]) -> pl.DataFrame:
    """The curves of runs below each other, with the run as first column."""
    frames = [store.curve(digest).select(pl.lit(digest).alias("run"), *CURVE) for digest in digests]
    return pl.concat([pl.DataFrame(schema={"run": pl.String(), **CURVE}), *frames])


def table_of(store: Store, digests: Iterable[str]) -> pl.DataFrame:
    """The curves of runs below each other, with the run and the columns of `specs_of`."""
    return _with_curves(store, specs_of(store, digests))


def write_table(store: Store) -> Path:
    """Write the table of all readable runs as one Parquet file. Curves of few runs are in memory at once."""
    path, specs = store.path / TABLE, specs_of(store, store.readable()[0])
    try:
        # Polars takes only paths that are text.
        here = None if SURROGATES.search(str(store.path.resolve())) else store.path
        with tempfile.TemporaryDirectory(prefix=".table.", dir=here) as folder:
            parts = [Path(folder) / f"{start}.parquet" for start in range(0, max(1, len(specs)), PART)]
            for number, part in enumerate(parts):
                _with_curves(store, specs[number * PART : (number + 1) * PART]).write_parquet(part)
            whole = Path(folder) / TABLE
            pl.concat([pl.scan_parquet(part, glob=False) for part in parts]).sink_parquet(whole)
            write_checked(path, whole.read_bytes())
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def _with_curves(store: Store, specs: pl.DataFrame) -> pl.DataFrame:
    return specs.join(curves_of(store, specs["run"]), on="run", how="left", maintain_order="left_right")


def _column(name: str, values: Sequence[object]) -> pl.Series:
    """Values as a column: JSON text if they are not all null or of one simple type."""
    kinds = {type(value) for value in values if value is not None} or {str}
    kind = float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else None
    if kind in DTYPES:
        return pl.Series(name, values, DTYPES[kind])
    return pl.Series(name, [None if value is None else json.dumps(value) for value in values], pl.String)
