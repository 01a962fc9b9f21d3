"""What tasks of key-value pairs share: how examples are counted and how outputs are measured."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tpr_attention.tasks.task import Batch

__all__ = ["at", "classified", "distinct", "expect_condition", "expect_output", "expect_whole", "regressed"]


def expect_whole(name: str, value: int, least: int, most: int) -> None:
    """Check an option that is a whole number."""
    if not least <= value <= most:
        raise ValueError(f"{name}: expected a whole number from {least:,} to {most:,}, got {value:,}")


def expect_condition(condition: str, conditions: tuple[str, ...]) -> None:
    """Check that there is such a condition."""
    if condition not in ("train", *conditions):
        raise ValueError(f"condition: expected 'train' or one of {conditions}, got {condition!r}")


def expect_output(output: Tensor, shape: tuple[int, ...]) -> None:
    """Check the shape of a model's answer."""
    if tuple(output.shape) != shape:
        raise ValueError(f"output: expected {list(shape)}, got {list(output.shape)}")


def distinct(count: int, of: int, take: int, generator: torch.Generator) -> Int[Tensor, "count take"]:
    """So many different numbers below `of` in random order, for each example.

    >>> distinct(1, 4, 4, torch.Generator().manual_seed(0)).sort().values
    tensor([[0, 1, 2, 3]])
    """
    return torch.rand(count, of, generator=generator).topk(take, 1).indices


def at(table: Tensor, places: Int[Tensor, "n q"]) -> Tensor:
    """The rows of each example's table at its places.

    >>> at(torch.tensor([[5, 6, 7]]), torch.tensor([[2, 0]]))
    tensor([[7, 5]])
    """
    index = places.reshape(*places.shape, *(1,) * (table.ndim - 2)).expand(*places.shape, *table.shape[2:])
    return table.gather(1, index)


def regressed(output: Float[Tensor, "n q v"], batch: Batch) -> dict[str, Float[Tensor, "n"]]:
    """Half the squared distance to the one-hot value, summed over its entries, and how often that value is largest."""
    wanted = (batch.target.unsqueeze(-1) == torch.arange(output.shape[-1], device=output.device)).to(output.dtype)
    loss = (output - wanted).square().sum(-1) / 2
    return {"loss": loss.mean(-1), "accuracy": _accuracy(output, batch)}


def classified(output: Float[Tensor, "n q v"], batch: Batch) -> dict[str, Float[Tensor, "n"]]:
    """The cross entropy of the values, and how often the right one is the most probable."""
    chosen = output.log_softmax(-1).gather(-1, batch.target.unsqueeze(-1)).squeeze(-1)
    return {"loss": -chosen.mean(-1), "accuracy": _accuracy(output, batch)}


def _accuracy(output: Tensor, batch: Batch) -> Tensor:
    return (output.argmax(-1) == batch.target).to(output.dtype).mean(-1)
