"""Factors of variation as a table: which values there are, and which object has which of them (sec. 4).

The grid of dSprites is computed, not read: six scales, forty orientations (the last is the first again) and 32
positions in each direction, evenly spaced. Colour is added to it, as in the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, pi, prod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["MOST_COMBINATIONS", "Column", "Factors", "Grid", "dsprites", "substitute"]

MOST_COMBINATIONS = 2**24
"""How many combinations of classes a table may have."""


@dataclass(frozen=True)
class Column:
    """One column of the table: its name, and a value for each class; labels too, where classes have names."""

    name: str
    values: tuple[float | int, ...]
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            values = tuple(map(float, self.values))
        except (TypeError, ValueError):
            values = ()
        if not values or not all(map(isfinite, values)):
            raise ValueError(f"values: expected one or more finite numbers for the column {self.name!r}")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "labels", tuple(self.labels))
        if self.labels and not len(self.labels) == len(set(self.labels)) == len(self.values):
            raise ValueError(
                f"labels: expected {len(self.values)} different ones for the column {self.name!r}, got {self.labels}"
            )


@dataclass(frozen=True, eq=False)
class Grid:
    """The Cartesian product of its columns, and the actions: each replaces one or more columns.

    Actions are known by their order, so grids are equal only if that is.

    >>> grid = dsprites()
    >>> grid.sizes, len(grid)
    ((3, 6, 40, 32, 32, 3), 2211840)
    >>> tuple(grid.actions)
    ('shape', 'scale', 'orientation', 'position', 'colour')
    """

    columns: tuple[Column, ...]
    actions: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not self.columns or len(set(self.names)) != len(self.names):
            raise ValueError(f"columns: expected one or more with different names, got {list(self.names)}")
        if not self.actions:
            raise ValueError("actions: expected at least one")
        for action, names in self.actions.items():
            if not isinstance(names, tuple) or not names or len({*names} & {*self.names}) != len(names):
                raise ValueError(
                    f"actions: expected a tuple of columns of {list(self.names)} for {action!r}, got {names!r}"
                )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grid) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return self.columns, tuple(self.actions.items())

    def __len__(self) -> int:
        return prod(self.sizes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many classes each column has."""
        return tuple(len(column.values) for column in self.columns)

    def index(self, name: str) -> int:
        """Where a column stands."""
        if name not in self.names:
            raise ValueError(f"column: expected one of {list(self.names)}, got {name!r}")
        return self.names.index(name)

    @cached_property
    def acts_on(self) -> Bool[Tensor, "a columns"]:
        """Which columns each action replaces."""
        return torch.tensor([[name in names for name in self.names] for names in self.actions.values()])

    def rows(self, numbers: Int[Tensor, "n"]) -> "Factors":
        """The objects with these numbers, the last column changing fastest."""
        if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < len(self)):
            raise ValueError(
                f"numbers: expected 0 to {len(self) - 1}, got {int(numbers.min())} to {int(numbers.max())}"
            )
        columns = {}
        for column in reversed(self.columns):
            columns[column.name] = (numbers % len(column.values)).int()
            numbers = numbers // len(column.values)
        return Factors(self, columns)

    def all(self) -> "Factors":
        """Every object there is, in the order of their numbers."""
        return self.combinations(self.names)

    def combinations(self, names: Sequence[str]) -> "Factors":
        """Every combination of the classes of some columns, the last changing fastest; the others have class 0.

        >>> dsprites().combinations(("colour", "shape")).classes[:4, [0, 5]].tolist()
        [[0, 0], [1, 0], [2, 0], [0, 1]]
        """
        sizes = [self.sizes[self.index(name)] for name in names]
        count = prod(sizes)
        columns = {name: torch.zeros((), dtype=torch.int32).expand(count) for name in self.names}
        for k, name in enumerate(names):
            classes = torch.arange(sizes[k], dtype=torch.int32)
            columns[name] = classes.repeat_interleave(prod(sizes[k + 1 :])).repeat(prod(sizes[:k]))
        return Factors(self, columns)

    def sample(self, count: int, generator: torch.Generator) -> "Factors":
        """Objects drawn uniformly."""
        return Factors(
            self,
            {
                column.name: torch.randint(len(column.values), (count,), generator=generator, dtype=torch.int32)
                for column in self.columns
            },
        )

    def table(self, classes: Int[Tensor, "n columns"]) -> "Factors":
        """The objects with these class indices, one row an object."""
        sizes = torch.tensor(self.sizes)
        if classes.is_floating_point():
            raise TypeError(f"classes: expected whole numbers, got {classes.dtype}")
        if classes.ndim != 2 or classes.shape[1] != len(sizes):
            raise ValueError(
                f"classes: expected [n, {len(sizes)}], a column for each of {list(self.names)}, "
                f"got {list(classes.shape)}"
            )
        if ((classes < 0) | (classes >= sizes)).any():
            raise ValueError(f"classes: expected numbers from 0 to below {list(self.sizes)}")
        return Factors(self, dict(zip(self.names, classes.int().T, strict=True)))


