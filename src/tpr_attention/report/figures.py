"""Studies as pictures: PNG, SVG and PDF. The same results give the same bytes."""

from math import ceil
from pathlib import Path
from textwrap import shorten, wrap
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from tpr_attention.experiments.layout import Panel, Study
from tpr_attention.report import lines as content
from tpr_attention.report.pictures import FORMS, encoded, literal, look
from tpr_attention.report.results import Results
from tpr_attention.report.style import MUTED, Style

__all__ = ["draw", "save"]

LEFT, RIGHT, PANEL_HEIGHT, GAP, ROW_GAP = 1.14, 0.2, 1.75, 0.16, 0.24
ENTRY, ENTRY_HEIGHT, NOTE_HEIGHT = 2.0, 0.22, 0.16
LONGEST = 80
"""Characters of an entry of the legend."""
LETTERS = 15
"""Characters of a note in an inch."""


class Sheet(NamedTuple):
    """Where things are on the picture, in inches."""

    rows: int
    columns: int
    entries: int
    longest: int
    title_lines: int
    note_lines: int

    @property
    def panel_width(self) -> float:
        return 2.6 if self.columns <= 3 else 1.85

    @property
    def width(self) -> float:
        return LEFT + self.columns * self.panel_width + (self.columns - 1) * GAP + RIGHT

    @property
    def top(self) -> float:
        return 0.4 + 0.16 * self.title_lines

    @property
    def legend_lines(self) -> int:
        return ceil(self.entries / self.legend_columns)

    @property
    def legend_columns(self) -> int:
        return max(1, int((self.width - LEFT) / max(ENTRY, 0.6 + 0.075 * self.longest)))

    @property
    def legend_bottom(self) -> float:
        return 0.12 + NOTE_HEIGHT * self.note_lines if self.note_lines else 0.06

    @property
    def foot(self) -> float:
        return self.legend_bottom + self.legend_lines * ENTRY_HEIGHT + 0.52

    @property
    def height(self) -> float:
        return self.top + self.rows * PANEL_HEIGHT + (self.rows - 1) * ROW_GAP + self.foot

    def grid(self, figure: Figure) -> GridSpec:
        """The places of panels."""
        return figure.add_gridspec(
            self.rows,
            self.columns,
            left=LEFT / self.width,
            right=1 - RIGHT / self.width,
            top=1 - self.top / self.height,
            bottom=self.foot / self.height,
            wspace=GAP / self.panel_width,
            hspace=ROW_GAP / PANEL_HEIGHT,
        )


def save(study: Study, results: Results, folder: Path) -> list[Path]:
    """Write `<name>.png`, `.svg` and `.pdf` into a folder that is there."""
    figure, paths = draw(study, results), [folder / f"{study.name}.{form}" for form in FORMS]
    for path, form in zip(paths, FORMS, strict=True):
        path.write_bytes(encoded(figure, form))
    return paths


