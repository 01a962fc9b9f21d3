"""Tables of final losses: every cell, every role, every action, every model's size."""

from collections.abc import Iterable, Sequence

import numpy as np

from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS, LINEAR
from tpr_attention.experiments.layout import TESTS, Panel
from tpr_attention.experiments.points import ROUNDING
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.report.document import Table
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Interval, Losses, mean, nearest, ratio, standard_error
from tpr_attention.report.style import number

__all__ = ["actions_table", "averaged", "cells_table", "distinct", "interval", "roles_table", "sizes_table"]

OURS, *BASELINES = CONTESTANTS
CELL = ("interaction", "split", "heads", "test")


def distinct(panels: Iterable[Panel]) -> list[Panel]:
    """One panel for each cell, in order: figures share some."""
    tests = list(TESTS)
    found = {(panel.interaction, panel.split, panel.heads, panel.condition): panel for panel in panels}
    return sorted(
        found.values(), key=lambda one: (one.interaction or "", one.split, one.heads, tests.index(one.condition))
    )


def interval(found: Interval) -> str:
    """An estimate with its interval in brackets.

    >>> interval(Interval(2.0, 1.5, 2.5))
    '2.0 [1.5, 2.5]'
    """
    if found.low is None or found.high is None:
        return number(found.value)
    return f"{number(found.value)} [{number(found.low)}, {number(found.high)}]"


def averaged(losses: Losses) -> str:
    """The mean over seeds, and how many of them diverged and are left out.

    >>> averaged(np.array([0.25, np.inf, 0.25]))
    '0.25 (1 diverged)'
    """
    diverged = int(np.isinf(losses).sum())
    return number(mean(losses)) + (f" ({diverged} diverged)" if diverged else "")


def cells_table(results: Results, panels: Sequence[Panel]) -> Table:
    """Every cell: mean and standard error of each contestant, the floors, and how far apart they are."""
    columns = [
        *CELL,
        *(f"{label}: {word}" for label in CONTESTANTS for word in ("mean", "SE")),
        "better baseline",
        "its loss / tpr's [95 %]",
        *FLOORS.values(),
        f"tpr / {FLOORS[LINEAR]}",
    ]
    rows = []
    for panel in distinct(panels):
        losses = {curve.label: results.final(curve, panel.condition) for curve in panel.curves}
        better = nearest({label: losses[label] for label in BASELINES})
        row = list(_cell(panel))
        for found in losses.values():
            row += [averaged(found), number(standard_error(found))]
        row += [better, interval(ratio(losses[OURS], losses[better]))]
        floors = {curve.label: results.final(curve, panel.condition) for curve in panel.floors}
        # Without interaction the task is a substitution, which is linear: both floors are zero.
        heights = {label: float(floors[label].mean()) if label in floors else 0.0 for label in FLOORS}
        row += [number(0.0 if height < ROUNDING else height) for height in heights.values()]
        row.append(number(mean(losses[OURS]) / heights[LINEAR]) if heights[LINEAR] > ROUNDING else "-")
        rows.append(row)
    caption = "Final losses: mean over seeds and standard error (SE), without seeds that diverged. Ratios: geometric."
    return Table("cells", caption, columns, rows)


def roles_table(results: Results, panels: Sequence[Panel]) -> Table:
    """The loss of each role."""
    return _breakdown("roles", "Final loss by role, mean over seeds.", results.by_role, panels)


def actions_table(results: Results, panels: Sequence[Panel]) -> Table:
    """The loss of each action."""
    caption = "Final loss by action, mean over seeds; - where a test has no pair with that action."
    return _breakdown("actions", caption, results.by_action, panels)


def _breakdown(name: str, caption: str, losses: object, panels: Sequence[Panel]) -> Table:
    found = [
        (panel, curve.label, losses(curve, panel.condition))  # type: ignore[operator]
        for panel in distinct(panels)
        for curve in panel.curves
    ]
    parts = list(dict.fromkeys(part for *_, of_parts in found for part in of_parts))
    rows = [[*_cell(panel), label, *(number(of.get(part)) for part in parts)] for panel, label, of in found]
    return Table(name, caption, [*CELL, "model", *parts], rows, folded=True)


def sizes_table(results: Results, panels: Sequence[Panel]) -> Table:
    """How many numbers each model learns, and at which rate."""
    curves: dict[tuple[str, str, str], list[RunSpec]] = {}
    for panel in distinct(panels):
        for curve in panel.curves:
            heads = str(curve.specs[0].options.get("num_heads", "-"))
            curves.setdefault((curve.label, panel.interaction or "none", heads), []).extend(curve.specs)
    rows = []
    for label, interaction, heads in sorted(curves, key=lambda key: [*CONTESTANTS].index(key[0])):
        specs = dict.fromkeys(curves[label, interaction, heads])
        origins = [results.store.provenance(spec.digest) for spec in specs]
        sizes, rates = {str(origin.get("parameters")) for origin in origins}, {spec.learning_rate for spec in specs}
        rows.append([label, interaction, heads, ", ".join(sizes), ", ".join(f"{r:g}" for r in rates)])
    columns = ["model", "interaction", "heads", "parameters", "learning rate"]
    caption = "Sizes of the models and their learning rates."
    return Table("sizes", caption, columns, rows)


def _cell(panel: Panel) -> tuple[str, str, str, str]:
    return panel.interaction or "none", panel.split, str(panel.heads), TESTS[panel.condition]
