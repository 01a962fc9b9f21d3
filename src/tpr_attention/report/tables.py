"""Tables of values. Every form of the report writes a value with `formatted`; CSV files have the values themselves.

A number has the form of its column's kind, and no other: a column of numbers is never one of texts.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isnan
from typing import Any, Literal, NamedTuple

import numpy as np

from tpr_attention.report import style
from tpr_attention.report.statistics import mean, standard_error

__all__ = ["Badge", "Column", "Kind", "Linked", "Table", "csv_text", "formatted", "inert", "sort_value", "unlinked"]

Kind = Literal["text", "number", "exact", "share", "count", "mean", "mean_and_error", "interval", "yes_no", "badge"]
"""What the cells of a column are; any of them may be None, written as a dash.

    text: a `str`, with `code` between backticks.
    number: a `float`, with two significant digits.
    exact: a `float` with all digits it was given with, such as a learning rate.
    share: a `float` from 0 to 1, written in percent.
    count: an `int`.
    mean: an array of one number a seed; written as their arithmetic mean, with the number of seeds that diverged.
    mean_and_error: the same, with the standard error of the mean.
    interval: a `statistics.Interval`.
    yes_no: a `bool`.
    badge: a `Badge`.
"""

NUMERIC = ("number", "exact", "share", "count", "mean", "mean_and_error", "interval")
PARTS = {"interval": ("", " low", " high"), "mean": ("", " diverged"), "mean_and_error": ("", " SE", " diverged")}
"""What the columns of a CSV file are called after, where a column has several."""


TONES = ("good", "fair", "bad", "none")
"""The tones of judgements, in the order in which a page sorts them."""


class Badge(NamedTuple):
    """A short judgement, coloured where colours can be shown.

    Args:
        note: What it rests on, in a few words; may be empty.
    """

    word: str
    tone: Literal["good", "fair", "bad", "none"]
    note: str = ""


class Linked(NamedTuple):
    """A value, and where it comes from: the name of a row (see `Table.row_names`), or the title of a section."""

    value: Any
    place: str


def unlinked(value: Any) -> Any:
    """The value itself.

    >>> unlinked(Linked(0.5, "row")), unlinked(0.5)
    (0.5, 0.5)
    """
    return value.value if isinstance(value, Linked) else value


@dataclass(frozen=True)
class Column:
    """The title of a column and what its cells are."""

    title: str
    kind: Kind = "text"

    @property
    def is_numeric(self) -> bool:
        """Whether cells are aligned on the right."""
        return self.kind in NUMERIC


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of values under typed columns.

    Args:
        name: The stem of its files.
        shown: How: `open` if it is a result itself; `folded` on demand; `file` is on demand in a page, and Markdown
            only says where it is.
        latex: Whether it is also written as LaTeX.
        row_names: What each row is called where a page links to it; none if nothing does.
        is_map: Whether a page colours whole cells by their badges.

    >>> table = Table("losses", "", [Column("model"), Column("loss", "number")], [["mine", 0.0123]])
    >>> table.texts()
    [['mine', '0.012']]
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    shown: Literal["open", "folded", "file"] = "folded"
    latex: bool = False
    row_names: Sequence[str] = ()
    is_map: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: expected {len(self.columns)} cells in a row, got {len(row)}")

    @property
    def label(self) -> str:
        """What it holds, and how many rows: what stands over it where it is folded.

        >>> Table("losses", "Final losses. Means over seeds.", [Column("loss", "number")], [[0.1], [0.2]]).label
        'Final losses (2 rows)'
        """
        count, (first, _, _) = len(self.rows), self.caption.partition(". ")
        return f"{first.removesuffix('.')} ({count:,} row{'s' if count != 1 else ''})"

    def texts(
        self, text: Callable[[str], str] = str, number: Callable[[float | None], str] = style.number
    ) -> list[list[str]]:
        """All rows as texts; see `formatted`."""
        return [[formatted(cell, column.kind, text, number) for cell, column in self.cells(row)] for row in self.rows]

    def cells(self, row: Sequence[Any]) -> "zip[tuple[Any, Column]]":
        """The cells of a row with their columns."""
        return zip(row, self.columns, strict=True)


def formatted(
    value: Any, kind: Kind, text: Callable[[str], str] = str, number: Callable[[float | None], str] = style.number
) -> str:
    """A cell as text.

    Args:
        text: How texts are escaped.
        number: How numbers are written.

    >>> from tpr_attention.report.statistics import Interval
    >>> formatted(Interval(2.0, 1.5, 2.5), "interval"), formatted(np.array([0.25, np.inf, 0.25]), "mean")
    ('2.0 [1.5 to 2.5]', '0.25 (1 diverged)')
    >>> formatted(np.array([1.0, 3.0]), "mean_and_error"), formatted(Linked(0.5, "row"), "number")
    ('2.0 ± 1.0', '0.50')
    >>> formatted(12345, "count"), formatted(True, "yes_no"), formatted(0.001, "exact"), formatted(None, "text")
    ('12,345', 'yes', '0.001', '-')
    >>> formatted(0.9951, "share")
    '99.5 %'
    """
    value = unlinked(value)
    if value is None:
        return "-"
    match kind:
        case "text":
            return text(value)
        case "number":
            return number(value)
        case "exact":
            return f"{value:g}"
        case "share":
            return text(style.percent(value))
        case "count":
            return f"{value:,d}"
        case "mean" | "mean_and_error":
            error = standard_error(value) if kind == "mean_and_error" else None
            shown = number(mean(value)) + (f" {text('±')} {number(error)}" if error is not None else "")
            return shown + (f" ({_diverged(value)} diverged)" if _diverged(value) else "")
        case "interval":
            has_ends = value.low is not None and value.high is not None
            return number(value.value) + (f" [{number(value.low)} to {number(value.high)}]" if has_ends else "")
        case "yes_no":
            return "yes" if value else "no"
        case "badge":
            return text(value.word) + (f" ({text(value.note)})" if value.note else "")


def sort_value(value: Any, kind: Kind) -> float | None:
    """What a page sorts a cell by; None for texts, and for cells without a value.

    >>> sort_value(Linked(np.array([1.0, 3.0]), "row"), "mean"), sort_value(Badge("holds", "good"), "badge")
    (2.0, 0.0)
    >>> sort_value("text", "text"), sort_value(float("nan"), "number"), sort_value(None, "count")
    (None, None, None)
    """
    value = unlinked(value)
    if value is None or kind == "text":
        return None
    match kind:
        case "mean" | "mean_and_error":
            found = mean(value)
        case "interval":
            found = value.value
        case "badge":
            found = TONES.index(value.tone)
        case _:
            found = value
    return None if isnan(found) else float(found)


RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\t", "\n")


def inert(text: str) -> str:
    """A text of a CSV file that a spreadsheet shows and does not run: an apostrophe stands before a formula.

    >>> inert("=1+1"), inert("tpr")
    ("'=1+1", 'tpr')
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # csv quotes only the second
    return f"'{text}" if text.startswith(RUN_BY_SPREADSHEETS) else text


