"""From factors to objects and back: the fillers of each role are a table, and to encode is to look up."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor

from tpr_attention.functional.signature import expect
from tpr_attention.tasks.composition.factors import Factors, Grid

__all__ = ["Encoding", "FillerTable"]

MOST_DISTANCES = 2**18  # at a time, in decoding: two megabytes, which stay in the cache


@dataclass(frozen=True, eq=False)
class FillerTable:
    """The fillers of one role: a row for each combination of classes of the columns that they depend on.

    Args:
        columns: Names of columns of the grid; the last one changes fastest along the rows.
        guess: The best guess at a row that training never shows, where rows follow no law; None where they do.
    """

    role: str
    columns: tuple[str, ...]
    fillers: Float[Tensor, "k f"]
    guess: Float[Tensor, "f"] | None = None


class Encoding:
    """How factors become objects (App. E), and objects factors.

    Tables and roles may have any floating-point dtypes; objects are given in the one that is asked for.

    Args:
        tables: One for each role, in the order of the roles.
        roles: Orthonormal role vectors, one row for each table; one-hot if not given.

    >>> from tpr_attention.tasks.composition.factors import Column
    >>> grid = Grid((Column("shape", (1, 2), ("disc", "ring")),), {"shape": ("shape",)})
    >>> encoding = Encoding(grid, (FillerTable("shape", ("shape",), torch.tensor([[1.0, 0.0], [0.0, 1.0]])),))
    >>> encoding.encode(grid.all())
    tensor([[[1., 0.]],
    <BLANKLINE>
            [[0., 1.]]])
    """

    def __init__(self, grid: Grid, tables: tuple[FillerTable, ...], roles: Float[Tensor, "j r"] | None = None) -> None:
        self.grid, self.tables = grid, tables
        _check_tables(grid, tables)
        self.role_names = tuple(table.role for table in tables)
        self.roles = torch.eye(len(tables), dtype=torch.float64) if roles is None else roles.double()
        if self.roles.ndim != 2 or len(self.roles) != len(tables):
            raise ValueError(f"roles: expected [{len(tables)}, r], got {list(self.roles.shape)}")
        if not torch.allclose(self.roles @ self.roles.T, torch.eye(len(tables), dtype=torch.float64), atol=1e-5):
            raise ValueError("roles: expected orthonormal rows")
        self.num_roles, self.filler_dim = self.roles.shape[1], tables[0].fillers.shape[1]
        self.one_hot = torch.equal(self.roles, torch.eye(len(tables), dtype=torch.float64))

    def encode(self, factors: Factors, dtype: torch.dtype = torch.float32) -> Float[Tensor, "n r f"]:
        """One object for each row."""
        numbers = self.numbers(factors)
        fillers = self.stacked.to(dtype).index_select(0, numbers.flatten())
        return self.bind(fillers.reshape(*numbers.shape, self.filler_dim))

    def bind(self, fillers: Float[Tensor, "*n j f"]) -> Float[Tensor, "*n r f"]:
        """The objects that have these fillers in their roles."""
        return fillers if self.one_hot else einsum(self.roles.to(fillers), fillers, "j r, ... j f -> ... r f")

    def unbind(self, objects: Float[Tensor, "*n r f"]) -> Float[Tensor, "*n j f"]:
        """What the objects have in each role."""
        return objects if self.one_hot else einsum(self.roles.to(objects), objects, "j r, ... r f -> ... j f")

    def numbers(self, factors: Factors) -> Int[Tensor, "n j"]:
        """Which row of `stacked` the filler of each role is."""
        if factors.grid != self.grid:
            raise ValueError("factors: expected factors of the encoding's grid")
        rows = []
        for table, first in zip(self.tables, self.starts, strict=True):
            number = torch.zeros(len(factors), dtype=torch.int32)
            for name in table.columns:
                number = number * self.grid.sizes[self.grid.index(name)] + factors.column(name)
            rows.append(number + first)
        return torch.stack(rows, -1)

    @cached_property
    def stacked(self) -> Float[Tensor, "k f"]:
        """The tables of all roles, one after the other."""
        return torch.cat([table.fillers.double() for table in self.tables])

    @cached_property
    def guesses(self) -> Float[Tensor, "k f"]:
        """The best guess at each row of `stacked` if training never shows it; the row itself where it follows a law."""
        return torch.cat(
            [
                table.fillers.double() if table.guess is None else table.guess.double().expand_as(table.fillers)
                for table in self.tables
            ]
        )

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the table of each role starts in `stacked`."""
        sizes = [len(table.fillers) for table in self.tables]
        return tuple(sum(sizes[:j]) for j in range(len(sizes)))

    @torch.no_grad()
    def decode(self, objects: Float[Tensor, "n r f"]) -> Factors:
        """The factors whose fillers are nearest to those of the objects, which may be predictions, on any device.

        A column is read from the role that depends on it and on the fewest others.
        """
        if not objects.isfinite().all():
            raise ValueError("objects: expected finite numbers")
        columns: dict[str, Tensor] = {}
        found = self._found(objects)
        for role in dict.fromkeys(self.readers.values()):
            names, nearest = self.tables[role].columns, self._nearest(found, role)
            for name in reversed(names):
                size = self.grid.sizes[self.grid.index(name)]
                if self.readers[name] == role:
                    columns[name] = (nearest % size).int()
                nearest = nearest // size
        return Factors(self.grid, columns)

    @cached_property
    def readers(self) -> dict[str, int]:
        """The role that each column is read from."""
        depends = {
            name: [j for j, table in enumerate(self.tables) if name in table.columns] for name in self.grid.names
        }
        missing = [name for name, roles in depends.items() if not roles]
        if missing:
            raise ValueError(f"tables: expected a role that depends on each column to decode, none does on {missing}")
        return {name: min(roles, key=lambda j: len(self.tables[j].columns)) for name, roles in depends.items()}

    @torch.no_grad()
    def accuracy(self, objects: Float[Tensor, "n r f"], factors: Factors) -> dict[str, float]:
        """For each role, how often the filler nearest to the object's is the right one.

        Equal fillers count as one: the first and the last orientation of dSprites are the same angle. An object that is
        not finite is wrong.
        """
        if not len(objects) == len(factors) > 0:
            raise ValueError(f"objects: expected one for each of the factors, got {len(objects)} for {len(factors)}")
        finite = objects.isfinite().all(-1).all(-1).cpu()
        found, truth = self._found(objects.nan_to_num()), self.numbers(factors)
        shares = {}
        for role, table in enumerate(self.tables):
            nearest = table.fillers.double()[self._nearest(found, role)]
            right = (nearest - self.stacked[truth[:, role]]).abs().amax(-1) < 1e-9
            shares[table.role] = (right & finite).double().mean().item()
        return shares

    def _found(self, objects: Float[Tensor, "n r f"]) -> Float[Tensor, "n j f"]:
        expect("objects", objects, "n r f", {"r": self.num_roles, "f": self.filler_dim})
        return self.unbind(objects.detach().cpu().double())

    def _nearest(self, found: Float[Tensor, "n j f"], role: int) -> Int[Tensor, "n"]:
        fillers = self.tables[role].fillers.double()
        parts = torch.split(found[:, role], max(1, MOST_DISTANCES // len(fillers)))
        # |x - f|^2 / 2 without the part that is the same for all fillers
        half_squares = fillers.square().sum(-1) / 2
        return torch.cat([torch.addmm(half_squares, part, fillers.T, alpha=-1).argmin(-1) for part in parts])


def _check_tables(grid: Grid, tables: tuple[FillerTable, ...]) -> None:
    for error in _faults(grid, tables):
        raise ValueError(f"tables: {error}")


def _faults(grid: Grid, tables: tuple[FillerTable, ...]) -> Iterator[str]:
    if not tables or len({table.role for table in tables}) != len(tables):
        yield f"expected one or more roles with different names, got {[table.role for table in tables]}"
    for table in tables:
        if len(set(table.columns)) != len(table.columns):
            yield f"expected different columns for the role {table.role!r}, got {list(table.columns)}"
        rows, width = prod(grid.sizes[grid.index(name)] for name in table.columns), tables[0].fillers.shape[-1]
        if table.fillers.shape != (rows, width):
            yield f"expected fillers [{rows}, {width}] for the role {table.role!r}, got {list(table.fillers.shape)}"
        if not table.fillers.is_floating_point():
            yield f"expected floating-point fillers for the role {table.role!r}, got {table.fillers.dtype}"
        if not table.fillers.isfinite().all():
            yield f"expected finite fillers for the role {table.role!r}"
        if table.guess is not None and not (table.guess.shape == (width,) and table.guess.isfinite().all()):
            yield f"expected a finite guess [{width}] for the role {table.role!r}, got {list(table.guess.shape)}"
