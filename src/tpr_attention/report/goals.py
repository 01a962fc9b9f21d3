"""Past the paper: whether interacting factors are solved, cell by cell, next to what can be known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tpr_attention.experiments.beyond import BEYOND, NEW, OURS
from tpr_attention.experiments.contestants import KNOWABLE, LINEAR
from tpr_attention.experiments.layout import TESTS, Panel, Setup
from tpr_attention.experiments.points import ROUNDING
from tpr_attention.report.cells import averaged, floor_cells, heights
from tpr_attention.report.document import Figure, Section, Table, Text
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Losses, mean
from tpr_attention.report.style import number

__all__ = ["goals", "goals_verdict", "section"]

LOW, WORST, EASY, TIMES, EXCESS = 1e-5, 1e-4, 1e-6, 100.0, 1.1


class Goal(NamedTuple):
    """A cell past the paper: how the stacked blocks do, and whether that is what was asked for."""

    panel: Panel
    losses: Losses
    floors: dict[str, float]

    @property
    def is_solvable(self) -> bool:
        return self.floors[KNOWABLE] < ROUNDING

    @property
    def is_met(self) -> bool:
        """At the floor, or solved: far below the linear floor and for every seed."""
        loss = mean(self.losses)
        if not np.isfinite(self.losses).all():
            return False
        if not self.is_solvable:
            return loss <= EXCESS * self.floors[KNOWABLE] + LOW
        if not self.panel.interaction:
            return loss <= EASY
        linear = self.floors[LINEAR]
        return loss <= LOW and self.losses.max() <= WORST and (linear < ROUNDING or loss * TIMES <= linear)


def goals(results: Results, setup: Setup) -> list[Goal]:
    """Every cell past the paper that is stored."""
    panels = [panel for make in BEYOND.values() for panel in make(setup).panels]
    return [
        Goal(panel, _final(results, panel, OURS), heights(results, panel))
        for panel in panels
        if results.complete((*panel.curves, *panel.floors))
    ]


def section(results: Results, setup: Setup) -> Section | None:
    """The figures, every cell, and in which of them the goal is reached; None before anything is stored."""
    found = goals(results, setup)
    if not found:
        return None
    rows = []
    for goal in found:
        panel = goal.panel
        others = (averaged(_final(results, panel, curve.label)) for curve in panel.curves)
        low = goal.floors[LINEAR] / max(mean(goal.losses), ROUNDING)
        rows.append(
            [
                panel.interaction or "none",
                panel.split,
                TESTS[panel.condition],
                *floor_cells(results, panel),
                *others,
                number(float(goal.losses.max())),
                number(low) if goal.floors[LINEAR] else "-",
                "yes" if goal.is_met else "no",
            ]
        )
    labels = [curve.label for curve in found[0].panel.curves]
    columns = ["interaction", "split", "test", "best linear fit", "best guess", "solvable", *labels]
    columns += [f"{OURS}: worst seed", f"best linear fit / {OURS}", "goal met"]
    words = (
        "Two new contestants, in the paper's own language, with the same options and learning rate in all settings "
        "(chosen on some of these cells, decision 0021): "
        f"`tpr-second`, {NEW['tpr-second']} (a memory of order two, appendix C) beside the paper's, in one layer; "
        f"`{OURS}`, two blocks, of which the first substitutes and the second reads what has become of it, with "
        "linear, normalised and second-order heads. A cell is solvable if training, or an input, tells all that its "
        f"answers need. The goal: a mean loss of at most {LOW:g}, at most {WORST:g} for the worst seed and {TIMES:g} "
        "times below the best linear fit where a cell with an interaction is solvable, at most "
        f"{EASY:g} without interaction, and where it is not solvable at most {EXCESS:g} times the best guess."
    )
    figures = [make(setup) for make in BEYOND.values()]
    return Section(
        "Past the paper: interacting factors",
        [
            Text(goals_verdict(found)),
            Text(words),
            *(Figure(study, study.caption) for study in figures),
            Table("beyond", "Every cell, with what can be known: mean final losses over seeds.", columns, rows),
        ],
    )


def goals_verdict(found: Sequence[Goal]) -> str:
    """How many cells are solved, and which are not."""
    solvable = [goal for goal in found if goal.is_solvable]
    missed = [goal for goal in found if not goal.is_met]
    interacting = [goal for goal in solvable if goal.panel.interaction]
    gains = [goal.floors[LINEAR] / max(mean(goal.losses), ROUNDING) for goal in interacting if goal.floors[LINEAR]]
    said = (
        f"Of {len(found)} cells {len(solvable)} are solvable. The stacked blocks reach the goal in "
        f"{len(found) - len(missed)} cells, {sum(goal.is_met for goal in interacting)} of {len(interacting)} "
        "solvable ones with an interaction among them"
    )
    if gains:
        median = float(np.median(gains))
        said += f"; there they are {number(median)} times below the best linear fit (median)"
    if not missed:
        return f"{said}."
    listed = "; ".join(
        f"{goal.panel.name} ({number(mean(goal.losses))}, worst seed {number(float(goal.losses.max()))})"
        for goal in missed
    )
    return f"{said}. Not reached: {listed}."


def _final(results: Results, panel: Panel, label: str) -> Losses:
    return results.final(next(curve for curve in panel.curves if curve.label == label), panel.condition)
