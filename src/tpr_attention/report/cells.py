"""Tables of final losses: every cell, every role, every action, every model's size."""

from collections.abc import Iterable, Sequence

import numpy as np

from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS
from tpr_attention.experiments.studies import TESTS, Curve, Panel
from tpr_attention.report.document import Table
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Interval, ratio, standard_error
from tpr_attention.report.style import number

__all__ = ["actions_table", "cells_table", "distinct", "interval", "roles_table", "sizes_table"]

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


def cells_table(results: Results, panels: Sequence[Panel]) -> Table:
    """Every cell: mean and standard error of each contestant, the floors, and how far apart they are."""
    columns = [
        *CELL,
        *(f"{label}: {word}" for label in CONTESTANTS for word in ("mean", "SE")),
        "best baseline / tpr [95 %]",
        *FLOORS,
        "tpr / linear-floor",
    ]
    rows = []
    for panel in distinct(panels):
        losses = {curve.label: _present(results.final(curve, panel.condition)) for curve in panel.curves}
        floors = {curve.label: _present(results.final(curve, panel.condition)) for curve in panel.floors}
        row = list(_cell(panel))
        for found in losses.values():
            row += [number(_mean(found)), number(standard_error(found))]
        row.append(_advantage(losses))
        # Without interaction the task is a substitution, which is linear: both floors are zero.
        row += [number(_mean(floors[label])) if panel.interaction else "0" for label in FLOORS]
        row.append(number(_mean(losses[OURS]) / _mean(floors["linear-floor"])) if panel.interaction else "-")
        rows.append(row)
    return Table("cells", "Final losses: mean over seeds, standard error (SE), ratio, floors.", columns, rows)


def _advantage(losses: dict[str, np.ndarray]) -> str:
    """The loss of the baseline with the smaller mean, as a multiple of ours."""
    best = min((losses[label] for label in BASELINES), key=_mean)
    return interval(ratio(losses[OURS], best)) if len(best) == len(losses[OURS]) > 0 else "-"


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
    """How many numbers each model learns, and how long it took."""
    curves: dict[tuple[str, int | None, str], Curve] = {}
    for panel in distinct(panels):
        for curve in panel.curves:
            curves.setdefault((curve.label, panel.heads, "yes" if panel.interaction else "no"), curve)
    rows = []
    for (label, heads, interacts), curve in sorted(
        curves.items(), key=lambda item: list(CONTESTANTS).index(item[0][0])
    ):
        stored = results.stored(curve)
        if stored:
            origin = results.store.provenance(stored[0].digest)
            rate = f"{stored[0].learning_rate:g}"
            row = [label, str(heads), interacts, str(origin["parameters"]), rate, number(float(str(origin["seconds"])))]
            rows.append(row)
    columns = ["model", "heads", "interaction", "parameters", "learning rate", "seconds per training"]
    return Table("sizes", "Sizes of the models, their learning rates, and the time of one training.", columns, rows)


def _cell(panel: Panel) -> tuple[str, str, str, str]:
    return panel.interaction or "none", panel.split, str(panel.heads), TESTS[panel.condition]


def _present(losses: np.ndarray) -> np.ndarray:
    return np.extract(np.isfinite(losses), losses)


def _mean(losses: np.ndarray) -> float:
    return float(losses.mean()) if len(losses) else float("nan")
