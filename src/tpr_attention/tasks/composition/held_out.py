"""What a split holds out of a grid; training has the rest (sec. 4).

A split is a predicate on factors, row by row. One of your own is one line:

>>> from tpr_attention.tasks.composition.factors import dsprites
>>> blue_hearts = lambda factors: factors.has("shape", "heart") & factors.has("colour", "blue")
>>> HeldOut(dsprites(), blue_hearts).share  # one of nine
0.1111111111111111
"""

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from tpr_attention.functional.signature import nearest
from tpr_attention.imports import ImportPathError, is_path, load
from tpr_attention.tasks.composition.encoding import Encoding
from tpr_attention.tasks.composition.factors import MOST_COMBINATIONS, Column, Factors, Grid

__all__ = ["HeldOut", "Split", "expect_no_leak", "find_split"]

SAME = 1e-9  # fillers that differ by less are taken for equal

Split = Callable[[Factors], Bool[Tensor, "n"]]
"""A predicate on factors, row by row: true where a combination is held out."""


def find_split(split: str | Mapping[str, Any] | Split, names: Mapping[str, Split], grid: Grid) -> Split:
    """The predicate that an option stands for.

    Args:
        split: One of `names`, the import path of a predicate, a predicate, or a combination such as
            `{"shape": "heart", "colour": "blue"}`: a label or value for each column that is named.

    >>> from tpr_attention.tasks.composition.factors import dsprites
    >>> HeldOut(dsprites(), find_split({"shape": "heart", "scale": 0.5}, {}, dsprites())).share  # one of eighteen
    0.05555555555555555
    """
    if isinstance(split, Mapping):
        return _combination(split, grid)
    if callable(split):
        return split
    if isinstance(split, str) and is_path(split):
        try:
            return load(split)
        except ImportPathError as error:
            raise ValueError(f"split: {error}") from error
    if split in names:
        return names[split]
    raise ValueError(
        f"split: expected one of {list(names)}, a path like 'package.module:name' or a combination of classes, "
        f"got {split!r}{nearest(split, names)}"
    )


def _combination(wanted: Mapping[str, Any], grid: Grid) -> Split:
    if not wanted or not set(wanted) <= set(grid.names):
        raise ValueError(f"split: expected classes for some of {list(grid.names)}, got {dict(wanted)!r}")
    numbers = {name: _class(grid.columns[grid.index(name)], value) for name, value in wanted.items()}
    return lambda factors: torch.stack([factors.column(name) == number for name, number in numbers.items()]).all(0)


def _class(column: Column, value: object) -> int:
    """Which class has this label or, to nine digits, this value."""
    found = [k for k, label in enumerate(column.labels) if label == str(value)]
    if not found and isinstance(value, int | float):
        found = [k for k, one in enumerate(column.values) if abs(one - value) <= SAME * max(1.0, abs(value))]
    if not found:
        known = column.labels or column.values
        raise ValueError(f"split: expected one of {list(known)} for {column.name!r}, got {value!r}")
    return found[0]


