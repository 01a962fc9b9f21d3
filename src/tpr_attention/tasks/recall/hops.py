"""Pointer chasing: objects name their successors, fillers are noisy, and an answer is many hops away."""

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.tasks.recall.pairs import distinct, expect_condition, expect_output, expect_whole
from tpr_attention.tasks.task import Batch

__all__ = ["Hops"]

MOST = 1_024
HOPS = (1, 2, 4, 8)


class Hops:
    """Objects of an item and its successor, a starting item, and a number of hops; the item that is reached is wanted.

    Items are random unit vectors, others in each sequence. Successors are a permutation of them. All vectors that a
    model sees of objects and of the start have noise on them, and unit length again. The loss is half the squared
    distance to the item without noise; a model is also given the items without noise, as a code book that it may use.

    Args:
        items: How many items there are, and how many objects.
        filler_dim: How many numbers a vector has.
        noise: The length of the noise on a vector of length one.

    >>> task = Hops(items=4)
    >>> [tuple(one.shape) for one in task.draw("hops_8", 2, torch.Generator().manual_seed(0), torch.float32).inputs]
    [(2, 4, 2, 64), (2, 64), (2,), (2, 4, 64)]
    """

    conditions = tuple(f"hops_{hops}" for hops in HOPS)

    def __init__(self, items: int = 32, filler_dim: int = 64, noise: float = 0.5) -> None:
        expect_whole("items", items, 2, MOST)
        expect_whole("filler_dim", filler_dim, 2, MOST)
        if not 0 <= noise <= 10:
            raise ValueError(f"noise: expected a number from 0 to 10, got {noise}")
        self.items, self.filler_dim, self.noise = items, filler_dim, noise
        self.sizes = {"filler_dim": filler_dim, "num_hops": HOPS[-1]}
        self.group_names: dict[str, tuple[str, ...]] = {}

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        """Draw sequences; inputs are objects `[n t 2 f]`, starts `[n f]`, numbers of hops `[n]`, items `[n t f]`."""
        expect_condition(condition, self.conditions)
        shape = count, self.items, self.filler_dim
        items = _unit(torch.randn(shape, generator=generator, dtype=dtype))
        successor = distinct(count, self.items, self.items, generator)
        every, example = torch.arange(self.items).expand_as(successor), torch.arange(count)
        held = torch.stack([items, items[example[:, None], successor]], 2)
        start = torch.randint(self.items, (count,), generator=generator)
        if condition == "train":
            hops = torch.randint(1, HOPS[-1] + 1, (count,), generator=generator)
        else:
            hops = torch.full((count,), int(condition.removeprefix("hops_")))
        reached = every
        target = start
        for hop in range(1, HOPS[-1] + 1):
            reached = successor.gather(1, reached)
            target = torch.where(hops == hop, reached[example, start], target)
        begin = self._noisy(items[example, start], generator)
        return Batch((self._noisy(held, generator), begin, hops, items), target)

    def measure(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "n"]]:
        """The loss, and whether the item that is nearest in direction is the right one."""
        expect_output(output, (len(batch.target), self.filler_dim))
        items = batch.inputs[3].to(output.dtype)
        wanted = items.gather(1, batch.target[:, None, None].expand(-1, 1, self.filler_dim)).squeeze(1)
        nearest = (items @ output.unsqueeze(-1)).squeeze(-1).argmax(-1)
        loss = (output - wanted).square().sum(-1) / 2
        return {"loss": loss, "accuracy": (nearest == batch.target).to(output.dtype)}

    def _noisy(self, vectors: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.randn(vectors.shape, generator=generator, dtype=vectors.dtype) / self.filler_dim**0.5
        return _unit(vectors + self.noise * noise)


def _unit(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors, dim=-1)
