"""The runs over numbers of training pairs, and the figures of their losses."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache

from tpr_attention.report.panels import Panel, Plan, Series
from tpr_attention.studies.contestants import (
    PAPER,
    SPLITS,
    contestant,
    contestant_series,
    figure_of,
    floor_series,
    setting_words,
    task_panels,
)
from tpr_attention.studies.data.rates import RATES
from tpr_attention.studies.sizes import series_at
from tpr_attention.studies.study import Setup
from tpr_attention.training.spec import RunSpec

__all__ = [
    "ALL",
    "FIRST_SEED",
    "MODELS",
    "SETTINGS",
    "SIZES",
    "THIN",
    "data_panels",
    "data_setup",
    "data_spec",
    "figures",
    "part",
    "specs_of",
]

MODELS = tuple(RATES)
SIZES = tuple(RATES[MODELS[0]])
SETTINGS: dict[str | None, str] = {None: "none", "scale_pos": "numerical", "shape_col": "categorical"}
"""The interactions, and what the files of their figures are called after."""
MOST_STEPS = 3_000
MOST_BATCH = 100
HEADS = 8
FIRST_SEED = 100
"""Fresh seeds: no development and no search has used them."""

ALL = (MODELS, SIZES, SPLITS)
THIN = (PAPER, (100, 1_000, 10_000), ("square_red",))
"""Models, numbers of pairs and splits: of the whole study, and of the part that every reproduction has."""


def data_setup(setup: Setup) -> Setup:
    """The steps and seeds of this study."""
    return replace(setup, steps=min(setup.steps, MOST_STEPS), first_seed=FIRST_SEED)


def data_spec(name: str, split: str, interaction: str | None, size: int) -> RunSpec:
    """A model that is trained on so many pairs, at the rate of the table.

    >>> spec = data_spec("tpr", "square_red", None, 30)
    >>> spec.training.train_examples, spec.training.batch_size, spec.model.options["num_heads"]
    (30, 30, 8)
    """
    return contestant(name, split, interaction, HEADS).changed(
        {
            "training.learning_rate": RATES[name][size],
            "training.train_examples": size,
            "training.batch_size": min(MOST_BATCH, size),
        }
    )


def data_panels(
    row: str, split: str, interaction: str | None, models: Collection[str], sizes: tuple[int, ...], setup: Setup
) -> Iterator[Panel]:
    """The tests of a task: final losses against the number of training pairs."""
    specs = {name: [data_spec(name, split, interaction, size) for size in sizes] for name in models}
    series = tuple(contestant_series(name, setup, *found) for name, found in specs.items())
    floors = floor_series(split, interaction, setup)
    return task_panels(row, split, interaction, series, floors, sizes=sizes, axis="training pairs")


@cache
def _figure(interaction: str | None, setup: Setup) -> Plan:
    """Final losses against the number of training pairs with one interaction; a row for each split."""
    setup, said = data_setup(setup), setting_words(interaction)
    rows = (data_panels(split, split, interaction, MODELS, SIZES, setup) for split in SPLITS)
    return figure_of(
        f"data-{SETTINGS[interaction]}",
        f"Loss against training pairs, {said}",
        f"Final loss on held-out combinations against the number of training pairs, {said}; {setup.steps:,} steps for "
        "all, without early stopping. The floors are those of 50,000 pairs.",
        (panel for row in rows for panel in row),
    )


def figures(setup: Setup) -> tuple[Plan, ...]:
    """The figures of all interactions."""
    return tuple(_figure(interaction, setup) for interaction in SETTINGS)


def part(plan: Plan, models: Collection[str], sizes: Collection[float | int], splits: Collection[str]) -> Plan:
    """The same figure with only some models, numbers of pairs and splits."""
    return replace(
        plan, panels=tuple(_part(panel, models, sizes) for panel in plan.panels if panel.cell["split"] in splits)
    )


def _part(panel: Panel, models: Collection[str], sizes: Collection[float | int]) -> Panel:
    places = [place for place, size in enumerate(panel.sizes) if size in sizes]
    return replace(
        panel,
        series=tuple(_at(panel, series, places) for series in panel.series if series.name in models),
        sizes=tuple(panel.sizes[place] for place in places),
    )


def _at(panel: Panel, series: Series, places: list[int]) -> Series:
    return replace(series, specs=tuple(spec for place in places for spec in series_at(panel, series, place).specs))


def specs_of(
    setup: Setup, models: Collection[str], sizes: Collection[float | int], splits: Collection[str]
) -> Iterator[RunSpec]:
    """All runs of a part of the study, with its floors."""
    return (spec for plan in figures(setup) for spec in part(plan, models, sizes, splits).specs)
