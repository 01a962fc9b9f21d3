"""Tables of final losses: every cell, every role, every action, every model's size."""

from collections.abc import Iterable, Sequence

import numpy as np

from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS, KNOWABLE, LINEAR
from tpr_attention.experiments.layout import TESTS, Panel
from tpr_attention.experiments.points import ROUNDING
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.report.document import Table
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Interval, Losses, mean, nearest, ratio, standard_error
from tpr_attention.report.style import number

__all__ = [
    "actions_table",
    "averaged",
    "cells_table",
    "distinct",
    "floor_cells",
    "heights",
    "interval",
    "roles_table",
    "sizes_table",
]

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
        "solvable",
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
        row += floor_cells(results, panel)
        linear = heights(results, panel).get(LINEAR, 0.0)
        row.append(number(mean(losses[OURS]) / linear) if linear > ROUNDING else "-")
        rows.append(row)
    caption = "Final losses: mean over seeds and standard error (SE), without seeds that diverged. Ratios: geometric."
    return Table("cells", caption, columns, rows)


def heights(results: Results, panel: Panel) -> dict[str, float]:
    """The mean loss over seeds of each floor of a panel that is stored; zero where it is below rounding."""
    finals = {curve.label: mean(results.final(curve, panel.condition)) for curve in panel.floors}
    return {label: 0.0 if loss < ROUNDING else loss for label, loss in finals.items() if loss == loss}


def floor_cells(results: Results, panel: Panel) -> list[str]:
    """Both floors of a panel, and whether it can be solved at all."""
    found = heights(results, panel)
    solvable = ("no" if found[KNOWABLE] else "yes") if KNOWABLE in found else "-"
    return [*(number(found.get(label)) for label in FLOORS), solvable]


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
        for curve in (*panel.curves, *panel.floors)
    ]
    parts = list(dict.fromkeys(part for *_, of_parts in found for part in of_parts))
    rows = [[*_cell(panel), label, *(number(of.get(part)) for part in parts)] for panel, label, of in found if of]
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