@dataclass(frozen=True, eq=False)
class Factors:
    """One row an object, one column a factor; entries are class indices.

    >>> factors = dsprites().rows(torch.tensor([0, 2211839]))
    >>> factors.value("scale"), factors.has("shape", "heart")
    (tensor([0.5000, 1.0000], dtype=torch.float64), tensor([False,  True]))
    """

    grid: Grid
    columns: Mapping[str, Int[Tensor, "n"]]

    def __post_init__(self) -> None:
        if set(self.columns) != set(self.grid.names):
            raise ValueError(f"columns: expected {list(self.grid.names)}, got {list(self.columns)}")
        count = self.columns[self.grid.names[0]].numel()
        for name, size in zip(self.grid.names, self.grid.sizes, strict=True):
            column = self.columns[name]
            if column.shape != (count,):
                raise ValueError(
                    f"columns: expected [{count}] for {name!r}, as for the first, got {list(column.shape)}"
                )
            if column.dtype not in (torch.int32, torch.int64):
                raise TypeError(f"columns: expected int32 or int64 for {name!r}, got {column.dtype}")
            if count and not (int(column.min()) >= 0 and int(column.max()) < size):
                raise ValueError(f"columns: expected classes from 0 to {size - 1} for {name!r}")

    def __len__(self) -> int:
        return len(self.columns[self.grid.names[0]])

    def __repr__(self) -> str:
        return f"Factors({len(self)} rows of {', '.join(self.grid.names)})"

    def row(self, number: int) -> dict[str, str | float]:
        """One object in words: labels where classes have them, values elsewhere.

        >>> dsprites().rows(torch.tensor([0])).row(0)["shape"]
        'square'
        """
        found = {column.name: int(self.columns[column.name][number]) for column in self.grid.columns}
        return {column.name: (column.labels or column.values)[found[column.name]] for column in self.grid.columns}

    def describe(self, number: int) -> str:
        """One object as a text.

        >>> dsprites().rows(torch.tensor([0])).describe(0)
        'shape square, scale 0.5, orientation 0, position_x -1, position_y -1, colour red'
        """
        row = self.row(number)
        return ", ".join(f"{name} {value if isinstance(value, str) else f'{value:.4g}'}" for name, value in row.items())

    def __getitem__(self, rows: slice | Tensor) -> "Factors":
        return Factors(self.grid, {name: self.columns[name][rows] for name in self.grid.names})

    @property
    def classes(self) -> Int[Tensor, "n columns"]:
        """The whole table."""
        return torch.stack([self.columns[name] for name in self.grid.names], -1)

    def column(self, name: str) -> Int[Tensor, "n"]:
        """Class indices of one factor."""
        self.grid.index(name)
        return self.columns[name]

    def value(self, name: str) -> Float[Tensor, "n"]:
        """Values of one factor."""
        values = torch.tensor(self.grid.columns[self.grid.index(name)].values, dtype=torch.float64)
        return values[self.column(name)]

    def has(self, name: str, label: str) -> Bool[Tensor, "n"]:
        """Where a factor has the class of this name."""
        labels = self.grid.columns[self.grid.index(name)].labels
        if label not in labels:
            raise ValueError(f"label: expected one of {list(labels)} for the column {name!r}, got {label!r}")
        return self.column(name) == labels.index(label)


def substitute(reference: Factors, transform: Factors, action: Int[Tensor, "n"]) -> Factors:
    """The reference, with the acted factor of the transform.

    >>> grid = dsprites()
    >>> first, last = grid.rows(torch.tensor([0])), grid.rows(torch.tensor([len(grid) - 1]))
    >>> substitute(first, last, torch.tensor([3])).classes  # the action on the position
    tensor([[ 0,  0,  0, 31, 31,  0]], dtype=torch.int32)
    """
    if not len(reference) == len(transform) == len(action):
        raise ValueError(
            f"expected as many references as transforms and actions, "
            f"got {len(reference)}, {len(transform)} and {len(action)}"
        )
    grid = reference.grid
    if transform.grid != grid:
        raise ValueError("transform: expected factors of the reference's grid")
    if len(action) and not (int(action.min()) >= 0 and int(action.max()) < len(grid.actions)):
        raise ValueError(f"action: expected numbers from 0 to {len(grid.actions) - 1}, one for each of the actions")
    acted = dict(zip(grid.names, grid.acts_on.T[:, action.long()], strict=True))
    return Factors(
        grid,
        {name: torch.where(acted[name], transform.columns[name], reference.columns[name]) for name in grid.names},
    )


def dsprites(position_range: Sequence[float] = (-1.0, 1.0)) -> Grid:
    """The factors of dSprites and colour; positions grow to the right and downwards.

    Args:
        position_range: The first and the last position. With the default, the paper's `posX > 0` is half of the plane
            (decision 0007).
    """
    low, high = position_range if len(position_range) == 2 else (0.0, 0.0)
    if not (low < high and isfinite(high - low)):
        raise ValueError(f"position_range: expected two growing, finite numbers, got {position_range}")
    positions = _spaced(low, high, 32)
    return Grid(
        columns=(
            Column("shape", (1, 2, 3), ("square", "ellipse", "heart")),
            Column("scale", _spaced(0.5, 1.0, 6)),
            Column("orientation", _spaced(0.0, 2 * pi, 40)),
            Column("position_x", positions),
            Column("position_y", positions),
            Column("colour", (1, 2, 3), ("red", "green", "blue")),
        ),
        actions={
            "shape": ("shape",),
            "scale": ("scale",),
            "orientation": ("orientation",),
            "position": ("position_x", "position_y"),
            "colour": ("colour",),
        },
    )


def _spaced(first: float, last: float, count: int) -> tuple[float, ...]:
    return tuple(torch.linspace(first, last, count, dtype=torch.float64).tolist())
