"""Composition tasks from a table of your own: its columns are the factors, their distinct values the classes.

The world is the full product of the classes, whether or not the table has a row for each combination: rows only say
which classes there are and, where columns hold them, the numbers of their fillers. Values are sorted, so that the order
of the rows does not matter.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import polars as pl
import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.tasks.composition.encoding import FillerTable
from tpr_attention.tasks.composition.factors import Column, Grid
from tpr_attention.tasks.composition.held_out import HeldOut, Split, find_split
from tpr_attention.tasks.composition.laws import encode_interaction
from tpr_attention.tasks.composition.pairs import Pairing
from tpr_attention.tasks.composition.task import Composition, expect_every_action, scored_roles

__all__ = ["table_composition"]

READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": partial(pl.read_csv, infer_schema_length=None),  # all rows decide what a column is
    ".parquet": pl.read_parquet,
}
MOST_CLASSES = 1024  # of a factor with one-hot fillers
WAYS = "'one-hot', 'numeric' or a list of columns"


def table_composition(
    path: str = "",
    factors: Mapping[str, Any] | None = None,
    split: str | Mapping[str, Any] | Split | None = None,
    interaction: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    sha256: str | None = None,
    require_change: bool = False,
    balance_actions: bool = True,
    noise: float = 0.0,
    scored: Literal["all", "factors"] = "all",
) -> Composition:
    """A task whose factors are columns of a CSV or Parquet file; each has an action that replaces it.

    Fillers are "one-hot", "numeric" or given by columns. A numeric factor's values are scaled to x in [-1, 1], and the
    filler is `(x, 1 - |x|)`, as the paper's positions are in one dimension. A list of columns names those that hold the
    filler's numbers, which must be the same in all rows of a class. Shorter fillers end with zeros.

    Args:
        path: The file; its name ends with `.csv` or `.parquet`.
        factors: For each column that is a factor, how its fillers are made. If left out, all columns are factors,
            those of numbers "numeric" and others "one-hot".
        split: The import path of a predicate on factors, a predicate, or the combination that is held out, such as
            `{"shape": "heart", "colour": "blue"}`. If left out, the first classes of the first two factors.
        interaction: A law of your own; see `laws`.
        seed: Of what the interaction's law draws.
        sha256: Of the file, in hexadecimal digits, to be sure that it has not changed; not checked if left out.
        require_change: Whether the transform must differ from the reference in the acted factor.
        balance_actions: Whether all actions of a condition are equally likely, or all of its pairs.
        noise: The standard deviation of noise on the inputs.
        scored: Whether all roles count in the loss, or those of the factors without that of the interaction.
    """
    rows = _read(path, sha256)
    ways = _ways(rows, factors)
    columns = tuple(_column(rows, name) for name in ways)
    grid = Grid(columns, {name: (name,) for name in ways})
    fillers = [_fillers(rows, column, ways[column.name]) for column in columns]
    width = max(filler.shape[1] for filler in fillers)
    tables = tuple(
        FillerTable(name, (name,), torch.nn.functional.pad(filler, (0, width - filler.shape[1])))
        for name, filler in zip(ways, fillers, strict=True)
    )
    encoding = encode_interaction(grid, tables, interaction, seed=seed)
    first = {column.name: (column.labels or column.values)[0] for column in columns[:2]}
    held_out = HeldOut(grid, find_split(first if split is None else split, {}, grid))
    pairing = Pairing(held_out, require_change=require_change, balance_actions=balance_actions)
    expect_every_action(pairing)
    return Composition(encoding, pairing, noise, scored_roles(scored, tuple(ways)))


def _read(path: str, sha256: str | None) -> pl.DataFrame:
    file = Path(path)
    if file.suffix not in READERS:
        raise ValueError(f"path: expected a file that ends with one of {list(READERS)}, got {path!r}")
    if not file.is_file():
        raise ValueError(f"path: no such file: {path!r}")
    if sha256 is not None and sha256 != (found := hashlib.sha256(file.read_bytes()).hexdigest()):
        raise ValueError(f"sha256: {path!r} has another one, {found}; the file has changed")
    try:
        rows = READERS[file.suffix](file)
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as error:
        raise ValueError(f"path: cannot read {path!r}: {error}") from error
    if not len(rows):
        raise ValueError(f"path: expected one or more rows in {path!r}")
    return rows


def _ways(rows: pl.DataFrame, factors: Mapping[str, Any] | None) -> dict[str, str | Sequence[str]]:
    """How the fillers of each factor are made, for columns that can have them."""
    found = {name: "numeric" if kind.is_numeric() else "one-hot" for name, kind in rows.schema.items()}
    ways = dict(found if factors is None else factors)
    if len(ways) < 2:
        raise ValueError(f"factors: expected two or more of {rows.columns}, got {list(ways)}")
    for name, way in ways.items():
        named = list(way) if isinstance(way, list | tuple) else []
        if not (way in ("one-hot", "numeric") or (named and all(isinstance(one, str) for one in named))):
            raise ValueError(f"factors: expected {WAYS} for {name!r}, got {way!r}")
        for one in (name, *named):
            if one not in rows.columns:
                raise ValueError(f"factors: expected columns of the table, {rows.columns}, got {one!r}")
        for one in named if named else [name] if way == "numeric" else []:
            if not rows[one].dtype.is_numeric():
                raise ValueError(f"factors: expected numbers in the column {one!r}, got {rows[one].dtype}")
        for one in (name, *named):
            _expect_whole(rows[one])
    if "loss" in ways:
        raise ValueError("factors: expected other names than 'loss', which is that of the loss")
    return {name: ways[name] for name in rows.columns if name in ways}  # in the table's order: a spec keeps none


def _expect_whole(column: pl.Series) -> None:
    missing = column.is_null()
    if column.dtype.is_float():
        missing |= ~column.is_finite().fill_null(False)
    if missing.any():
        row = missing.arg_true()[0]
        raise ValueError(f"path: expected a value in each row of the column {column.name!r}, row {row + 1} has none")


def _column(rows: pl.DataFrame, name: str) -> Column:
    """The classes of a factor: its distinct values, sorted; those that are no numbers have labels."""
    values = rows[name].unique().sort()
    if len(values) < 2:
        raise ValueError(f"factors: expected two or more classes of {name!r}, got {values.to_list()}")
    if values.dtype.is_numeric():
        return Column(name, tuple(values.cast(pl.Float64).to_list()))
    return Column(name, tuple(range(len(values))), tuple(values.cast(pl.String).to_list()))


def _fillers(rows: pl.DataFrame, column: Column, way: str | Sequence[str]) -> Float[Tensor, "k f"]:
    if way == "numeric":
        values = torch.tensor(column.values, dtype=torch.float64)
        low, high = values.aminmax()
        scaled = 2 * (values - low) / (high - low) - 1
        return torch.stack([scaled, 1 - scaled.abs()], -1)
    if way == "one-hot":
        if len(column.values) > MOST_CLASSES:
            raise ValueError(
                f"factors: expected at most {MOST_CLASSES} classes of {column.name!r} for one-hot fillers, "
                f"got {len(column.values)}"
            )
        return torch.eye(len(column.values), dtype=torch.float64)
    numbers = rows.select(
        pl.col(column.name).alias("class"), *(pl.col(name).alias(f"{k}") for k, name in enumerate(way))
    )
    distinct = numbers.unique().sort("class")
    doubled = distinct.filter(distinct["class"].is_duplicated())
    if len(doubled):
        raise ValueError(
            f"factors: expected one filler for each class, but rows with {column.name} = {doubled['class'][0]} have "
            f"different numbers in {list(way)}"
        )
    return torch.tensor(distinct.drop("class").cast(pl.Float64).rows(), dtype=torch.float64)
