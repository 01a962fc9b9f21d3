"""Past the paper: second order, stacked blocks and laws in every cell of the paper, next to what can be known."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Panel, Plan, Series
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Losses, mean
from tpr_attention.report.style import number
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.contestants import (
    KNOWABLE,
    LINEAR,
    NEW,
    SPLITS,
    TESTS,
    contestant,
    contestant_series,
    figure_of,
    floor_series,
    setting_words,
    task_panels,
    words,
)
from tpr_attention.studies.kinds import linked
from tpr_attention.studies.paper.cells import FLOOR_COLUMNS, floor_cells, heights, linked_final
from tpr_attention.studies.paper.claims import final
from tpr_attention.studies.study import Chapter, Setup, Study, over_seeds
from tpr_attention.training.spec import ROUNDING, RunSpec

__all__ = ["BEYOND"]

COMPARED = ("tpr", "resnet", *NEW)
JUDGED = ("tpr-stack", "tpr-laws")
LOW, WORST, EASY, TIMES, EXCESS = 1e-5, 1e-4, 1e-6, 100.0, 1.1


class Goal(NamedTuple):
    """A cell: how a model does, and whether that is what was asked for."""

    panel: Panel
    losses: Losses
    floors: dict[str, float]

    @property
    def interacts(self) -> bool:
        return self.panel.cell["interaction"] != "none"

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
        if not self.interacts:
            return loss <= EASY
        linear = self.floors[LINEAR]
        return loss <= LOW and self.losses.max() <= WORST and (linear < ROUNDING or loss * TIMES <= linear)

    @property
    def gain(self) -> float | None:
        """The best linear fit as a multiple of the loss."""
        return self.floors[LINEAR] / max(mean(self.losses), ROUNDING) if self.floors[LINEAR] else None

    @property
    def judged(self) -> tuple[float, float | None, bool]:
        """The loss of the worst seed, the gain, and whether the goal is met."""
        return float(self.losses.max()), self.gain, self.is_met


def _panels(setup: Setup, split: str, interaction: str | None) -> Iterator[Panel]:
    series = tuple(contestant_series(name, setup, contestant(name, split, interaction, 8)) for name in COMPARED)
    return task_panels(split, split, interaction, series, floor_series(split, interaction, setup))


@cache
def figures(setup: Setup) -> list[Plan]:
    """A figure for each interaction, and one without."""
    return [
        figure_of(
            f"beyond-{name}",
            f"Past the paper, {(said := setting_words(interaction))}",
            f"Loss on held-out combinations {said}: the paper's layer and models that go past it.",
            (panel for split in SPLITS for panel in _panels(setup, split, interaction)),
        )
        for interaction, name in ((None, "none"), ("scale_pos", "numerical"), ("shape_col", "categorical"))
    ]


@cache
def _carried(setup: Setup) -> dict[str, Series]:
    """The task whose inputs carry a filler that training never shows, with and without the preference for it."""
    spec = contestant(JUDGED[-1], "square_red", "shape_col")
    return {
        "with": over_seeds("with", spec, setup),
        "without": over_seeds("without", spec.changed({"model.carries": False}), setup),
    }


def _carried_table(results: Results, setup: Setup) -> list[Block]:
    series = _carried(setup)
    if not results.complete(series.values()):
        return []
    rows: list[list[Any]] = [
        [test, *(linked(results.final(one, test), one.specs[0]) for one in series.values())] for test in TESTS
    ]
    columns = [Column("test"), *(Column(f"{JUDGED[-1]} {name} the preference", "mean") for name in series)]
    caption = (
        "Categorical interaction, red squares held out: in the first two tests an input carries the filler of a red "
        "square, which training never shows; in the last none does. The preference for what an input carries is built "
        "in, not learned. Arithmetic means over seeds."
    )
    return [Table("carried", caption, columns, rows, "open")]


def _chapter(results: Results, setup: Setup) -> Chapter:
    plans = figures(setup)
    panels = [panel for plan in plans for panel in plan.panels if results.complete((*panel.series, *panel.floors))]
    carried = _carried_table(results, setup)
    if not panels:
        return Chapter((), (Section("Past the paper: what inputs carry", carried),)) if carried else Chapter()
    goals = {name: [Goal(one, final(results, one, name), heights(results, one)) for one in panels] for name in JUDGED}
    cells = sum(len(plan.panels) for plan in plans)
    said = [_verdict(name, found, cells) for name, found in goals.items()]
    blocks: list[Block] = [
        *map(Text, said),
        Text(_explained()),
        *(Curves(plan, results) for plan in plans if any(map(results.stored, plan.series()))),
        _table(results, panels, goals),
        *carried,
    ]
    met = sum(goal.is_met for goal in goals[JUDGED[-1]])
    stored = " that were run" if len(panels) < cells else ""
    short = (
        f"Past the paper, `{JUDGED[-1]}` reaches the goal that was set for it in {met} of {len(panels)} cells{stored}."
    )
    return Chapter((short,), (Section("Past the paper: every cell", blocks),))


def _table(results: Results, panels: Sequence[Panel], goals: Mapping[str, Sequence[Goal]]) -> Table:
    rows: list[list[Any]] = [
        [
            *panel.cell.values(),
            *floor_cells(results, panel),
            *(linked_final(results, panel, name) for name in COMPARED),
            *(entry for found in goals.values() for entry in found[place].judged),
        ]
        for place, panel in enumerate(panels)
    ]
    columns = [Column("interaction"), Column("split"), Column("test"), *FLOOR_COLUMNS]
    columns += [Column(name, "mean") for name in COMPARED]
    for name in JUDGED:
        columns += [Column(f"{name}: worst seed", "number"), Column(f"best linear fit / {name}", "number")]
        columns.append(Column(f"{name}: goal met", "yes_no"))
    return Table(
        "beyond", "Every cell, with what can be known: arithmetic means of final losses over seeds.", columns, rows
    )


def _explained() -> str:
    return (
        "Three new contestants, in the paper's own language, each with the same options and learning rate in all "
        f"settings: `tpr-second`, {words('tpr-second')} (a memory of order two, appendix C) beside the paper's, in one "
        "layer; `tpr-stack`, two blocks, of which the first substitutes and the second reads what has become of it, "
        "with linear, normalised and second-order heads (both chosen on some of these cells, decision 0021); "
        "`tpr-laws`, which substitutes, recomputes roles by laws of objects and cleans up (chosen on other "
        "splits and seeds, decision 0030). A cell is solvable if training, or an input, tells all that its "
        f"answers need. The goal: a mean loss of at most {LOW:g}, at most {WORST:g} for the worst seed and {TIMES:g} "
        "times below the best linear fit where a cell with an interaction is solvable, at most "
        f"{EASY:g} without interaction, and where it is not solvable at most {EXCESS:g} times the best guess."
    )


def _verdict(name: str, goals: Sequence[Goal], cells: int) -> str:
    """How many cells a model solves of those that are stored, and which it does not."""
    solved = [goal for goal in goals if goal.is_solvable]
    missed = [goal for goal in goals if not goal.is_met]
    interacting = [goal for goal in solved if goal.interacts]
    gains = [goal.gain for goal in interacting if goal.gain is not None]
    stored = f" that are stored, of {cells}," if len(goals) < cells else ""
    said = (
        f"Of {len(goals)} cells{stored} {len(solved)} are solvable. `{name}` reaches the goal in "
        f"{len(goals) - len(missed)}"
    )
    if interacting:
        met = sum(goal.is_met for goal in interacting)
        said += f", {met} of {len(interacting)} solvable ones with an interaction among them"
    if gains:
        said += f"; there it is {number(float(np.median(gains)))} times below the best linear fit (median)"
    if not missed:
        return f"{said}."
    listed = "; ".join(
        f"{goal.panel.name} ({number(mean(goal.losses))}, worst seed {number(float(goal.losses.max()))})"
        for goal in missed
    )
    return f"{said}. Not reached: {listed}."


def _specs(setup: Setup) -> Iterator[RunSpec]:
    yield from (spec for plan in figures(setup) for spec in plan.specs)
    yield from (spec for series in _carried(setup).values() for spec in series.specs)


BEYOND = Study(
    "beyond",
    "past the paper: second order, stacked blocks and laws in every cell",
    {"beyond": _specs},
    _chapter,
)
