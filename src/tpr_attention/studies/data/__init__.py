"""The map of the paper's claim: which model is lowest with how many training pairs, in every cell."""

from collections.abc import Sequence
from typing import Any

from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Panel, Plan
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.contestants import OURS, PAPER
from tpr_attention.studies.data.lowest import (
    Point,
    lowest_in_short,
    lowest_map,
    lowest_table,
    lowest_words,
    points_of,
)
from tpr_attention.studies.data.search import rate_blocks, search
from tpr_attention.studies.data.specs import (
    ALL,
    FIRST_SEED,
    MODELS,
    SIZES,
    THIN,
    data_setup,
    figures,
    part,
    specs_of,
)
from tpr_attention.studies.data.verdicts import claim_table, claim_words, counts_of, judged_of
from tpr_attention.studies.kinds import linked
from tpr_attention.studies.paper.cells import FLOOR_COLUMNS, floor_cells
from tpr_attention.studies.paper.claims import SOLVED, series_of
from tpr_attention.studies.sizes import series_at
from tpr_attention.studies.study import Chapter, Setup, Study

__all__ = ["DATA"]

NEWEST = MODELS[-1]
"""The model that is meant to be lowest everywhere."""
TITLE = "How many training pairs: a map of the paper's claim"
TO_JUDGE = tuple(judged_of({}, TITLE))
RATES = "Learning rates by number of training pairs"


def _chapter(results: Results, setup: Setup) -> Chapter:
    plans = figures(setup)
    stored = _stored(plans, results)
    rates = Section(RATES, rate_blocks(results, setup))
    if not stored:
        is_searched = any(isinstance(block, Table) and block.name == "data-search" for block in rates.blocks)
        return Chapter((), (rates,) if is_searched else (), (), TO_JUDGE)
    models = [name for name in MODELS if any(name == one for _, _, one in stored)]
    sizes = [size for size in SIZES if any(size == one for _, one, _ in stored)]
    splits = list(dict.fromkeys(panel.cell["split"] for panel, _, _ in stored))
    parts = [part(plan, models, sizes, splits) for plan in plans]
    papers, every = points_of(plans, results, PAPER), points_of(plans, results, models)
    counts = counts_of(papers)
    said, short = list(claim_words(counts)), []
    if NEWEST in models and len(models) > 1 and any(point.is_solvable for point in every):
        said.append(lowest_words(every, NEWEST))
        short.append(lowest_in_short(every, NEWEST))
    blocks: list[Block] = [*map(Text, said), Text(_explained(setup)), *_maps(papers, every, models)]
    blocks += [Curves(plan, results) for plan in parts if any(map(results.stored, plan.series()))]
    blocks.append(_means(results, plans, models, stored))
    return Chapter(tuple(short), (Section(TITLE, blocks),), (rates,), tuple(judged_of(counts, TITLE)))


def _stored(plans: Sequence[Plan], results: Results) -> list[tuple[Panel, int, str]]:
    """Every panel, number of pairs and model whose runs are all stored."""
    return [
        (panel, int(size), series.name)
        for plan in plans
        for panel in plan.panels
        for place, size in enumerate(panel.sizes)
        for series in panel.series
        if results.complete([series_at(panel, series, place)])
    ]


def _explained(setup: Setup) -> str:
    own = data_setup(setup)
    return (
        "The paper does not say how many training pairs it uses; its figures above have 50,000. Here every model has "
        f"one set of options for all cells, attention has 8 heads, and all are trained for {own.steps:,} steps on "
        f"seeds from {FIRST_SEED} on, which no development has used. Learning rates are chosen for each model and "
        "number of pairs by one rule, on the loss in distribution (decision 0029). Nobody stops early. A batch has 100 "
        "pairs, or all if there are fewer."
    )


def _maps(papers: Sequence[Point], every: Sequence[Point], models: Sequence[str]) -> list[Block]:
    """The maps of the paper's models and of all; the second only where there are more."""
    blocks: list[Block] = []
    if papers:
        blocks += [claim_table(counts_of(papers)), *_map("data-paper", "the paper's three models", papers)]
    if every and len(models) > 1 and set(models) != set(PAPER):
        blocks += _map("data-all", "all models" if len(models) == len(MODELS) else f"{len(models)} models", every)
        if any(point.is_solvable for point in every):
            blocks.append(lowest_table(every))
    return blocks


def _map(name: str, whose: str, points: Sequence[Point]) -> list[Block]:
    """A map, and the same as a table."""
    title = f"Who is lowest, and by what factor: {whose}"
    caption = (
        f"{title}, in each cell (rows) with each number of training pairs (columns). Also where several models have "
        f"solved a cell (a loss below {SOLVED:g}), the lowest is shown."
    )
    found = lowest_map(name, title, caption, points)
    return [found, found.table()]


def _means(
    results: Results, plans: Sequence[Plan], models: Sequence[str], stored: Sequence[tuple[Panel, int, str]]
) -> Table:
    """Every cell and number of pairs: the mean of each model that is stored there, and the floors."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    panels = {tuple(panel.cell.values()): panel for plan in plans for panel in plan.panels}
    for panel, size, name in stored:
        series = series_at(panel, series_of(panel, name), panel.sizes.index(size))
        losses = linked(results.final(series, panel.condition, panel.metric), series.specs[0])
        found.setdefault((*panel.cell.values(), str(size)), {})[name] = losses
    rows = [
        [*cell, int(size), *map(losses.get, models), *floor_cells(results, panels[tuple(cell)])]
        for (*cell, size), losses in found.items()
    ]
    columns = [*(Column(key) for key in next(iter(panels.values())).cell), Column("pairs", "count")]
    columns += [*(Column(name, "mean") for name in models), *FLOOR_COLUMNS]
    caption = (
        "Every cell and number of training pairs: arithmetic means of final losses over seeds, without seeds that "
        f"diverged. In these means `{OURS}` may be lower where it is not in the maps, which compare geometric ones."
    )
    return Table("data", caption, columns, rows, "file")


DATA = Study(
    "data",
    "which model is lowest with how many training pairs, in every cell",
    {
        "data": lambda setup: specs_of(setup, *ALL),
        "data-thin": lambda setup: specs_of(setup, *THIN),
        "data-search": lambda setup: search(setup).specs(),
    },
    _chapter,
    by_default=("data-thin",),
    is_scaled=True,
    first_seed=FIRST_SEED,
    to_judge=TO_JUDGE,
)
