"""How lines without a look of their own are drawn, and how numbers are written."""

from collections.abc import Iterable
from itertools import cycle
from math import floor, isfinite, isnan, log10

from tpr_attention.report.panels import Known, Look, Series

__all__ = ["MUTED", "looks", "number", "percent"]

MUTED = "#6b7280"
"""The grey of notes, readable on white and on black."""

SPARE = (
    Look("#168a5b", (3, 1.5), "D"),
    Look("#9a4fc4", (7, 1.5, 1, 1.5, 1, 1.5), "v"),
    Look("#c2477f", (2, 1), "P"),
    Look("#0e8a9c", (9, 2), "X"),
    Look("#5b6b00", (1, 1), "*"),
    Look("#7a4a21", (5, 1, 1, 1), "<"),
    Look("#3d3a8c", (8, 3, 3, 3), ">"),
    Look("#4b5563", (12, 2, 2, 2), "h"),
)
"""Distinct colours, dashes and markers for series without a look."""


def looks(series: Iterable[Series | Known]) -> dict[str, Look]:
    """The look of each series by name, in the order given. Those without one take the spare looks that are not in use.

    >>> found = looks([Series("first", ()), Series("second", (), look=SPARE[0]), Series("first", ())])
    >>> found == {"first": SPARE[1], "second": SPARE[0]}
    True
    """
    found: dict[str, Look | None] = {}
    for one in series:
        found[one.name] = found.get(one.name) or one.look
    spare = cycle([look for look in SPARE if look not in found.values()] or SPARE)
    return {name: look or next(spare) for name, look in found.items()}


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many significant digits; whole numbers have all of theirs, in groups of three.

    >>> number(0.01412), number(3.21e-6), number(1234.5), number(0.0), number(None)
    ('0.014', '3.2e-06', '1,234', '0', '-')
    """
    if value is None or isnan(value):
        return "-"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:,.{max(0, digits - 1 - floor(log10(abs(value))))}f}"
    return f"{value:.{digits - 1}e}"


def percent(share: float) -> str:
    """A share with one digit behind the point, rounded down: 100 % is all.

    >>> percent(0.99951), percent(1.0), percent(float("nan"))
    ('99.9 %', '100 %', '-')
    """
    if not isfinite(share):
        return "-"
    tenths = int(1000 * share + 1e-4)  # shares are means of 32 bits
    return "100 %" if tenths == 1000 else f"{tenths / 10:.1f} %"
