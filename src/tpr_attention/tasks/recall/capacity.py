"""Associative retrieval: how many key-value pairs a memory holds (Schlag, Irie and Schmidhuber 2021, sec. 6.1)."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tpr_attention.tasks.recall.pairs import at, distinct, expect_condition, expect_output, expect_whole, regressed
from tpr_attention.tasks.task import Batch

__all__ = ["Capacity"]

LONGEST = 100_000
TRAIN_DRAWS = 2


class Capacity:
    """Pairs of a key and a value, then queries: keys whose last value is wanted, as a one-hot vector.

    Setting "once" has every key once, each with a value of its own. Setting "replacement" draws keys and values with
    replacement, twice as many as there are keys; a later value of a key counts, and tests have other numbers of draws.
    The loss is half the squared distance to the one-hot value.

    Args:
        num_pairs: How many keys there are, and how many values.
        setting: "once" or "replacement".
        queries: How many queries follow a sequence, drawn with replacement.
        tests: In setting "replacement", the lengths of further tests as multiples of the number of keys.

    >>> task = Capacity(num_pairs=3)
    >>> batch = task.draw("train", 1, torch.Generator().manual_seed(0), torch.float32)
    >>> pairs, queries = batch.inputs
    >>> pairs.shape, queries.shape, batch.target.shape
    (torch.Size([1, 3, 2]), torch.Size([1, 1, 1]), torch.Size([1, 1]))
    """

    def __init__(
        self,
        num_pairs: int = 100,
        setting: Literal["once", "replacement"] = "once",
        queries: int = 1,
        tests: Sequence[int] = (1, 8),
    ) -> None:
        expect_whole("num_pairs", num_pairs, 2, LONGEST)
        expect_whole("queries", queries, 1, LONGEST)
        for draws in tests:
            expect_whole("tests", draws, 1, LONGEST // num_pairs)
        if setting not in ("once", "replacement"):
            raise ValueError(f"setting: expected 'once' or 'replacement', got {setting!r}")
        if TRAIN_DRAWS in tests or len(set(tests)) < len(tests):
            raise ValueError(f"tests: expected different numbers that are not {TRAIN_DRAWS}, got {list(tests)}")
        self.num_pairs, self.setting, self.queries = num_pairs, setting, queries
        others = {f"draws_x{draws}": draws for draws in tests} if setting == "replacement" else {}
        self.draws = {"train": TRAIN_DRAWS, "in_distribution": TRAIN_DRAWS, **others}
        self.conditions = tuple(self.draws)[1:]
        self.sizes = {"key_fields": 1, "num_keys": num_pairs, "num_values": num_pairs}
        self.group_names: dict[str, tuple[str, ...]] = {}

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        """Draw sequences; inputs are pairs `[n t 2]` and the keys of queries `[n q 1]`."""
        expect_condition(condition, self.conditions)
        if self.setting == "once":
            keys, values = (distinct(count, self.num_pairs, self.num_pairs, generator) for _ in range(2))
        else:
            shape = count, self.draws[condition] * self.num_pairs
            keys, values = (torch.randint(self.num_pairs, shape, generator=generator) for _ in range(2))
        places = torch.randint(keys.shape[1], (count, self.queries), generator=generator)
        asked = at(keys, places)
        target = at(values, at(last_places(keys, self.num_pairs), asked))
        return Batch((torch.stack([keys, values], -1), asked.unsqueeze(-1)), target)

    def measure(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "n"]]:
        """The loss, and the share of queries whose largest entry is at the right value."""
        expect_output(output, (*batch.target.shape, self.num_pairs))
        return regressed(output, batch)


def last_places(keys: Int[Tensor, "n t"], num_keys: int) -> Int[Tensor, "n k"]:
    """Where each key stands last in a sequence; 0 for keys that are not there.

    >>> last_places(torch.tensor([[2, 0, 2]]), 3)
    tensor([[1, 0, 2]])
    """
    places = torch.arange(keys.shape[1]).expand_as(keys)
    return torch.zeros(len(keys), num_keys, dtype=torch.long).scatter_reduce(1, keys, places, "amax")
