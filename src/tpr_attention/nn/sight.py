"""Which objects each position sees: order, masks, other sequences, chosen positions."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from tpr_attention.functional.signature import value_of

__all__ = ["Sight", "at_positions", "expect_positions"]


class Sight(NamedTuple):
    """Which of s objects each position sees.

    Args:
        size: s.
        causal: Whether a position sees only the objects up to its own.
        exclude_self: Whether it does not see its own.
        positions: Where the objects that ask stand among those seen; None if they are the last ones.
        is_other: Whether the objects seen are of another sequence; then order does not matter.
        counted: The objects that count; None if all do.
    """

    size: int
    causal: bool
    exclude_self: bool
    positions: Int[Tensor, "q"] | Int[Tensor, "*batch q"] | None
    is_other: bool
    counted: Bool[Tensor, "*batch s"] | None

    def is_whole(self) -> bool:
        """Whether every object of one sequence asks."""
        return self.positions is None and not self.is_other

    def visible(self, asking: int, device: torch.device) -> Bool[Tensor, "*any q s"] | None:
        """Who sees whom, without regard to what counts; None if everybody sees all."""
        if self.is_other or not (self.causal or self.exclude_self):
            return None
        every = torch.arange(self.size, device=device)
        here = every[self.size - asking :] if self.positions is None else self.positions
        here = here.unsqueeze(-1)
        if self.causal:
            return every < here if self.exclude_self else every <= here
        return every != here

    def seen(self, asking: int, before: Int[Tensor, "*batch"] | None, device: torch.device) -> Int[Tensor, "*any q"]:
        """How many objects each position sees that count, with those before the sequence."""
        counted = torch.ones(self.size, dtype=torch.bool, device=device) if self.counted is None else self.counted
        whole = counted.long()
        seen = whole.cumsum(-1) if self.causal and not self.is_other else whole.sum(-1, keepdim=True).expand_as(whole)
        if self.exclude_self and not self.is_other:
            seen = seen - whole
        if self.is_other:
            seen = seen[..., :1].expand(*seen.shape[:-1], asking)
        elif self.positions is not None:
            seen = _along(seen, self.positions)
        return seen if before is None else seen + before.unsqueeze(-1)


def at_positions(
    objects: Shaped[Tensor, "*batch t r f"], positions: Int[Tensor, "q"] | Int[Tensor, "*batch q"]
) -> Shaped[Tensor, "*batch q r f"]:
    """The objects at some positions.

    >>> at_positions(torch.arange(3.0).reshape(3, 1, 1), torch.tensor([2, 0])).flatten()
    tensor([2., 0.])
    """
    if positions.ndim == 1:
        return objects.index_select(-3, positions)
    return objects.take_along_dim(positions[..., None, None], dim=-3)


def _along(counts: Tensor, positions: Tensor) -> Tensor:
    if positions.ndim == 1:
        return counts.index_select(-1, positions)
    return counts.expand(*positions.shape[:-1], counts.shape[-1]).gather(-1, positions)


def expect_positions(positions: object, objects: Tensor) -> Int[Tensor, "*any q"]:
    """Check positions, the same for all sequences or different ones, and count negative ones from the end."""
    length, batch = objects.shape[-3], list(objects.shape[:-3])
    wanted = f"whole numbers as a torch.int64 tensor [q] or [*batch q] with batch={batch} on {objects.device}"
    if not isinstance(positions, Tensor):
        raise TypeError(f"positions: expected {wanted}, got {type(positions).__name__}")
    if positions.dtype != torch.int64 or positions.device != objects.device:
        raise TypeError(f"positions: expected {wanted}, got {positions.dtype} on {positions.device}")
    if positions.ndim != 1 and list(positions.shape[:-1]) != batch:
        raise ValueError(f"positions: expected {wanted}, got shape {list(positions.shape)}")
    if positions.ndim == 0 or positions.shape[-1] == 0:
        raise ValueError(f"positions: expected at least one, got shape {list(positions.shape)}")
    if positions.device.type == "cpu" and positions.numel():
        for end in (positions.amin(), positions.amax()):
            place = value_of(end)
            if place is not None and not -length <= place < length:
                raise ValueError(f"positions: expected {-length} to {length - 1}, got {place}")
    return torch.where(positions < 0, positions + length, positions)
