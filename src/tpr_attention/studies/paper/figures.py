"""Every figure of the paper: which trainings it needs and how it is laid out (sec. 4, App. F)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from tpr_attention.report.panels import Band, Panel, Plan, Series
from tpr_attention.studies.contestants import (
    INTERACTIONS,
    PAPER,
    SPLITS,
    contestant,
    contestant_series,
    figure_of,
    floor_series,
    task_panels,
)
from tpr_attention.studies.paper.readings import DEFAULT, READINGS, Reading
from tpr_attention.studies.study import Setup
from tpr_attention.training.spec import RunSpec

__all__ = ["FIGURES", "MAIN", "figure"]

SD, SE, TWO_SE = Band(2, "SD"), Band(1, "SE"), Band(2, "SE")


class PaperTask(NamedTuple):
    """A task of a figure: the title of its row, the task, the heads of attention, and how its panels are drawn."""

    row: str
    split: str
    interaction: str | None
    heads: int
    band: Band
    prefix: str = ""

    def panels(self, setup: Setup, reading: Reading) -> Iterator[Panel]:
        """Its three tests under a reading of the paper."""
        row, split, interaction, heads, band, prefix = self
        usual = (contestant_series(name, setup, contestant(name, split, interaction, heads)) for name in PAPER)
        series = tuple(_changed(one, reading.of(one.specs[0], heads)) for one in usual)
        floors = tuple(_changed(one, reading.of_floor(one.specs[0])) for one in floor_series(split, interaction, setup))
        return task_panels(row, split, interaction, series, floors, heads=heads, band=band, prefix=prefix)


def _changed(series: Series, first: RunSpec) -> Series:
    """A series with the same seeds and another first spec, which may also have other steps than the setup."""
    return replace(series, specs=tuple(first.with_seed(spec.seed) for spec in series.specs))


class Layout(NamedTuple):
    """A figure before it is made."""

    title: str
    caption: str
    tasks: Sequence[PaperTask]


def _interacting(interaction: str) -> Layout:
    return Layout(
        f"With {INTERACTIONS[interaction]}: all splits, 8 heads",
        f"Loss on held-out combinations with the {INTERACTIONS[interaction]}: three splits, 8 heads.",
        [PaperTask(split, split, interaction, 8, SE) for split in SPLITS],
    )


FIGURES = {
    "main-noninteracting": Layout(
        "Without interaction: square_red, 4 heads",
        "Loss on held-out combinations (square_red) in the three tests; attention has 4 heads.",
        [PaperTask("square_red", "square_red", None, 4, SD)],
    ),
    "main-interacting": Layout(
        "With interaction: square_red, 8 heads",
        "Loss on held-out combinations (square_red) when two factors interact; attention has 8 heads.",
        [PaperTask(title, "square_red", interaction, 8, SE) for interaction, title in INTERACTIONS.items()],
    ),
    "noninteracting": Layout(
        "Without interaction: all splits, 4 and 8 heads",
        "Loss on held-out combinations without interaction: three splits, 4 heads (left) and 8 heads (right).",
        [
            PaperTask(split, split, None, heads, band, f"{heads} heads, ")
            for split in SPLITS
            for heads, band in ((4, SD), (8, TWO_SE))
        ],
    ),
    "numerical": _interacting("scale_pos"),
    "categorical": _interacting("shape_col"),
}
"""Name to layout, in the paper's order."""

MAIN = ("main-noninteracting", "main-interacting")
"""The figures that are made under every reading."""


@cache
def figure(name: str, setup: Setup, reading: str = DEFAULT) -> Plan:
    """One of `FIGURES`, under a reading of the paper.

    >>> main = figure("main-noninteracting", Setup())
    >>> [panel.column for panel in main.panels][0], len(main.specs)
    ('Test 1: held-out reference', 25)
    """
    title, caption, tasks = FIGURES[name]
    panels = (panel for task in tasks for panel in task.panels(setup, READINGS[reading]))
    return figure_of(name, title, caption, panels)
