"""The learning-rate search: the same small grid for every contestant, judged in distribution only."""

from functools import cache

from tpr_attention.report.document import Block, Text
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column
from tpr_attention.studies.contestants import CONTESTANTS, contestant
from tpr_attention.studies.rate_search import RateSearch
from tpr_attention.studies.study import Setup

__all__ = ["search", "search_blocks"]


@cache
def search(steps: int) -> RateSearch:
    """The search by contestant, interaction and heads."""
    case = (Column("model"), Column("interaction"), Column("heads", "count"))
    kinds = {
        (name, *setting): [contestant(name, "square_red", *setting)]
        for name, one in CONTESTANTS.items()
        for setting in one.rates
    }
    return RateSearch("search", case, kinds, steps)


def search_blocks(results: Results, setup: Setup) -> list[Block]:
    """The score of every rate, as far as the search is stored."""
    caption = "In-distribution loss for each learning rate: geometric mean over three seeds that no study uses."
    unknown = Text("The search for learning rates can be repeated: `tpr-attention reproduce --studies search`.")
    return [search(setup.steps).table(results, caption, "folded") or unknown]
