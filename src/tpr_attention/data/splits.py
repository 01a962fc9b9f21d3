"""Which combinations of factors are held out of training: one predicate each; training has the rest (sec. 4).

A split of one's own is one line, and may be given wherever a split is:

>>> from tpr_attention.data.factors import dsprites
>>> blue_hearts = lambda factors: factors.has("shape", "heart") & factors.has("colour", "blue")
>>> HeldOut(dsprites(), blue_hearts).share  # one of nine
0.1111111111111111
"""

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from math import prod

import torch
from jaxtyping import Bool
from torch import Tensor

from tpr_attention.data.factors import Factors, Grid

__all__ = ["SPLITS", "HeldOut", "Split"]

Split = Callable[[Factors], Bool[Tensor, "n"]]
"""A predicate on factors, row by row: true where a combination is held out."""

SPLITS: dict[str, Split] = {
    "scale_pos": lambda factors: (factors.value("scale") > 0.7) & (factors.value("position_x") > 0),
    "square_pos": lambda factors: factors.has("shape", "square") & (factors.value("position_x") > 0),
    "square_red": lambda factors: factors.has("shape", "square") & factors.has("colour", "red"),
}
"""The paper's: numerical factors, one of each kind, categorical factors."""

MOST_COMBINATIONS = 2**24


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
    answer = split(watched)
    if not isinstance(answer, Tensor) or answer.dtype != torch.bool or answer.shape != (count,):
        got = f"{answer.dtype} {list(answer.shape)}" if isinstance(answer, Tensor) else type(answer).__name__
        raise TypeError(f"split: expected a boolean for each of {count} rows, got {got}")
    return answer, watch.read
