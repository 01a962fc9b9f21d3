"""Every figure of the paper: which trainings it needs and how it is laid out (sec. 4, App. F)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from tpr_attention.report.panels import Band, Panel, Plan, Series
from tpr_attention.studies.contestants import (
    INTERACTIONS,
    PAPER,
    SOLVABLE,
    SPLITS,
    TESTS,
    cell,
    contestant,
    contestant_series,
    floor_series,
    solvable,
)
from tpr_attention.studies.paper.readings import DEFAULT, READINGS
from tpr_attention.studies.study import Setup
from tpr_attention.training.spec import RunSpec

__all__ = ["FIGURES", "MAIN", "figure"]

SD, SE, TWO_SE = Band(2, "SD"), Band(1, "SE"), Band(2, "SE")


def figure(name: str, setup: Setup, reading: str = DEFAULT) -> Plan:
    """One of `FIGURES`, under a reading of the paper.

    >>> main = figure("main-noninteracting", Setup())
    >>> [panel.column for panel in main.panels][0], len(main.specs)
    ('Test 1: held-out reference', 25)
    """
    return FIGURES[name](setup, reading)


def _tests(
    setup: Setup, reading: str, row: str, split: str, interaction: str | None, heads: int, band: Band, prefix: str = ""
) -> Iterator[Panel]:
    """The three tests of one task, side by side."""
    read = READINGS[reading]
    usual = (contestant_series(name, contestant(name, split, interaction, heads), setup) for name in PAPER)
    series = tuple(_changed(one, read.of(one.specs[0], heads)) for one in usual)
    floors = tuple(_changed(one, read.of_floor(one.specs[0])) for one in floor_series(split, interaction, setup))
    for condition, test in TESTS.items():
        about = cell(split, interaction, condition, heads)
        yield Panel(row, prefix + test, about, condition, band, series, floors, mark=solvable)


def _changed(series: Series, first: RunSpec) -> Series:
    """A series with the same seeds and another first spec, which may also have other steps than the setup."""
    return replace(series, specs=tuple(first.with_seed(spec.seed) for spec in series.specs))


def _main_noninteracting(setup: Setup, reading: str) -> Plan:
    panels = _tests(setup, reading, "square_red", "square_red", None, 4, SD)
    return Plan(
        "main-noninteracting",
        "Without interaction: square_red, 4 heads",
        "Loss on held-out combinations (square_red) in the three tests; attention has 4 heads.",
        tuple(panels),
        SOLVABLE,
    )


def _main_interacting(setup: Setup, reading: str) -> Plan:
    rows = (
        _tests(setup, reading, title, "square_red", interaction, 8, SE) for interaction, title in INTERACTIONS.items()
    )
    return Plan(
        "main-interacting",
        "With interaction: square_red, 8 heads",
        "Loss on held-out combinations (square_red) when two factors interact; attention has 8 heads.",
        tuple(panel for row in rows for panel in row),
        SOLVABLE,
    )


def _noninteracting(setup: Setup, reading: str) -> Plan:
    rows = (
        _tests(setup, reading, split, split, None, heads, band, f"{heads} heads, ")
        for split in SPLITS
        for heads, band in ((4, SD), (8, TWO_SE))
    )
    return Plan(
        "noninteracting",
        "Without interaction: all splits, 4 and 8 heads",
        "Loss on held-out combinations without interaction: three splits, 4 heads (left) and 8 heads (right).",
        tuple(panel for row in rows for panel in row),
        SOLVABLE,
    )


def _interacting(name: str, interaction: str) -> Callable[[Setup, str], Plan]:
    def make(setup: Setup, reading: str) -> Plan:
        rows = (_tests(setup, reading, split, split, interaction, 8, SE) for split in SPLITS)
        return Plan(
            name,
            f"With {INTERACTIONS[interaction]}: all splits, 8 heads",
            f"Loss on held-out combinations with the {INTERACTIONS[interaction]}: three splits, 8 heads.",
            tuple(panel for row in rows for panel in row),
            SOLVABLE,
        )

    return make


FIGURES: dict[str, Callable[[Setup, str], Plan]] = {
    "main-noninteracting": cache(_main_noninteracting),
    "main-interacting": cache(_main_interacting),
    "noninteracting": cache(_noninteracting),
    "numerical": cache(_interacting("numerical", "scale_pos")),
    "categorical": cache(_interacting("categorical", "shape_col")),
}
"""Name to figure, in the paper's order; each is made once for a setup and a reading."""

MAIN = ("main-noninteracting", "main-interacting")
"""The figures that are made under every reading."""