def csv_text(table: Table) -> str:
    """The values of a table. An interval has two more columns for its ends, a mean one for the seeds that diverged.

    >>> from tpr_attention.report.statistics import Interval
    >>> print(csv_text(Table("", "", [Column("ratio", "interval")], [[Interval(2.0, 1.5, 2.5)], [None]])).strip())
    ratio,ratio low,ratio high
    2.0,1.5,2.5
    ,,
    """
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    rows: list[list[Any]] = [
        [column.title + part for column in table.columns for part in PARTS.get(column.kind, ("",))]
    ]
    rows += [[value for cell, column in table.cells(row) for value in _values(cell, column.kind)] for row in table.rows]
    for row in rows:
        writer.writerow([inert(value) if isinstance(value, str) else value for value in row])
    return file.getvalue()


def _values(value: Any, kind: Kind) -> list[Any]:
    """The raw values of a cell, one for each of its titles."""
    value = unlinked(value)
    if value is None:
        return [None] * len(PARTS.get(kind, ("",)))
    if kind == "mean":
        return [mean(value), _diverged(value)]
    if kind == "mean_and_error":
        return [mean(value), standard_error(value), _diverged(value)]
    return [*value] if kind == "interval" else [formatted(value, kind) if kind in ("yes_no", "badge") else value]


def _diverged(values: np.ndarray) -> int:
    return int(np.isinf(values).sum())
