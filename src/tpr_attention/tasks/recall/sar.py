"""Systematic associative recall: keys and values of two kinds, tested on a pairing of kinds that training lacks."""

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.tasks.recall.pairs import at, classified, distinct, expect_condition, expect_output, expect_whole
from tpr_attention.tasks.task import Batch

__all__ = ["Sar"]

MOST = 10_000


class Sar:
    """Pairs of a key and a value, then queries; the loss is the cross entropy of the values.

    Keys are of the kinds X1 and X2, values of the kinds Y1 and Y2. Training pairs X1 with Y2 and X2 with Y1; the tests
    `ood` pair X2 with Y2, which training never does, though it has all keys and all values.

    Args:
        each: How many keys and values there are of each kind.
        pairs: How many pairs a sequence of training has.
        test_pairs: How many pairs a sequence of the test `ood_long` has.
        queries: How many queries follow a sequence, drawn with replacement.

    >>> Sar(each=4, pairs=3, test_pairs=4).sizes
    {'key_fields': 1, 'num_keys': 8, 'num_values': 8}
    """

    conditions = ("in_distribution", "ood", "ood_long")

    def __init__(self, each: int = 250, pairs: int = 100, test_pairs: int = 250, queries: int = 100) -> None:
        expect_whole("each", each, 2, MOST)
        expect_whole("pairs", pairs, 1, each)
        expect_whole("test_pairs", test_pairs, 1, each)
        expect_whole("queries", queries, 1, MOST)
        self.each, self.pairs, self.test_pairs, self.queries = each, pairs, test_pairs, queries
        self.sizes = {"key_fields": 1, "num_keys": 2 * each, "num_values": 2 * each}
        self.group_names: dict[str, tuple[str, ...]] = {}

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        """Draw sequences; inputs are pairs `[n t 2]` and the keys of queries `[n q 1]`. The first kind comes first."""
        expect_condition(condition, self.conditions)
        pairs = self.test_pairs if condition == "ood_long" else self.pairs
        is_ood = condition.startswith("ood")
        keys = distinct(count, self.each if is_ood else 2 * self.each, pairs, generator) + self.each * is_ood
        values = torch.randint(self.each, keys.shape, generator=generator)
        values = values + self.each * ((keys < self.each) | is_ood)
        places = torch.randint(pairs, (count, self.queries), generator=generator)
        return Batch((torch.stack([keys, values], -1), at(keys, places).unsqueeze(-1)), at(values, places))

    def measure(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "n"]]:
        """The loss, and the share of queries whose most probable value is right."""
        expect_output(output, (*batch.target.shape, 2 * self.each))
        return classified(output, batch)
