"""What a figure shows, before it is drawn: lines, bands, floors, and how far the axes reach."""

from collections.abc import Iterable
from math import ceil, floor, isfinite, log10
from textwrap import wrap
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from tpr_attention.experiments.contestants import KNOWABLE, LINEAR
from tpr_attention.experiments.layout import Band, Curve, Panel, Study
from tpr_attention.experiments.points import ROUNDING as BOTTOM
from tpr_attention.report.results import Course, Results
from tpr_attention.report.statistics import band
from tpr_attention.report.style import Style, styles

__all__ = [
    "BOTTOM",
    "NOT_RUN",
    "UNDER",
    "Line",
    "band_words",
    "column_title",
    "columns",
    "ends",
    "floors",
    "limits",
    "lines",
    "looks",
    "mark",
    "notes",
    "one_band",
    "row_title",
    "rows",
]


UNDER = 1e-16
"""Where losses of zero are drawn: below every axis."""

CUT = 10.0
"""Bands end at the latest this many times below the mean: one that reaches zero would fill a logarithmic axis."""

NOT_RUN = "not run yet"


class Line(NamedTuple):
    """The mean over seeds, and the edges of the band about it, the lower one cut; with one seed there are none."""

    label: str
    steps: Float[np.ndarray, "s"]
    mean: Float[np.ndarray, "s"]
    edges: tuple[Float[np.ndarray, "s"], Float[np.ndarray, "s"]] | None
    seeds: int


def rows(study: Study) -> list[str]:
    """Titles of rows, from the top."""
    return list(dict.fromkeys(panel.row for panel in study.panels))


def columns(study: Study) -> list[str]:
    """Titles of columns, from the left."""
    return list(dict.fromkeys(panel.column for panel in study.panels))


def row_title(panel: Panel) -> list[str]:
    """The title of a panel's row, in lines that are no longer than a panel is high."""
    return wrap(panel.row, 24)


def column_title(study: Study, panel: Panel) -> list[str]:
    """The title of a panel's column in lines: where bands differ, also its band."""
    return [panel.column] if one_band(study) else [panel.column, f"band: {band_words(panel.band)}"]


def looks(study: Study) -> dict[str, Style]:
    """The looks of all lines: contestants first, then floors."""
    contestants = [curve.label for panel in study.panels for curve in panel.curves]
    return styles([*contestants, *(curve.label for panel in study.panels for curve in panel.floors)])


def lines(panel: Panel, results: Results) -> list[Line]:
    """The contestants of a panel that are stored."""
    found = []
    for curve in panel.curves:
        course = _against_sizes(panel, curve, results) if panel.sizes else results.course(curve, panel.condition)
        if course is not None:
            steps, losses = course.steps.astype(float), course.losses
            mean, *edges = band(losses, panel.band) or (losses.mean(0),)
            shown = (np.maximum(edges[0], mean / CUT), edges[1]) if edges else None
            found.append(Line(curve.label, steps, mean, shown, len(losses)))
    return found


def _against_sizes(panel: Panel, curve: Curve, results: Results) -> Course | None:
    """The final losses of a line, for the sizes at which all seeds are stored and none has diverged."""
    losses = results.final(curve, panel.condition).reshape(len(panel.sizes), -1).T
    whole = np.isfinite(losses).all(0)
    return Course(np.array(panel.sizes, dtype=float)[whole], losses[:, whole]) if whole.any() else None


def floors(panel: Panel, results: Results) -> dict[str, float]:
    """Label to mean final loss over the seeds, of the floors of a panel that are stored."""
    finals = {curve.label: results.final(curve, panel.condition) for curve in panel.floors}
    stored = {label: losses[np.isfinite(losses)] for label, losses in finals.items()}
    return {label: float(losses.mean()) for label, losses in stored.items() if losses.size}


