"""What heads do, as small heat maps with names on their axes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from tpr_attention.report.inside import Head, Inside, Layer, Together
from tpr_attention.report.pictures import FORMS, encoded, literal, look
from tpr_attention.report.style import MUTED

__all__ = ["draw", "save"]

COLOURS, SCALE = colormaps["RdBu_r"], Normalize(-1, 1)
"""Red and blue are told apart by the colour-blind; the scale is that of every run, where 1 is a filler as it is."""
CELL, WIDE_CELL, LETTER, LINE, BAR = 0.235, 0.45, 0.068, 0.17, 1.6
"""Inches: the sides of cells and of a letter, and the scale of colours."""
MARGIN, GAP, HEADING, BELOW = 0.15, 0.3, 0.74, 0.25
FAINT = 0.05
"""Numbers and rests below it are not drawn."""
INK, RULE = "#1f2328", "#374151"


class Map(NamedTuple):
    """A heat map and the place of its left upper corner, in inches from that of the picture.

    Args:
        lift: How far the title is above it.
        rests: How much of each cell its colour does not tell.
        rule: After how many rows there is a line.
    """

    left: float
    top: float
    values: np.ndarray
    title: str = ""
    lift: float = 0
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    cell: float = CELL
    numbers: bool = False
    rests: np.ndarray | None = None
    rule: int = 0

    @property
    def right(self) -> float:
        return self.left + self.cell * len(self.values[0])

    @property
    def bottom(self) -> float:
        return self.top + CELL * len(self.values)


class Words(NamedTuple):
    """A text with its left upper corner, or with its middle if it is turned."""

    left: float
    top: float
    text: str
    size: float = 9
    weight: str = "normal"
    colour: str = INK
    turned: bool = False

    @property
    def right(self) -> float:
        return self.left if self.turned else self.left + LETTER * self.size / 9 * len(self.text)

    @property
    def bottom(self) -> float:
        return self.top if self.turned else self.top + LINE


Part = Map | Words


def save(inside: Inside, folder: Path, name: str) -> list[Path]:
    """Write `<name>.png`, `.svg` and `.pdf` into a folder that is there."""
    figure, paths = draw(inside), [folder / f"{name}.{form}" for form in FORMS]
    for path, form in zip(paths, FORMS, strict=True):
        path.write_bytes(encoded(figure, form))
    return paths


def draw(inside: Inside) -> Figure:
    """All layers under each other: what the heads of each do together, then every head."""
    parts = list(_parts(inside))
    width = max(BAR + 2 * GAP + parts[0].right, *(part.right for part in parts)) + MARGIN
    height = max(part.bottom for part in parts) + MARGIN
    with look():
        figure = Figure(figsize=(width, height))
        for part in parts:
            if isinstance(part, Map):
                size = (part.right - part.left) / width, (part.bottom - part.top) / height
                _draw_map(figure.add_axes((part.left / width, 1 - part.bottom / height, *size)), part)
            else:
                turn = {"rotation": 90, "ha": "center", "va": "center"} if part.turned else {"va": "top"}
                text = figure.text(part.left / width, 1 - part.top / height, literal(part.text))
                text.set(size=part.size, weight=part.weight, color=part.colour, **turn)
        bar = figure.add_axes(((width - MARGIN - BAR) / width, 1 - 0.3 / height, BAR / width, 0.12 / height))
        figure.colorbar(ScalarMappable(SCALE, COLOURS), cax=bar, orientation="horizontal", ticks=[-1, 0, 1])
        bar.tick_params(length=0, pad=2)
    return figure


def _parts(inside: Inside) -> Iterator[Part]:
    yield Words(MARGIN, 0.14, inside.title, 12, "bold")
    top = 0.6
    for layer in inside.layers:
        name, below = f"{layer.name}: " if len(inside.layers) > 1 else "", _depth(layer.names.roles)
        if layer.together:
            said = "From a role of an object (rows) to a role of the result (columns): -1 erases, +1 writes"
            dots = bool(layer.together.other.max() >= FAINT)
            said += "; dots: filler components are also mixed" * dots
            yield from _heading(top, f"{name}all heads together", said)
            maps = list(_together(layer, layer.together, top + HEADING))
            yield from maps
            top = max(part.bottom for part in maps) + below + BELOW
        read = "fillers are read, multiplied" if len(layer.heads[0].queries) > 1 else "a filler is read"
        read += ", brought to unit length" * layer.normalised
        said = f"Under each action (rows) {read}, mapped and written, times the numbers at its object"
        yield from _heading(top, f"{name}head by head", said)
        top += HEADING
        for place, head in enumerate(layer.heads):
            maps = list(_head(layer, head, place, top))
            yield from maps
            top = max(part.bottom for part in maps) + 0.16
        top += below
        yield Words(MARGIN, top - LINE, "")


def _heading(top: float, title: str, said: str) -> Iterator[Words]:
    yield Words(MARGIN, top, title, 10.5, "bold")
    yield Words(MARGIN, top + 0.22, said, colour=MUTED)


def _together(layer: Layer, whole: Together, top: float) -> Iterator[Part]:
    names, left, count = layer.names, _left(layer), len(layer.names.roles)
    yield Words(left - 0.5, top - 0.175, "action", colour=MUTED)
    for place, action in enumerate(names.actions):
        copied, rests = (one[place].reshape(-1, count) for one in (whole.copied, whole.other))
        rows = names.roles * len(names.objects) if place == 0 else ()
        part = Map(left, top, copied, action, 0, rows, names.roles, numbers=True, rests=rests, rule=count)
        yield part
        left = part.right + GAP
    for place, thing in enumerate(names.objects):
        yield Words(MARGIN + 0.1, top + CELL * count * (place + 0.5), thing, 9.5, "bold", turned=True)


def _head(layer: Layer, head: Head, place: int, top: float) -> Iterator[Part]:
    names, order, left = layer.names, len(head.queries), _left(layer)
    is_first, is_last, height = place == 0, place == len(layer.heads) - 1, CELL * len(names.actions)
    if is_first:
        yield Words(left - 0.5, top - 0.175, "action", colour=MUTED)
    yield Words(MARGIN + 0.1, top + height / 2, f"head {place + 1}", 9.5, "bold", turned=True)
    for number, query in enumerate(head.queries, 1):
        title = "reads role" if order == 1 else f"reads role {number}"
        part = Map(left, top, query, title * is_first, 0, names.actions * (number == 1), names.roles * is_last)
        yield part
        left = part.right + GAP
    lift = max(0, (height - CELL * order) / 2)
    columns = names.objects * is_last
    part = Map(left, top + lift, head.ids, "of object" * is_first, lift, (), columns, WIDE_CELL, numbers=True)
    yield part
    left = part.right + GAP + 0.15
    slices = [head.filler_map] if order == 1 else np.moveaxis(head.filler_map, -1, 0)
    for number, values in enumerate(slices, 1):
        flat = values.reshape(-1, values.shape[-1])
        title = "filler map" if order == 1 else f"to filler {number}"
        lift, components = max(0, (height - CELL * len(flat)) / 2), tuple(map(str, range(1, values.shape[-1] + 1)))
        rows = components * (number == 1 and len(flat) == len(components))
        part = Map(left, top + lift, flat, title * is_first, lift, rows, components * is_last)
        yield part
        left = part.right + GAP
    yield Map(left, top, head.new_role, "writes to role" * is_first, columns=names.roles * is_last)


def _left(layer: Layer) -> float:
    """Where heat maps begin, after the names of their rows."""
    return MARGIN + 0.35 + LETTER * max(map(len, (*layer.names.roles, *layer.names.actions)))


def _depth(names: Sequence[str]) -> float:
    """How much room names below a heat map take."""
    return 0.1 + LETTER * max(map(len, names))


def _draw_map(axes: Axes, part: Map) -> None:
    height, width = part.values.shape
    axes.pcolormesh(part.values, cmap=COLOURS, norm=SCALE, edgecolors="#e5e7eb", linewidth=0.5)
    axes.invert_yaxis()
    axes.set_title(literal(part.title), size=9.5, pad=4 + 72 * part.lift)
    turn = 90 if any(len(name) > 1 for name in part.columns) else 0
    axes.set_xticks(np.arange(width) + 0.5 if part.columns else [], labels=map(literal, part.columns), rotation=turn)
    axes.set_yticks(np.arange(height) + 0.5 if part.rows else [], labels=map(literal, part.rows))
    axes.tick_params(length=0, pad=3)
    axes.spines[:].set_visible(True)
    if part.rule:
        axes.axhline(part.rule, color=RULE, linewidth=1)
    for (row, column), value in np.ndenumerate(part.values if part.numbers else np.empty((0, 0))):
        if abs(value) >= FAINT:
            text = f"{value:+.2f}" if part.cell == WIDE_CELL else f"{value:+.1f}".replace("0.", ".").replace(".0", "")
            colour = "white" if abs(value) > 0.55 else INK
            axes.text(column + 0.5, row + 0.5, text, size=8, ha="center", va="center", color=colour)
    if part.rests is not None:
        rows, columns = np.nonzero(part.rests >= FAINT)
        sizes = 45 * part.rests[rows, columns].clip(max=1)
        axes.scatter(columns + 0.8, rows + 0.8, s=sizes, color="#f2b134", edgecolor=INK, linewidth=0.4, zorder=3)
