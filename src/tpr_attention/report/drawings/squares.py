"""What a map of squares shows, before it is drawn: for each row and column a category and a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tpr_attention.report.tables import Column, Table

__all__ = ["Category", "Square", "Squares"]


class Category(NamedTuple):
    """What a square can be: what the legend says, and the colour as `#rrggbb`."""

    words: str
    colour: str


class Square(NamedTuple):
    """One square.

    Args:
        category: A key of the map's categories; None for a square without a colour.
        text: What is written into it.
        is_hatched: Whether it is marked; the map says what that means.
        is_pale: Whether its colour says little.
    """

    category: str | None
    text: str
    is_hatched: bool = False
    is_pale: bool = False


@dataclass(frozen=True, eq=False)
class Squares:
    """A map of squares: a category with a colour and a text for each row and column.

    Args:
        name: The stem of its files.
        heads: What the parts of the names of rows are called.
        rows: The names of rows, each with as many parts as there are heads.
        axis: What the columns are.
        columns: Their names.
        squares: By place of row and column; places without one stay empty.
        categories: By key, in the order of the legend.
        hatched: What hatched squares are; empty if there is none.
        notes: What a reader must know besides the legend.

    >>> one = Square("cats", "cats 3 to 1")
    >>> found = Squares("pets", "Pets", "", ("street",), (("first",),), "year", ("1999", "2000"), {(0, 1): one}, {})
    >>> found.table().texts()
    [['first', '-', 'cats 3 to 1']]
    """

    name: str
    title: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    axis: str
    columns: Sequence[str]
    squares: Mapping[tuple[int, int], Square]
    categories: Mapping[str, Category]
    hatched: str = ""
    notes: str = ""

    def table(self) -> Table:
        """The same as a table; hatched squares have what that means in brackets."""
        columns = [*map(Column, self.heads), *(Column(f"{column} {self.axis}") for column in self.columns)]
        rows = [
            [*names, *(self._text(self.squares.get((row, place))) for place in range(len(self.columns)))]
            for row, names in enumerate(self.rows)
        ]
        return Table(self.name, f"The same as a table: {self.title[:1].lower()}{self.title[1:]}.", columns, rows)

    def _text(self, square: Square | None) -> str | None:
        if square is None:
            return None
        return f"{square.text} ({self.hatched})" if square.is_hatched else square.text
