"""Tables of final losses: every cell, every role, every action, every model's size."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tpr_attention.report.panels import Panel, Series
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import mean, ratio, standard_error
from tpr_attention.report.tables import Column, Linked, Table
from tpr_attention.studies.contestants import BASELINES, FLOORS, KNOWABLE, LINEAR, OURS, PAPER, words
from tpr_attention.studies.kinds import cost, linked
from tpr_attention.studies.paper.claims import final, series_of
from tpr_attention.training.spec import ROUNDING

__all__ = [
    "FLOOR_COLUMNS",
    "MEANS",
    "RATIO_COLUMNS",
    "actions_table",
    "cells_table",
    "distinct_cells",
    "floor_cells",
    "heights",
    "linked_final",
    "roles_table",
    "sizes_table",
]

CELL = [Column("interaction"), Column("split"), Column("heads", "count"), Column("test")]
FLOOR_COLUMNS = [*(Column(words(name), "number") for name in FLOORS), Column("solvable", "yes_no")]
RATIO_COLUMNS = [Column(f"{name} / {OURS} [95 %]", "interval") for name in BASELINES]
MEANS = (
    "Losses are arithmetic means over seeds, without seeds that diverged; ratios are geometric means over seeds, each "
    f"seed compared with itself, and above 1 where `{OURS}` is lower."
)
"""Which means a table has."""


def distinct_cells(panels: Iterable[Panel]) -> list[Panel]:
    """One panel for each cell, in order: figures share some."""
    found = {tuple(panel.cell.values()): panel for panel in panels}
    return [found[key] for key in sorted(found, key=lambda key: key[:-1])]  # tests stay in the paper's order


def cells_table(results: Results, panels: Sequence[Panel]) -> Table:
    """Every cell: mean and standard error of each contestant, the floors, and how far apart they are."""
    columns = [*CELL]
    for name in PAPER:
        columns += [Column(f"{name}: mean", "mean"), Column(f"{name}: SE", "number")]
    columns += [*RATIO_COLUMNS, *FLOOR_COLUMNS]
    columns.append(Column(f"tpr / {words(LINEAR)}", "number"))
    rows = []
    for panel in distinct_cells(panels):
        losses = {name: final(results, panel, name) for name in PAPER}
        row: list[Any] = _cell(panel)
        for name, found in losses.items():
            row += [linked_final(results, panel, name), standard_error(found)]
        row += [*(ratio(losses[OURS], losses[name]) for name in BASELINES), *floor_cells(results, panel)]
        linear = heights(results, panel).get(LINEAR, 0.0)
        rows.append([*row, mean(losses[OURS]) / linear if linear > ROUNDING else None])
    return Table(
        "cells", f"Final losses, and the standard errors (SE) of their means. {MEANS}", columns, rows, latex=True
    )


def _cell(panel: Panel) -> list[Any]:
    """What the columns of `CELL` have."""
    cell = panel.cell
    return [cell["interaction"], cell["split"], int(cell["heads"]), cell["test"]]


def linked_final(results: Results, panel: Panel, name: str) -> Linked:
    """The final losses of a contestant of a panel, with a link to its runs."""
    return linked(final(results, panel, name), series_of(panel, name).specs[0])


def heights(results: Results, panel: Panel) -> dict[str, float]:
    """The mean loss over seeds of each floor of a panel that is stored; zero where it is below rounding."""
    finals = {series.name: mean(results.final(series, panel.condition, panel.metric)) for series in panel.floors}
    return {name: 0.0 if loss < ROUNDING else loss for name, loss in finals.items() if loss == loss}


def floor_cells(results: Results, panel: Panel) -> list[float | bool | None]:
    """Both floors of a panel, and whether it can be solved at all."""
    found = heights(results, panel)
    return [*(found.get(name) for name in FLOORS), not found[KNOWABLE] if KNOWABLE in found else None]


def roles_table(results: Results, panels: Sequence[Panel]) -> Table:
    """The loss of each role."""

    def by_role(series: Series, condition: str) -> Mapping[str, float]:
        return {name: value for name, value in results.by_metric(series, condition).items() if name != "loss"}

    return _breakdown("roles", "Final loss by role, arithmetic mean over seeds.", by_role, panels)


def actions_table(results: Results, panels: Sequence[Panel]) -> Table:
    """The loss of each action."""
    caption = "Final loss by action, arithmetic mean over seeds; - where a test has no pair with that action."
    return _breakdown(
        "actions", caption, lambda series, condition: results.by_group(series, condition, "action"), panels
    )


def _breakdown(
    name: str, caption: str, losses: Callable[[Series, str], Mapping[str, float]], panels: Sequence[Panel]
) -> Table:
    found = [
        (panel, series, losses(series, panel.condition))
        for panel in distinct_cells(panels)
        for series in (*panel.series, *panel.floors)
    ]
    parts = list(dict.fromkeys(part for *_, of_parts in found for part in of_parts))
    rows = [
        [*_cell(panel), linked(series.name, series.specs[0]), *map(of.get, parts)] for panel, series, of in found if of
    ]
    columns = [*CELL, Column("model"), *(Column(part, "number") for part in parts)]
    return Table(name, caption, columns, rows, "file")


def sizes_table(results: Results, panels: Sequence[Panel]) -> Table:
    """How many numbers each model learns, and at which rate."""
    kinds: dict[tuple[str, str, int | None, int | None, float], None] = {}
    for panel in distinct_cells(panels):
        for series in panel.series:
            for spec in series.specs:
                heads, parameters = spec.model.options.get("num_heads"), cost(results, [spec])[0]
                rate = spec.training.learning_rate
                kinds[series.name, panel.cell["interaction"], heads, parameters, rate] = None
    rows = sorted(kinds, key=lambda kind: PAPER.index(kind[0]))
    columns = [Column("model"), Column("interaction"), Column("heads", "count"), Column("parameters", "count")]
    columns.append(Column("learning rate", "exact"))
    return Table("sizes", "Sizes of the models and their learning rates.", columns, rows)