def mark(panel: Panel, results: Results) -> str:
    """What is written into a panel: whether anybody can solve it, and a linear map; nothing before that is known."""
    found = floors(panel, results)
    if KNOWABLE not in found:
        return ""
    if found[KNOWABLE] >= BOTTOM:
        return "not solvable"
    return "solvable, also linearly" if found.get(LINEAR, BOTTOM) < BOTTOM else "solvable"


def limits(panels: Iterable[Panel], results: Results) -> tuple[float, float]:
    """The ends of a logarithmic axis for some panels: all means, bands and floors, but nothing below `BOTTOM`."""
    panels = list(panels)
    found = [line for panel in panels for line in lines(panel, results)]
    means = [value for line in found for value in line.mean.tolist()]
    below, above = ([value for line in found if line.edges for value in line.edges[side].tolist()] for side in (0, 1))
    heights = [height for panel in panels for height in floors(panel, results).values()]
    shown = [value for value in (*means, *above, *heights) if isfinite(value) and value >= BOTTOM]
    if not shown:
        return 1e-3, 1.0
    high = max(shown)
    low = min(value for value in (*shown, *below) if value >= BOTTOM)
    margin = min(2.0, max(1.25, (high / low) ** 0.06))
    leaves = any(value < BOTTOM for value in means)
    bottom, top = BOTTOM if leaves else max(BOTTOM, low / margin), high * margin
    if any(panel.sizes for panel in panels):
        top *= (top / bottom) ** 0.15  # room for the mark: these lines do not start high on the left
    if ceil(log10(bottom)) >= floor(log10(top)):  # an axis needs two numbers
        bottom = 10.0 ** (ceil(log10(bottom)) - 1)
    return bottom, top


def ends(panel: Panel) -> tuple[float, float]:
    """Where the horizontal axis begins and ends; one of sizes is logarithmic."""
    if panel.sizes:
        margin = (panel.sizes[-1] / panel.sizes[0]) ** 0.04
        return panel.sizes[0] / margin, panel.sizes[-1] * margin
    last = max(spec.steps for curve in panel.curves for spec in curve.specs)
    return -0.02 * last, 1.02 * last


def band_words(band: Band) -> str:
    """A band in words.

    >>> band_words(Band(2, "SD"))
    'mean ± 2 SD'
    """
    return f"mean ± {band.times} {band.kind}"


def one_band(study: Study) -> Band | None:
    """The band of all panels; None where panels differ."""
    bands = {panel.band for panel in study.panels}
    return bands.pop() if len(bands) == 1 else None


def notes(study: Study, results: Results) -> list[str]:
    """What a reader of the figure must know besides its legend: the seeds, and what is out of sight."""
    found = [line for panel in study.panels for line in lines(panel, results)]
    if not found:
        return []
    few, many = min(line.seeds for line in found), max(line.seeds for line in found)
    over = f"{few} to {many} seeds" if few < many else f"{many} seeds"
    said = [f"Lines: mean over {over}." if many > 1 else "Lines: one seed, no band."]
    curves = [(curve, panel.condition) for panel in study.panels for curve in panel.curves]
    diverged = {spec for curve, _ in curves for spec in results.diverged(curve)}
    if diverged:
        said.append(f"Left out: {len(diverged)} runs that diverged.")
    if gaps := [curve.label for curve, _ in curves if not results.stored(curve)]:
        said.append(f"Not run everywhere yet: {', '.join(look.words for look in styles(gaps).values())}.")
    if any(mark(panel, results) for panel in study.panels):
        said.append(f"Solvable: the best guess has no loss{_linearly(study, results)}.")
    if any((line.mean < BOTTOM).any() for line in found):
        said.append(f"Losses below {BOTTOM:.0e} are left out of sight.")
    if any(line.edges and (line.edges[0] == line.mean / CUT).any() for line in found):
        said.append(f"Bands are cut at a {CUT:.0f}th of the mean.")
    return said


def _linearly(study: Study, results: Results) -> str:
    marks = [mark(panel, results) for panel in study.panels]
    return "; also linearly: nor has the best linear fit" if any("also" in one for one in marks) else ""
