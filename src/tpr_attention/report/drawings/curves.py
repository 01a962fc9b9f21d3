"""What a figure of curves shows, before it is drawn: lines, bands, floors, notes, and how far the axes reach."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from textwrap import wrap
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from tpr_attention.report.panels import Known, Panel, Plan, Series
from tpr_attention.report.results import Course, Results
from tpr_attention.report.statistics import band
from tpr_attention.report.style import looks
from tpr_attention.training.spec import ROUNDING as BOTTOM

__all__ = ["NOT_RUN", "FigureCurves", "Line", "PanelCurves"]

UNDER = 1e-16
"""Where values of zero are drawn: below every logarithmic axis."""

CUT = 10.0
"""Bands end at the latest this many times below the mean: one that reaches zero would fill a logarithmic axis."""

LETTERS = 140
"""Characters that have a place above all columns together."""

NOT_RUN = "not run yet"


class Line(NamedTuple):
    """The mean of a series over seeds, and the edges of the band about it; with one seed there are none.

    Args:
        places: Where its points are on the horizontal axis.
    """

    name: str
    places: Float[np.ndarray, "s"]
    mean: Float[np.ndarray, "s"]
    edges: tuple[Float[np.ndarray, "s"], Float[np.ndarray, "s"]] | None
    seeds: int


class PanelCurves:
    """What a panel shows of the runs that are stored: lines, heights of floors by name, a mark, a horizontal axis."""

    def __init__(self, panel: Panel, results: Results) -> None:
        self.row, self.column, self.axis, self.metric = panel.row, panel.column, panel.axis, panel.metric
        self.scale, self.band, self.sizes = panel.scale, panel.band, panel.sizes
        self.axis_scale = "log" if panel.sizes else panel.axis_scale
        self.has_steps = not (panel.sizes or panel.lengths)
        self.lines = [line for series in panel.series if (line := _line(panel, series, results))]
        finals = {series.name: results.final(series, panel.condition, panel.metric) for series in panel.floors}
        stored = {name: values[np.isfinite(values)] for name, values in finals.items()}
        self.floors = {name: float(values.mean()) for name, values in stored.items() if values.size}
        self.known = {one.name: one.values for one in panel.known}
        self.mark = panel.mark(self.floors) if panel.mark else ""
        self.span = _span(panel, self.lines)

    def drawable(self, values: Float[np.ndarray, "s"]) -> Float[np.ndarray, "s"]:
        """Values that have a place, also below a logarithmic axis."""
        return values.clip(min=UNDER) if self.scale == "log" else values


class FigureCurves:
    """What a figure shows of the runs that are stored.

    Rows and columns are titles from the top and from the left. Vertical axes have limits by row. The legend has labels
    and looks by name of series. The band is that of all panels in words; empty where there is none, or where they
    differ. Remarks are what a reader must know besides the legend.
    """

    def __init__(self, plan: Plan, results: Results) -> None:
        self.name, self.title, self.caption = plan.name, plan.title, plan.caption
        panels = [PanelCurves(panel, results) for panel in plan.panels]
        begun = {panel.row for panel in panels if panel.lines}  # other rows are left out, unless that are all
        self.panels = [panel for panel in panels if panel.row in begun] or panels
        self.rows = list(dict.fromkeys(panel.row for panel in self.panels))
        self.columns = list(dict.fromkeys(panel.column for panel in self.panels))
        self.limits = {row: _limits([panel for panel in self.panels if panel.row == row]) for row in self.rows}
        contestants = [series for panel in plan.panels for series in panel.series]
        known = [one for panel in plan.panels for one in panel.known]
        every: list[Series | Known] = [
            *contestants,
            *(series for panel in plan.panels for series in panel.floors),
            *known,
        ]
        self.labels, self.looks = {series.name: series.label for series in every}, looks(every)
        self.has_bands = any(line.edges for panel in self.panels for line in panel.lines)
        bands = {str(panel.band) for panel in self.panels}
        self.band = bands.pop() if len(bands) == 1 and self.has_bands else ""
        self.remarks = " ".join(_remarks(plan, panels, results))

    @property
    def notes(self) -> str:
        """What the bands are, and the remarks."""
        return f"Bands: {self.band}. {self.remarks}" if self.band else self.remarks

    def place(self, panel: PanelCurves) -> tuple[int, int]:
        """The row and the column of a panel, from 0."""
        return self.rows.index(panel.row), self.columns.index(panel.column)

    def column_title(self, panel: PanelCurves) -> list[str]:
        """The title of a panel's column in lines: where bands differ, also its band."""
        title = wrap(panel.column, LETTERS // len(self.columns), break_on_hyphens=False) or [""]
        return title if self.band or not self.has_bands else [*title, f"band: {panel.band}"]


def _line(panel: Panel, series: Series, results: Results) -> Line | None:
    """A series as far as it is stored; None if it is not."""
    course: Course | None
    if panel.lengths and series.name not in panel.lengths:
        return None
    if panel.sizes:
        finals = results.final(series, panel.condition, panel.metric).reshape(len(panel.sizes), -1).T
        whole = np.isfinite(finals).all(0)  # the sizes at which all seeds are stored and none has diverged
        course = Course(np.array(panel.sizes)[whole], finals[:, whole]) if whole.any() else None
    else:
        course = _placed(panel, series, results.course(series, panel.condition, panel.metric))
    if course is None:
        return None
    mean, *edges = band(course.values, panel.band) or (course.values.mean(0),)
    if edges and panel.scale == "log":
        edges[0] = np.maximum(edges[0], mean / CUT)
    between = (edges[0], edges[1]) if edges else None
    return Line(series.name, course.steps.astype(float), mean, between, len(course.values))


def _placed(panel: Panel, series: Series, course: Course | None) -> Course | None:
    """A course on the horizontal axis of a panel; None if nothing has a place there.

    What comes after training has one only if the panel knows how much of the axis it takes.
    """
    if course is None:
        return None
    whole, last = series.specs[0].training.steps, course.steps.max()
    places, has_place = course.steps.astype(float), course.steps <= whole
    if panel.lengths:
        places = places / whole * panel.lengths[series.name]
    if panel.lengths and series.name in panel.further and last > whole:
        beyond = (course.steps - whole) / (last - whole) * panel.further[series.name]
        places = np.where(has_place, places, panel.lengths[series.name] + beyond)
        has_place[:] = True
    if panel.axis_scale == "log":
        has_place &= places > 0
    return Course(places[has_place], course.values[:, has_place]) if has_place.any() else None


def _span(panel: Panel, lines: Sequence[Line]) -> tuple[float, float]:
    """Where the horizontal axis begins and ends."""
    if panel.sizes or panel.axis_scale == "log":
        places = panel.sizes or [place for line in lines for place in line.places.tolist()] or [1.0]
        first, last = min(places), max(places)
        margin = (last / first) ** 0.04 if last > first else 2.0
        return first / margin, last * margin
    steps = (spec.training.steps for series in panel.series for spec in series.specs)
    ends = [length + panel.further.get(name, 0.0) for name, length in panel.lengths.items()]
    last = max(ends or steps, default=1)
    return -0.02 * last, 1.02 * last


def _limits(panels: Sequence[PanelCurves]) -> tuple[float, float]:
    """Where the vertical axis of a row begins and ends: at all means, bands and floors."""
    lines = [line for panel in panels for line in panel.lines]
    means = _finite(line.mean for line in lines)
    below, above = (_finite(line.edges[side] for line in lines if line.edges) for side in (0, 1))
    heights = [height for panel in panels for height in panel.floors.values()]
    heights += [value for panel in panels for values in panel.known.values() for value in values.values()]
    if panels[0].scale == "linear":
        shown = [*means, *below, *above, *heights] or [0.0, 1.0]
        margin = 0.05 * (max(shown) - min(shown)) or 0.05
        return min(shown) - margin, max(shown) + margin
    shown = [value for value in (*means, *above, *heights) if value >= BOTTOM]
    if not shown:
        return 1e-3, 1.0
    high, low = max(shown), min(value for value in (*shown, *below) if value >= BOTTOM)
    margin = min(2.0, max(1.25, (high / low) ** 0.06))
    leaves = any(value < BOTTOM for value in means)
    bottom, top = BOTTOM if leaves else max(BOTTOM, low / margin), high * margin
    if any(panel.sizes for panel in panels):
        top *= (top / bottom) ** 0.15  # room for the mark: these lines do not start high on the left
    if ceil(log10(bottom)) >= floor(log10(top)):  # an axis needs two numbers
        bottom = 10.0 ** (ceil(log10(bottom)) - 1)
    return bottom, top


def _finite(parts: Iterable[np.ndarray]) -> list[float]:
    return [value for part in parts for value in part[np.isfinite(part)].tolist()]


def _remarks(plan: Plan, panels: Sequence[PanelCurves], results: Results) -> Iterable[str]:
    lines = [(line, panel.scale == "log") for panel in panels for line in panel.lines]
    if not lines:
        return
    few, many = (choose(line.seeds for line, _ in lines) for choose in (min, max))
    over = f"{few} to {many} seeds" if few < many else f"{many} seeds"
    yield f"Lines: mean over {over}." if many > 1 else "Lines: one seed, no band."
    contestants = [series for panel in plan.panels for series in panel.series]
    if diverged := {spec for series in contestants for spec in results.diverged(series)}:
        yield f"Left out: {len(diverged)} run{'s' if len(diverged) > 1 else ''} that diverged."
    rows = dict.fromkeys(panel.row for panel in panels if not any(one.lines for one in panels if one.row == panel.row))
    if rows:
        yield f"Rows not run yet: {', '.join(rows)}."
    if gaps := dict.fromkeys(series.label for series in contestants if not results.stored(series)):
        yield f"Not run everywhere yet: {', '.join(gaps)}."
    if plan.note and any(panel.mark for panel in panels):
        yield plan.note
    if any(is_log and (line.mean < BOTTOM).any() for line, is_log in lines):
        yield f"Values below {BOTTOM:.0e} are not shown."
    if any(is_log and line.edges and (line.edges[0] == line.mean / CUT).any() for line, is_log in lines):
        yield f"Bands are cut at a {CUT:.0f}th of the mean."
