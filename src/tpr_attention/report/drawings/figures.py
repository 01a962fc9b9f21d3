"""Curves as pictures."""

from math import ceil
from textwrap import shorten, wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

from tpr_attention.report.drawings.curves import NOT_RUN, FigureCurves, PanelCurves
from tpr_attention.report.drawings.pictures import literal, settings
from tpr_attention.report.style import MUTED

__all__ = ["draw"]

SIDES, TOP, ROW, AXIS, LINE, EDGE = 1.3, 0.32, 1.95, 0.45, 0.155, 0.07
"""Inches: left and right of panels, the title, a row of panels, the names below, a line of notes, an empty edge."""
LETTERS = 15
"""Characters of a note in an inch."""
LONGEST = 80
"""Characters of an entry of the legend."""


def draw(curves: FigureCurves) -> Figure:
    """Panels in rows and columns; above them the title, below them the legend and notes."""
    rows, columns = len(curves.rows), len(curves.columns)
    width = SIDES + columns * (2.76 if columns <= 3 else 2.0)
    notes = wrap(curves.remarks, int((width - SIDES) * LETTERS))
    with settings():
        figure = Figure(figsize=(width, 1))
        FigureCanvasAgg(figure)
        legend = _legend(figure, curves, width - SIDES)
        legend_bottom = EDGE + LINE * len(notes) + EDGE * bool(notes)
        legend_top = legend_bottom + legend.get_window_extent().height / figure.dpi
        title_lines = max(len(curves.column_title(panel)) for panel in curves.panels)
        height = legend_top + EDGE + AXIS + rows * ROW + LINE * title_lines + TOP
        figure.set_size_inches(width, height)
        grid = figure.add_gridspec(rows, columns)
        for panel in curves.panels:
            row, column = curves.place(panel)
            axes = figure.add_subplot(grid[row, column])
            _draw_panel(axes, panel, curves)
            axes.tick_params(which="both", labelleft=column == 0, labelbottom=row == rows - 1)
            if row == 0:
                axes.set_title(literal("\n".join(curves.column_title(panel))))
            if row == rows - 1:
                axes.set_xlabel(literal(panel.axis))
            if column == 0:
                metric = axes.set_ylabel(literal(panel.metric))
                words = literal("\n".join(wrap(panel.row, 24)))  # no longer than a panel is high
                left_of: dict[str, Any] = {"xycoords": metric, "xytext": (-4, 0), "textcoords": "offset points"}
                axes.annotate(words, (0, 0.5), ha="right", va="center", rotation=90, weight="bold", **left_of)
        below = (legend_top + EDGE) / height
        ConstrainedLayoutEngine(rect=(0, below, 1, 1 - TOP / height - below), w_pad=EDGE, h_pad=EDGE).execute(figure)
        left = min(axes.get_position().x0 for axes in figure.axes)
        figure.text(left, 1 - EDGE / height, literal(curves.title), va="top", size=12, weight="bold")
        figure.text(left, EDGE / height, literal("\n".join(notes)), va="bottom", size=8.5, color=MUTED)
        legend.set_bbox_to_anchor((left, legend_bottom / height), figure.transFigure)
    return figure


def _draw_panel(axes: Axes, panel: PanelCurves, curves: FigureCurves) -> None:
    axes.set_yscale(panel.scale)
    axes.set_ylim(*curves.limits[panel.row])
    axes.grid(axis="y")
    if panel.scale == "log":
        axes.yaxis.set_major_locator(LogLocator(numticks=6))
        axes.yaxis.set_minor_formatter(NullFormatter())
    if panel.sizes:
        axes.set_xscale("log")
        axes.set_xticks(panel.sizes, [f"{size:g}" for size in panel.sizes], minor=False)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xscale(panel.axis_scale)
        is_log = panel.axis_scale == "log"
        axes.xaxis.set_major_locator(LogLocator(numticks=6) if is_log else MaxNLocator(4, steps=[1, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(EngFormatter(sep="") if panel.has_steps else StrMethodFormatter("{x:,g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(*panel.span)
    for order, line in enumerate(reversed(panel.lines), 1):
        if line.edges:
            low, high, colour = *map(panel.drawable, line.edges), curves.looks[line.name].colour
            axes.fill_between(line.places, low, high, color=colour, alpha=0.15, linewidth=0, zorder=1)
        axes.plot(line.places, panel.drawable(line.mean), zorder=2 + order, **_stroke(curves, line.name))
    for name, height in panel.floors.items():
        axes.axhline(*panel.drawable(np.array([height])), zorder=3 + len(panel.lines), **_stroke(curves, name))
    for name, values in panel.known.items():
        heights = panel.drawable(np.array([*values.values()]))
        axes.plot([*values], heights, zorder=4 + len(panel.lines), **_stroke(curves, name))
    small: dict[str, Any] = {"xycoords": "axes fraction", "color": MUTED}
    if panel.mark:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.annotate(literal(panel.mark), (0.99, 0.99), ha="right", va="top", size=8, bbox=box, **small)
    if not panel.lines:
        axes.annotate(NOT_RUN, (0.5, 0.5), ha="center", va="center", **small)


def _legend(figure: Figure, curves: FigureCurves, width: float) -> Legend:
    """Every series and the band, in as few lines as a width in inches allows, read along the lines."""
    entries: list[Line2D | Patch] = [Line2D([], [], **_stroke(curves, name)) for name in curves.looks]
    if curves.has_bands:
        entries.append(Patch(facecolor="#9ca3af", alpha=0.4, label=f"band: {curves.band or 'see the column'}"))
    spaces: dict[str, Any] = {"borderaxespad": 0, "borderpad": 0, "handlelength": 3, "columnspacing": 2.2}
    for lines in range(1, len(entries) + 1):
        across = ceil(len(entries) / lines)
        handles = [entry for first in range(across) for entry in entries[first::across]]
        legend = figure.legend(handles=handles, loc="lower left", ncols=across, frameon=False, **spaces)
        if legend.get_window_extent().width <= width * figure.dpi or across == 1:
            break
        legend.remove()
    return legend


def _stroke(curves: FigureCurves, name: str) -> dict[str, Any]:
    """A look in matplotlib's words; the marker is at the end of the line. What is known from elsewhere is points."""
    look, is_known = curves.looks[name], any(name in panel.known for panel in curves.panels)
    return {
        "label": literal(shorten(curves.labels[name], LONGEST, placeholder=" ...")),
        "color": look.colour,
        "linewidth": look.width,
        "linestyle": "none" if is_known else (0, look.dashes) if look.dashes else "-",
        "marker": look.marker or None,
        "markersize": 4.5,
        "markevery": None if is_known else [-1],
        "markerfacecolor": "none" if is_known else look.colour,
    }
