"""What heads do, as small heat maps with names on their axes.

A picture is one pair of axes without ticks. Its unit is a cell of a heat map, from the upper left corner to the right
and down.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tpr_attention.report.drawings.pictures import settings
from tpr_attention.report.inspection import CombinedMap, Head, Inspection, Layer, Names
from tpr_attention.report.style import MUTED

__all__ = ["draw"]

COLOURS, SCALE = colormaps["RdBu_r"], Normalize(-1, 1)
"""The colour-blind can tell red from blue. The scale is that of every run, where 1 is an unchanged filler."""
CELL = 0.235
"""The side of a cell in inches."""
MARGIN, GAP, PAD, LETTER, COLOUR_BAR = 0.6, 1.3, 0.2, 0.29, 6.8
"""In cells: around the picture, between heat maps, next to names; a letter of a name; the scale of colours."""
FAINT = 0.05
"""Numbers and dots below it are not drawn."""
INK, EDGE, RULE = "#1f2328", "#9ca3af", "#374151"
TITLE: dict[str, Any] = {"ha": "center", "va": "bottom", "size": 9.5}


def draw(inspection: Inspection) -> Figure:
    """All layers below each other: what the heads of each do in sum, then every head, if the layer has them."""
    with settings(), matplotlib.rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(CELL, CELL))  # until all is drawn and measured
        page = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(1, 0))
        page.axis("off")
        title = page.text(MARGIN, MARGIN, inspection.title, va="top", size=12, weight="bold", color=INK)
        for layer in inspection.layers:
            name = f"{layer.name}: " if len(inspection.layers) > 1 else ""
            if layer.combined:
                _draw_combined(page, name, layer.names, layer.combined)
            if layer.heads:
                _draw_heads(page, name, layer)
        right, title_right = figure.get_tightbbox().x1 / CELL, title.get_window_extent().x1 / figure.dpi / CELL
        bar_left = max(right - COLOUR_BAR, title_right + 2 * GAP)
        width, height = bar_left + COLOUR_BAR + MARGIN, _bottom(page) + MARGIN
        figure.set_size_inches(width * CELL, height * CELL)
        page.set(xlim=(0, width), ylim=(height, 0))
        bar = figure.add_axes((bar_left / width, 1 - 1.3 / height, COLOUR_BAR / width, 0.5 / height))
        figure.colorbar(ScalarMappable(SCALE, COLOURS), cax=bar, orientation="horizontal", ticks=[-1, 0, 1])
        bar.tick_params(length=0, pad=2)
    return figure


def _draw_combined(page: Axes, name: str, names: Names, combined: CombinedMap) -> None:
    """A heat map for each action, with dots for what its colours do not tell: how much fillers are mixed."""
    said = "From a role of an object (rows) to a role of the result (columns): -1 erases, +1 writes"
    said += "; dots: filler components are also mixed" * bool(combined.mixed.max() >= FAINT)
    left, top = _heading(page, f"{name}all heads together", said, names)
    count = len(names.roles)
    for place, obj in enumerate(names.objects):
        _turned(page, top + count * (place + 0.5), obj)
    for place, action in enumerate(names.actions):
        copied, mixed = combined.copied[place].reshape(-1, count), combined.mixed[place].reshape(-1, count)
        named = [*names.roles] * len(names.objects) if place == 0 else ()
        right = _heat_map(page, left, top, copied, named, names.roles, _short)
        page.text((left + right) / 2, top - PAD, action, **TITLE)
        page.plot([left, right], [top + count] * 2, color=RULE, linewidth=1)
        rows, columns = np.nonzero(mixed >= FAINT)
        sizes, x, y = 45 * mixed[rows, columns].clip(max=1), left + 0.8 + columns, top + 0.8 + rows
        page.scatter(x, y, sizes, color="#f2b134", edgecolor=INK, linewidth=0.4, zorder=3)
        left = right + GAP


def _draw_heads(page: Axes, name: str, layer: Layer) -> None:
    """A row of heat maps for each head; the first has titles above them, the last one names below."""
    read = "fillers are read, multiplied" if len(layer.heads[0].queries) > 1 else "a filler is read"
    read += ", brought to unit length" * layer.normalised
    said = f"Under each action (rows) {read}, mapped and written, times the numbers at its object"
    start, top = _heading(page, f"{name}head by head", said, layer.names)
    height = len(layer.names.actions)
    for place, head in enumerate(layer.heads, 1):
        _turned(page, top + height / 2, f"head {place}")
        left, bottom = start, top
        for title, values, rows, columns in _maps(head, layer.names):
            lift, below = max(0, (height - len(values)) / 2), columns if place == len(layer.heads) else ()
            number, wide = ("{:+.2f}".format, 2) if values is head.ids else (None, 1)
            right = _heat_map(page, left, top + lift, values, rows, below, number, wide)
            if place == 1:
                page.text((left + right) / 2, top - PAD, title, **TITLE)
            left, bottom = right + GAP, max(bottom, top + lift + len(values))
        top = bottom + GAP / 2


def _maps(head: Head, names: Names) -> Iterator[tuple[str, np.ndarray, Sequence[str], Sequence[str]]]:
    """Title, values, names of rows and names of columns of each heat map of a head."""
    is_product = len(head.queries) > 1
    for number, query in enumerate(head.queries, 1):
        title = f"reads role {number}" if is_product else "reads role"
        yield title, query, names.actions if number == 1 else (), names.roles
    yield "of object", head.ids, (), names.objects
    for number, values in enumerate(np.moveaxis(head.filler_map, -1, 0) if is_product else [head.filler_map], 1):
        flat, components = values.reshape(-1, values.shape[-1]), [str(place + 1) for place in range(values.shape[-1])]
        rows = components if number == 1 and len(flat) == len(components) else ()
        yield f"to filler {number}" if is_product else "filler map", flat, rows, components
    yield "writes to role", head.new_role, (), names.roles


def _heading(page: Axes, title: str, said: str, names: Names) -> tuple[float, float]:
    """Begin a part below what is drawn. Returns the upper left corner of its first heat map, after names of rows."""
    top = _bottom(page) + 1.2
    page.text(MARGIN, top, title, va="top", size=10.5, weight="bold", color=INK)
    page.text(MARGIN, top + 1, said, va="top", color=MUTED)
    left, top = 2.1 + LETTER * max(map(len, (*names.roles, *names.actions))), top + 3.2
    page.text(left - PAD, top - PAD, "action", ha="right", va="bottom", color=MUTED)
    return left, top


def _turned(page: Axes, middle: float, text: str) -> None:
    page.text(1.1, middle, text, rotation=90, ha="center", va="center", size=9.5, weight="bold", color=INK)


def _heat_map(
    page: Axes,
    left: float,
    top: float,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    number: Callable[[float], str] | None = None,
    wide: int = 1,
) -> float:
    """Draw a heat map with this upper left corner. Returns its right end.

    Args:
        number: How numbers in cells are written, if they are.
        wide: The width of a cell.
    """
    bottom, right = top + len(values), left + wide * len(values[0])
    x, y = np.arange(left, right + 0.5, wide), np.arange(top, bottom + 0.5)
    page.pcolormesh(x, y, values, cmap=COLOURS, norm=SCALE, edgecolors="#e5e7eb", linewidth=0.5, clip_on=False)
    page.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor=EDGE, linewidth=0.8))
    names: dict[str, Any] = {"size": 8.5, "color": RULE}
    turn = 90 if any(len(name) > 1 for name in columns) else 0
    for place, name in enumerate(columns):
        page.text(left + wide * (place + 0.5), bottom + PAD, name, rotation=turn, ha="center", va="top", **names)
    for place, name in enumerate(rows, 1):
        page.text(left - PAD, top + place - 0.5, name, ha="right", va="center", **names)
    for (row, column), value in np.ndenumerate(values):
        if number and abs(value) >= FAINT:
            middle, colour = (left + wide * (column + 0.5), top + row + 0.5), "white" if abs(value) > 0.55 else INK
            page.text(*middle, number(value), size=8, ha="center", va="center", color=colour)
    return right


def _bottom(page: Axes) -> float:
    """How far down the picture reaches before it has its size."""
    return float(1 - page.figure.get_tightbbox().y0 / CELL)


def _short(value: float) -> str:
    """A number for a small cell.

    >>> _short(0.52), _short(-1.0), _short(10.0)
    ('+.5', '-1', '+10')
    """
    return f"{value:+.1f}".replace("+0.", "+.").replace("-0.", "-.").removesuffix(".0")
