"""The learning-rate search: the same small grid for every contestant, judged in distribution only."""

from collections.abc import Iterator
from functools import cache

from tpr_attention.report.document import Block, Text
from tpr_attention.report.panels import Series
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.contestants import CONTESTANTS, contestant
from tpr_attention.studies.kinds import linked
from tpr_attention.studies.rate_search import GRID, best_rate, score
from tpr_attention.studies.study import SEARCH_SEEDS, Setup
from tpr_attention.training.spec import RunSpec

__all__ = ["search", "search_blocks", "search_specs"]

Key = tuple[str, str | None, int]


@cache
def search(steps: int) -> dict[Key, dict[float, tuple[RunSpec, ...]]]:
    """The runs of the search, by contestant, interaction and heads, and by rate."""
    keys = [(name, *setting) for name, one in CONTESTANTS.items() for setting in one.rates]
    return {key: {rate: _runs(key, rate, steps) for rate in GRID} for key in keys}


def search_specs(setup: Setup) -> Iterator[RunSpec]:
    """All runs of the search."""
    return (spec for rates in search(setup.steps).values() for specs in rates.values() for spec in specs)


def _runs(key: Key, rate: float, steps: int) -> tuple[RunSpec, ...]:
    name, interaction, heads = key
    spec = contestant(name, "square_red", interaction, heads)
    changed = spec.changed({"training.learning_rate": rate, "training.steps": steps})
    return tuple(map(changed.with_seed, SEARCH_SEEDS))


def search_blocks(results: Results, setup: Setup) -> list[Block]:
    """The score of every rate, as far as the search is stored."""

    def loss(spec: RunSpec) -> float:
        return float(results.final(Series("", (spec,)), "in_distribution")[0])

    rows = []
    for (name, interaction, heads), rates in search(setup.steps).items():
        if results.complete([Series("", specs) for specs in rates.values()]):
            best = best_rate(rates, loss)
            scores = [linked(10 ** score(list(map(loss, rates[rate]))), rates[rate][0]) for rate in GRID]
            used = CONTESTANTS[name].rates[interaction, heads]
            rows.append([name, interaction or "none", heads, *scores, best, best == used])
    if not rows:
        return [Text("The search for learning rates can be repeated: `tpr-attention reproduce --studies search`.")]
    columns = [Column("model"), Column("interaction"), Column("heads", "count")]
    columns += [*(Column(f"{rate:g}", "number") for rate in GRID), Column("best", "exact")]
    columns.append(Column("is the one used", "yes_no"))
    caption = "In-distribution loss for each learning rate: geometric mean over three seeds that no study uses."
    return [Table("search", caption, columns, rows)]
