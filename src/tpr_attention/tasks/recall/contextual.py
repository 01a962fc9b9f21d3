"""Contextual retrieval: search by one field and return another, in new combinations (Mittal et al. 2022)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tpr_attention.tasks.recall.pairs import expect_condition, expect_output, expect_whole
from tpr_attention.tasks.task import Batch

__all__ = ["Contextual"]

MOST = 6
TRAINED = 0.8
"""The share of combinations that training has."""


class Contextual:
    """Objects with search and value fields; each asks for the sum of one value field of its nearest neighbours.

    For every search field, an object finds the other object whose number there is nearest to its own, and returns the
    value field that its task names for this search. The target is the sum over the searches. About a fifth of the
    combinations of value fields is held out of training: the tests `ood` have no other. The loss is the absolute error.

    Args:
        searches: How many search fields an object has.
        values: How many value fields an object has.
        objects: How many objects a sequence has.
        test_objects: How many objects a sequence of the test `ood_long` has.

    >>> task = Contextual()
    >>> [len(task.combinations[condition]) for condition in ("train", "ood")]
    [21, 6]
    """

    conditions = ("in_distribution", "ood", "ood_long")

    def __init__(self, searches: int = 3, values: int = 3, objects: int = 10, test_objects: int = 40) -> None:
        expect_whole("searches", searches, 1, MOST)
        expect_whole("values", values, 2, MOST)
        expect_whole("objects", objects, 2, 1_000)
        expect_whole("test_objects", test_objects, 2, 1_000)
        self.searches, self.values, self.objects, self.test_objects = searches, values, objects, test_objects
        known, held_out = _combinations(searches, values)
        self.combinations = {"train": known, "in_distribution": known, "ood": held_out, "ood_long": held_out}
        self.sizes = {"num_searches": searches, "num_values": values}
        self.group_names: dict[str, tuple[str, ...]] = {}

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        """Draw sequences; inputs are numbers `[n t field]`, searches first, and one-hot tasks `[n t search value]`."""
        expect_condition(condition, self.conditions)
        objects = self.test_objects if condition == "ood_long" else self.objects
        numbers = torch.randn(count, objects, self.searches + self.values, generator=generator, dtype=dtype)
        combinations = self.combinations[condition]
        task = combinations[torch.randint(len(combinations), (count, objects), generator=generator)]
        search, value = numbers[..., : self.searches], numbers[..., self.searches :]
        distance = (search.unsqueeze(2) - search.unsqueeze(1)).abs()
        distance = distance + torch.eye(objects, dtype=dtype)[..., None] * torch.finfo(dtype).max
        nearest = distance.argmin(2)
        found = value[torch.arange(count)[:, None, None], nearest, task]
        return Batch((numbers, torch.nn.functional.one_hot(task, self.values).to(dtype)), found.sum(-1))

    def measure(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "n"]]:
        """The mean absolute error of a sequence, and the mean squared one."""
        expect_output(output, tuple(batch.target.shape))
        error = output - batch.target
        return {"loss": error.abs().mean(-1), "squared_error": error.square().mean(-1)}


def _combinations(searches: int, values: int) -> tuple[Int[Tensor, "c s"], Int[Tensor, "c_held s"]]:
    """The combinations of training and those that are held out: every second one, as far as they are a fifth."""
    every = torch.cartesian_prod(*(torch.arange(values),) * searches).reshape(-1, searches)
    even, odd = every[::2], every[1::2]
    more = max(0, int(TRAINED * len(every)) - len(even))
    return torch.cat([even, odd[:more]]), odd[more:]
