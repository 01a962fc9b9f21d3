"""Maps of squares as pictures.

A picture is one pair of axes without ticks, whose unit is an inch, from the upper left corner to the right and down.
"""

from itertools import pairwise
from math import ceil
from textwrap import wrap
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tpr_attention.report.drawings.pictures import settings
from tpr_attention.report.drawings.squares import Square, Squares
from tpr_attention.report.style import MUTED

__all__ = ["draw"]

MARGIN, PAD, HEIGHT, LETTER, LINE, TITLE, APART = 0.14, 0.1, 0.27, 0.078, 0.165, 0.34, 0.09
"""Inches: around all, next to names and texts, a square, a letter, a line of notes, the title, between groups."""
NARROWEST, LEAST = 0.62, 4.6
"""Inches that a square and all squares together are wide at least."""
LETTERS = 15
"""Characters of a note in an inch."""
INK, NAMES, EMPTY, RULE = "#1f2328", "#374151", "#f3f4f6", "#9ca3af"
TINT, PALE = 0.5, 0.2
"""How much of a colour a square has, and a pale one; the rest is white, so that dark letters can be read on it."""
HATCH = "////"


def draw(squares: Squares) -> Figure:
    """Names of rows on the left, squares in rows and columns, legend and notes below."""
    with settings(), matplotlib.rc_context({"text.parse_math": False, "hatch.linewidth": 0.7}):
        widths = [_width([head, *(row[place] for row in squares.rows)]) for place, head in enumerate(squares.heads)]
        left = MARGIN + sum(widths)
        texts = [square.text for square in squares.squares.values()]
        wide = max(NARROWEST, _width([*squares.columns, *texts]), LEAST / max(1, len(squares.columns)))
        right = left + wide * len(squares.columns)
        tops = _tops(squares)
        bottom = tops[-1] + HEIGHT
        figure = Figure(figsize=(right + MARGIN, bottom))
        FigureCanvasAgg(figure)
        page = figure.add_axes((0, 0, 1, 1), xlim=(0, right + MARGIN), ylim=(bottom, 0))
        page.axis("off")
        page.text(MARGIN, MARGIN, squares.title, va="top", size=12, weight="bold", color=INK)
        _draw_names(page, squares, widths, tops)
        middle: dict[str, Any] = {"ha": "center", "va": "bottom", "size": 9.5}
        page.text((left + right) / 2, tops[0] - PAD / 2 - LINE, squares.axis, color=NAMES, **middle)
        for place, column in enumerate(squares.columns):
            page.text(left + wide * (place + 0.5), tops[0] - PAD / 2, column, color=INK, **middle)
            for row, top in enumerate(tops):
                _draw_square(page, squares, squares.squares.get((row, place)), (left + wide * place, top), wide)
        _draw_below(figure, page, squares, bottom, right)
    return figure


def _width(texts: list[str]) -> float:
    return max(map(len, texts)) * LETTER + PAD


def _tops(squares: Squares) -> list[float]:
    """Where each row begins; groups of rows with the same first name are apart."""
    tops = [MARGIN + TITLE + 2 * LINE + PAD]
    for before, after in pairwise(squares.rows):
        tops.append(tops[-1] + HEIGHT + APART * (before[0] != after[0]))
    return tops


def _draw_names(page: Axes, squares: Squares, widths: list[float], tops: list[float]) -> None:
    """The names of rows; one that the row above has as well is not repeated."""
    left = MARGIN
    for place, (head, width) in enumerate(zip(squares.heads, widths, strict=True)):
        page.text(left, tops[0] - PAD / 2, head, va="bottom", size=9.5, color=MUTED)
        before: list[str] = []
        for names, top in zip(squares.rows, tops, strict=True):
            if before[: place + 1] != [*names[: place + 1]]:
                weight = "bold" if place == 0 else "normal"
                page.text(
                    left, top + HEIGHT / 2, names[place], va="center_baseline", size=8.5, weight=weight, color=NAMES
                )
            before = [*names]
        left += width


def _draw_square(page: Axes, squares: Squares, square: Square | None, corner: tuple[float, float], wide: float) -> None:
    if square is None:
        _box(page, corner, (wide, HEIGHT), EMPTY)
        return
    face = EMPTY
    if square.category is not None:
        face = _mixed(squares.categories[square.category].colour, PALE if square.is_pale else TINT)
    _box(page, corner, (wide, HEIGHT), face, is_hatched=square.is_hatched)
    behind = {"facecolor": face, "edgecolor": "none", "pad": 1.2} if square.is_hatched else None
    middle = corner[0] + wide / 2, corner[1] + HEIGHT / 2
    page.text(*middle, square.text, ha="center", va="center_baseline", size=8.5, color=INK, bbox=behind)


def _mixed(colour: str, share: float) -> str:
    """A colour mixed with white."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return to_hex((red, green, blue))


def _box(
    page: Axes, corner: tuple[float, float], size: tuple[float, float], face: str, *, is_hatched: bool = False
) -> None:
    """A rectangle with a white edge."""
    page.add_patch(Rectangle(corner, *size, facecolor=face, edgecolor="white", linewidth=1.2))
    if is_hatched:
        page.add_patch(Rectangle(corner, *size, fill=False, hatch=HATCH, edgecolor=RULE, linewidth=0))


def _draw_below(figure: Figure, page: Axes, squares: Squares, bottom: float, right: float) -> None:
    """The legend and the notes, for which the picture becomes higher."""
    found = squares.squares.values()
    shown = {square.category for square in found}
    entries = [
        (one.words, _mixed(one.colour, TINT), False) for name, one in squares.categories.items() if name in shown
    ]
    entries += [(squares.hatched, EMPTY, True)] if any(square.is_hatched for square in found) else []
    notes = wrap(squares.notes, int((right - MARGIN) * LETTERS))
    across = _across([words for words, *_ in entries], right - MARGIN)
    legend_top, line = bottom + PAD, 1.3 * LINE
    height = legend_top + line * ceil(len(entries) / across) + (PAD if notes else 0) + LINE * len(notes) + MARGIN
    figure.set_size_inches(figure.get_figwidth(), height)
    page.set_ylim(height, 0)
    for number, (words, face, is_hatched) in enumerate(entries):
        row, column = divmod(number, across)
        left, top = MARGIN + column * (right - MARGIN) / across, legend_top + row * line
        _box(page, (left, top), (0.26, LINE), face, is_hatched=is_hatched)
        page.text(left + 0.34, top + LINE / 2, words, va="center_baseline", size=9.5, color=INK)
    page.text(MARGIN, height - MARGIN, "\n".join(notes), va="bottom", size=8.5, color=MUTED)


def _across(labels: list[str], width: float) -> int:
    """How many entries of a legend have a place beside each other."""
    longest = 0.5 + max(map(len, labels), default=1) * LETTER
    return max(1, min(len(labels), int(width / longest)))
