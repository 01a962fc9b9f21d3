"""How contestants, floors and numbers look: one home for colours, dashes, markers and words."""

import re
from collections.abc import Iterable
from itertools import cycle
from math import floor, isnan, log10
from typing import NamedTuple

from tpr_attention.experiments.beyond import NEW
from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS
from tpr_attention.report.document import Table

__all__ = ["MUTED", "Style", "is_number", "number", "numeric_columns", "styles"]

MUTED = "#6b7280"
"""The grey of notes, readable on white and on black."""


class Style(NamedTuple):
    """The look of one line.

    Args:
        dashes: Lengths of ink and gap in turn, in line widths; none for a solid line.
        marker: What stands at the end of the line; empty for a line without an end.
    """

    words: str
    colour: str
    dashes: tuple[float, ...]
    marker: str
    width: float


_LOOKS: dict[str, tuple[str, tuple[float, ...], str, float]] = {
    "tpr": ("#d1242f", (), "o", 1.8),
    "classical": ("#b07800", (5, 2), "s", 1.8),
    "resnet": ("#2563c9", (6, 2, 1, 2), "^", 1.8),
    "tpr-second": ("#168a5b", (3, 1.5), "D", 1.8),
    "tpr-stack": ("#7c3aed", (8, 1.5), "P", 1.8),
    "linear-floor": ("#1f2328", (1, 1.6), "", 1.2),
    "oracle": ("#1f2328", (10, 3), "", 1.2),
}
_OTHERS: tuple[tuple[str, tuple[float, ...], str, float], ...] = (
    ("#168a5b", (3, 1.5), "D", 1.8),
    ("#9a4fc4", (7, 1.5, 1, 1.5, 1, 1.5), "v", 1.8),
    ("#c2477f", (2, 1), "P", 1.8),
    ("#0e8a9c", (9, 2), "X", 1.8),
    ("#5b6b00", (1, 1), "*", 1.8),
    ("#7a4a21", (5, 1, 1, 1), "<", 1.8),
    ("#3d3a8c", (8, 3, 3, 3), ">", 1.8),
    ("#4b5563", (12, 2, 2, 2), "h", 1.8),
)

_PLAIN = r"[-+]?(\d[\d,]*(\.\d+)?(e[-+]?\d+)?|inf)"
_NUMBER = re.compile(
    rf"[<>~±]?\s*{_PLAIN}\s*(%|x|s)?(\s*±\s*{_PLAIN})?(\s*\[{_PLAIN},\s*{_PLAIN}\])?(\s*\(\d+ diverged\))?"
)


def styles(labels: Iterable[str]) -> dict[str, Style]:
    """The look of each label, in the order given; labels without a look of their own take turns with some spare ones.

    >>> styles(["tpr", "mine"])["tpr"].words
    'TPR-Attention'
    """
    spare, words = cycle(_OTHERS), {**CONTESTANTS, **NEW, **FLOORS}
    return {
        label: Style(words.get(label, label), *(_LOOKS[label] if label in _LOOKS else next(spare)))
        for label in dict.fromkeys(labels)
    }


def number(value: float | None, digits: int = 2) -> str:
    """A number for a table, with so many significant digits.

    >>> number(0.01412), number(3.21e-6), number(1234.5), number(0.0), number(None)
    ('0.014', '3.2e-06', '1234', '0', '-')
    """
    if value is None or isnan(value):
        return "-"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.{max(0, digits - 1 - floor(log10(abs(value))))}f}"
    return f"{value:.{digits - 1}e}"


def is_number(text: str) -> bool:
    """Whether a cell of a table reads as a number, perhaps with a spread, an interval or a unit.

    >>> is_number("3.2e-06 ± 1e-07"), is_number("12 [9.0, 15]"), is_number("4 heads")
    (True, True, False)
    """
    return _NUMBER.fullmatch(text.strip()) is not None


def numeric_columns(table: Table) -> list[bool]:
    """Which columns of a table hold numbers; a cell that has none may say so by a dash."""
    columns = ([row[place].strip() for row in table.rows] for place in range(len(table.columns)))
    said = ([cell for cell in column if cell not in ("", "-")] for column in columns)
    return [bool(cells) and all(map(is_number, cells)) for cells in said]
