"""The search for learning rates at each number of training pairs: one rule for all models (decision 0029)."""

from functools import cache

from tpr_attention.report.document import Block, Text
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.data.rates import RATES
from tpr_attention.studies.data.specs import MODELS, SETTINGS, SIZES, data_setup, data_spec
from tpr_attention.studies.rate_search import RateSearch
from tpr_attention.studies.study import SEARCH_SEEDS, Setup

__all__ = ["rate_blocks", "search"]

SPLIT = "square_red"


def search(setup: Setup) -> RateSearch:
    """The search by model and number of pairs, over all interactions."""
    return _search(data_setup(setup).steps)


@cache
def _search(steps: int) -> RateSearch:
    kinds = {
        (name, size): [data_spec(name, SPLIT, interaction, size) for interaction in SETTINGS]
        for name in MODELS
        for size in SIZES
    }
    return RateSearch("data-search", (Column("model"), Column("pairs", "count")), kinds, steps)


def rate_blocks(results: Results, setup: Setup) -> list[Block]:
    """The scores of all rates, and whether those in use are the best; if no search is stored, those in use."""
    caption = (
        "In-distribution loss for each learning rate, by number of training pairs: geometric mean over the three "
        f"settings (none and both interactions, {SPLIT}) and {len(SEARCH_SEEDS)} seeds that no study uses."
    )
    searched = search(setup).table(results, caption)
    if searched is not None:
        return [searched]
    said = "The search for these rates can be repeated: `tpr-attention reproduce --studies data-search`."
    columns = [Column("model"), *(Column(f"rate with {size:,} pairs", "exact") for size in SIZES)]
    rows = [[name, *rates.values()] for name, rates in RATES.items()]
    return [Text(said), Table("data-rates", "Learning rates by number of training pairs.", columns, rows)]
