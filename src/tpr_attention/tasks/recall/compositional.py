"""Compositional recall: keys of two parts, neither of which is enough, and pairings that training never shows."""

from collections.abc import Sequence
from math import ceil, sqrt

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tpr_attention.tasks.recall.pairs import at, classified, expect_condition, expect_output, expect_whole
from tpr_attention.tasks.task import Batch

__all__ = ["Compositional"]

MOST_KEYS = 256
MOST_PAIRS = 4_096
DENSITY = 0.64
"""The share of the pairings of a sequence's own keys that it has: few enough keys that each is in several pairs."""
AT_ONCE = 1_000
"""Examples whose pairings are drawn together."""


class Compositional:
    """Pairs of a compound key and a value, then queries of compound keys; the loss is the cross entropy of the values.

    A quarter of the pairings of the two parts is held out: those whose numbers add up to a multiple of four. Sequences
    of training and in distribution have none of them. Sequences of the tests `ood` have any pairings, and only those
    that are held out are asked for. Both have longer sequences as well.

    Args:
        num_keys: How many values each part of a key has.
        num_values: How many values there are.
        pairs: How many pairs a sequence of training has.
        queries: How many queries follow a sequence, drawn with replacement.
        lengths: Lengths of the tests as multiples of that of training.

    >>> task = Compositional(num_keys=8, pairs=4, lengths=(1, 4))
    >>> task.conditions
    ('in_distribution', 'ood', 'in_distribution_x4', 'ood_x4')
    >>> pairs, queries = task.draw("ood_x4", 5, torch.Generator().manual_seed(0), torch.float32).inputs
    >>> pairs.shape, bool(task.is_held_out(queries).all())
    (torch.Size([5, 16, 3]), True)
    """

    def __init__(
        self,
        num_keys: int = 32,
        num_values: int = 64,
        pairs: int = 16,
        queries: int = 16,
        lengths: Sequence[int] = (1, 4, 16),
    ) -> None:
        expect_whole("num_keys", num_keys, 4, MOST_KEYS)
        expect_whole("num_values", num_values, 2, MOST_PAIRS)
        expect_whole("pairs", pairs, 1, MOST_PAIRS)
        expect_whole("queries", queries, 1, MOST_PAIRS)
        if not lengths or lengths[0] != 1 or list(lengths) != sorted(set(lengths)):
            raise ValueError(f"lengths: expected 1 and then larger numbers, got {list(lengths)}")
        table = torch.cartesian_prod(*(torch.arange(num_keys),) * 2)
        self._held_out = self.is_held_out(table)
        if pairs * lengths[-1] > int((~self._held_out).sum()):
            most = int((~self._held_out).sum())
            raise ValueError(f"lengths: expected at most {most} pairs a sequence, got {pairs * lengths[-1]}")
        self.num_keys, self.num_values, self.pairs, self.queries = num_keys, num_values, pairs, queries
        endings = {length: f"_x{length}" if length > 1 else "" for length in lengths}
        tests = {f"{name}{end}": times for times, end in endings.items() for name in ("in_distribution", "ood")}
        self.lengths = {"train": 1, **tests}
        self.conditions = tuple(tests)
        self.sizes = {"key_fields": 2, "num_keys": num_keys, "num_values": num_values}
        self.group_names: dict[str, tuple[str, ...]] = {}

    @staticmethod
    def is_held_out(keys: Int[Tensor, "*batch 2"]) -> Bool[Tensor, "*batch"]:
        """Whether training never shows a pairing."""
        return keys.sum(-1) % 4 == 0

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        """Draw sequences; inputs are pairs `[n t 3]` (two parts of the key, value) and queries `[n q 2]`."""
        expect_condition(condition, self.conditions)
        pairs, is_ood = self.pairs * self.lengths[condition], condition.startswith("ood")
        parts = [
            self._pairings(min(AT_ONCE, count - start), pairs, is_ood, generator)
            for start in range(0, max(count, 1), AT_ONCE)
        ]
        keys = torch.cat(parts)
        values = torch.randint(self.num_values, keys.shape[:2], generator=generator)
        may_be_asked = self.is_held_out(keys) if is_ood else torch.ones_like(values)
        if count:
            places = may_be_asked.float().multinomial(self.queries, replacement=True, generator=generator)
        else:
            places = values.new_zeros(0, self.queries)
        return Batch((torch.cat([keys, values.unsqueeze(-1)], -1), at(keys, places)), at(values, places))

    def measure(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "n"]]:
        """The loss, and the share of queries whose most probable value is right."""
        expect_output(output, (*batch.target.shape, self.num_values))
        return classified(output, batch)

    def _pairings(self, count: int, pairs: int, is_ood: bool, generator: torch.Generator) -> Int[Tensor, "n t 2"]:
        """Different pairings in random order, of few keys where there are enough; the lowest ranks are taken."""
        side = min(ceil(sqrt(pairs / DENSITY)), self.num_keys)
        few = [torch.rand(count, self.num_keys, generator=generator).argsort(1) < side for _ in range(2)]
        is_outside = ~(few[0][:, :, None] & few[1][:, None, :]).flatten(1)
        rank = torch.rand(count, self.num_keys**2, generator=generator) + is_outside
        if is_ood:  # at least one that is held out
            first = (rank + 4 * ~self._held_out).argmin(1, keepdim=True) if count else rank.new_zeros(0, 1).long()
            rank = rank.scatter(1, first, -1.0)
        else:
            rank = rank + 4 * self._held_out
        taken = rank.topk(pairs, 1, largest=False).indices
        if is_ood:  # the first is not always the one that is held out
            taken = at(taken, distinct_order(taken, generator))
        return torch.stack([taken // self.num_keys, taken % self.num_keys], -1)


def distinct_order(like: Int[Tensor, "n t"], generator: torch.Generator) -> Int[Tensor, "n t"]:
    """A random order of the places of each example."""
    return torch.rand(like.shape, generator=generator).argsort(1)