class HeldOut:
    """What a split holds out of a grid, as a table over the columns that it reads.

    The other columns are free. The table is small (nine entries for red squares) however large the grid is.
    """

    def __init__(self, grid: Grid, split: Split) -> None:
        self.grid = grid
        probe = grid.sample(4096, torch.Generator().manual_seed(0))
        answer, read = _ask(split, probe, len(probe))
        while True:
            self.names = tuple(name for name in grid.names if name in read)
            sizes = [grid.sizes[grid.index(name)] for name in self.names]
            if prod(sizes) > MOST_COMBINATIONS:
                raise ValueError(
                    f"split: expected one that reads columns of at most {MOST_COMBINATIONS} combinations, "
                    f"got {prod(sizes)} of {list(self.names)}"
                )
            table, also = _ask(split, grid.combinations(self.names), prod(sizes))
            self.table = table.reshape(sizes)
            if also <= read:
                break
            read |= also  # it reads another column only where the first ones have certain values
        if not torch.equal(self(probe), answer):
            raise ValueError("split: expected one that looks at each row by itself, the same way at each call")

    def __call__(self, factors: Factors) -> Bool[Tensor, "n"]:
        """Which of these objects are held out."""
        return self.table[tuple(factors.column(name) for name in self.names)].expand(len(factors))

    @property
    def share(self) -> float:
        """The part of the grid that is held out."""
        return self.table.double().mean().item()

    def matrix(self, rows: Sequence[str], columns: Sequence[str]) -> Bool[Tensor, "rows columns"]:
        """The table, with the combinations of some columns of the grid as rows and those of others as columns.

        Together they must have all that the split reads; what else they have repeats the entries.
        """
        names = (*rows, *columns)
        sizes = [self.grid.sizes[self.grid.index(name)] for name in names]
        table = self.table.permute([self.names.index(name) for name in names if name in self.names])
        table = table[tuple(slice(None) if name in self.names else None for name in names)].expand(sizes)
        return table.reshape(prod(sizes[: len(rows)]), prod(sizes[len(rows) :]))


def expect_no_leak(encoding: Encoding, held_out: HeldOut) -> None:
    """Check that no held-out object looks like one that is not: that would be a leak into training."""
    touched = [j for j, table in enumerate(encoding.tables) if {*table.columns} & {*held_out.names}]
    shared = {*held_out.names}.union(*(encoding.tables[j].columns for j in touched))
    names = tuple(name for name in encoding.grid.names if name in shared)
    count = prod(encoding.grid.sizes[encoding.grid.index(name)] for name in names)
    if count > MOST_COMBINATIONS:
        raise ValueError(
            f"split: expected at most {MOST_COMBINATIONS} combinations of {list(names)}, which it reads or which share "
            f"a role with what it reads, got {count}"
        )
    objects = encoding.grid.combinations(names)
    rows, looks = encoding.numbers(objects) - torch.tensor(encoding.starts), torch.zeros(count, dtype=torch.long)
    for j in touched:
        rounded = (encoding.tables[j].fillers.double() / SAME).round()
        kinds = torch.unique(rounded, dim=0, return_inverse=True)[1]
        looks = torch.unique(looks * len(kinds) + kinds[rows[:, j]], return_inverse=True)[1]
    held = held_out(objects)
    doubles = ~held & torch.isin(looks, looks[held])
    if doubles.any():
        double = int(doubles.nonzero()[0])
        original = int((held & (looks == looks[double])).nonzero()[0])
        out, left = ({name: objects.row(number)[name] for name in names} for number in (original, double))
        raise ValueError(
            f"split: it holds out {out} and not {left}, which have the same fillers, so that what it holds out would "
            "be in training all the same"
        )


class _Watch(UserDict[str, Tensor]):
    """Columns that note which of them are read."""

    def __init__(self, columns: Mapping[str, Tensor]) -> None:
        super().__init__(columns)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Tensor:
        self.read.add(name)
        return self.data[name]


def _ask(split: Split, factors: Factors, count: int) -> tuple[Bool[Tensor, "n"], set[str]]:
    """What the split says, and which columns it read to say it."""
    watched, watch = Factors(factors.grid, dict(factors.columns)), _Watch(factors.columns)
    object.__setattr__(watched, "columns", watch)  # only now, so that checks of the constructor's types are not noted
    try:
        answer = split(watched)
    except Exception as error:
        raise ValueError(f"split: {error}") from error
    if not isinstance(answer, Tensor) or answer.dtype != torch.bool or answer.shape != (count,):
        got = f"{answer.dtype} {list(answer.shape)}" if isinstance(answer, Tensor) else type(answer).__name__
        raise ValueError(f"split: expected a boolean for each of {count} rows, got {got}")
    return answer, watch.read