def draw(study: Study, results: Results) -> Figure:
    """The figure of a study: loss against training steps or sizes, a panel for each task and test."""
    rows, columns, looks = content.rows(study), content.columns(study), content.looks(study)
    notes, band = content.notes(study, results), content.one_band(study)
    entries = _entries(study, results, looks)
    longest = max(len(str(entry.get_label())) for entry in entries)
    sheet = Sheet(len(rows), len(columns), len(entries), longest, 1 if band else 2, 0)
    lines = wrap(" ".join(notes), int((sheet.width - LEFT) * LETTERS))
    sheet = sheet._replace(note_lines=len(lines))
    limits = {row: content.limits([panel for panel in study.panels if panel.row == row], results) for row in rows}
    with look():
        figure = Figure(figsize=(sheet.width, sheet.height))
        grid = sheet.grid(figure)
        for panel in study.panels:
            row, column = rows.index(panel.row), columns.index(panel.column)
            axes = figure.add_subplot(grid[row, column])
            _draw_panel(axes, panel, results, looks, limits[panel.row])
            axes.tick_params(which="both", labelleft=column == 0, labelbottom=row == len(rows) - 1)
            if row == 0:
                axes.set_title(literal("\n".join(content.column_title(study, panel))))
            if row == len(rows) - 1:
                axes.set_xlabel(literal(panel.axis))
            if column == 0:
                axes.set_ylabel("loss")
                _write_row_title(figure, panel, sheet, sum(axes.get_position().intervaly) / 2)
        left = LEFT / sheet.width
        figure.text(left, 1 - 0.1 / sheet.height, literal(study.title), va="top", size=12, weight="bold")
        figure.text(left, 0.07 / sheet.height, "\n".join(lines), va="bottom", size=8.5, color=MUTED)
        across = ceil(len(entries) / sheet.legend_lines)
        figure.legend(
            handles=[entry for first in range(across) for entry in entries[first::across]],  # read along the lines
            loc="lower left",
            bbox_to_anchor=(left, sheet.legend_bottom / sheet.height),
            ncols=across,
            frameon=False,
            borderaxespad=0,
            borderpad=0,
            handlelength=3,
            columnspacing=2.2,
        )
    return figure


def _draw_panel(
    axes: Axes, panel: Panel, results: Results, looks: dict[str, Style], limits: tuple[float, float]
) -> None:
    axes.set_yscale("log")
    axes.set_ylim(*limits)
    axes.yaxis.set_major_locator(LogLocator(numticks=6))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y")
    if panel.sizes:
        axes.set_xscale("log")
        axes.set_xticks(panel.sizes, [f"{size:g}" for size in panel.sizes], minor=False)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(*content.ends(panel))
    found = content.lines(panel, results)
    for order, line in enumerate(reversed(found), 1):
        colour = looks[line.label].colour
        if line.edges:
            low, high = line.edges
            axes.fill_between(
                line.steps, low.clip(min=content.UNDER), high, color=colour, alpha=0.15, linewidth=0, zorder=1
            )
        axes.plot(line.steps, line.mean.clip(min=content.UNDER), zorder=2 + order, **_pen(looks[line.label]))
    for label, height in content.floors(panel, results).items():
        if height >= content.BOTTOM:
            axes.axhline(height, zorder=3 + len(found), **_pen(looks[label]))
    if mark := content.mark(panel, results):
        axes.annotate(
            mark,
            (0.99, 0.99),
            xycoords="axes fraction",
            ha="right",
            va="top",
            size=8,
            color=MUTED,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )
    if not found:
        axes.annotate(content.NOT_RUN, (0.5, 0.5), xycoords="axes fraction", color=MUTED, ha="center", va="center")


def _write_row_title(figure: Figure, panel: Panel, sheet: Sheet, middle: float) -> None:
    words = literal("\n".join(content.row_title(panel)))
    figure.text((LEFT - 0.7) / sheet.width, middle, words, rotation=90, ha="right", va="center", weight="bold")


def _entries(study: Study, results: Results, looks: dict[str, Style]) -> list[Artist]:
    """The legend: every line, and what the band is."""
    entries: list[Artist] = [Line2D([], [], **_pen(look)) for look in looks.values()]
    if any(line.edges for panel in study.panels for line in content.lines(panel, results)):
        band = content.one_band(study)
        said = f"band: {content.band_words(band)}" if band else "band: see the column"
        entries.append(Patch(facecolor="#9ca3af", alpha=0.4, label=said))
    return entries


def _pen(look: Style) -> dict[str, Any]:
    """A style in matplotlib's words: the marker stands at the end of the line."""
    return {
        "label": literal(shorten(look.words, LONGEST, placeholder=" ...")),
        "color": look.colour,
        "linewidth": look.width,
        "linestyle": (0, look.dashes) if look.dashes else "-",
        "marker": look.marker or None,
        "markersize": 4.5,
        "markevery": [-1],
    }
