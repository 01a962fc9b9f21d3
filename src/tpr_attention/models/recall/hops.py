"""Pointer chasing with one layer of TPR-Attention, asked again with what it answered. Nothing is trained."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.nn.attention import TPRAttention
from tpr_attention.nn.clean_up import StoredCleanUp
from tpr_attention.nn.queries import OwnFillerQueries

__all__ = ["HopsTPR"]

ITEM, SUCCESSOR = 0, 1


class HopsTPR(nn.Module):
    """Objects of an item and its successor: match the item, read the successor, write it where the item was.

    All weights are set: the layer starts with the roles it is told, and no map of fillers is needed.

    Args:
        match: "linear" or "softmax".
        write: "sum" or "delta".
        clean_up: What is done with a filler after each hop: "none", "stored" (nearest stored fillers) or "items" (the
            nearest items without noise, a code book that is given).
        sharpness: How sharply a clean-up chooses.
        temperature: That of the softmax match.
    """

    needs_training = False

    def __init__(
        self,
        filler_dim: int,
        num_hops: int,
        match: Literal["linear", "softmax"] = "linear",
        write: Literal["sum", "delta"] = "sum",
        clean_up: Literal["none", "stored", "items"] = "stored",
        sharpness: float = 20.0,
        temperature: float = 0.05,
    ) -> None:
        super().__init__()
        if sharpness <= 0:
            raise ValueError(f"sharpness: expected a number above 0, got {sharpness}")
        self.num_hops, self.sharpness, self.uses_items = num_hops, sharpness, clean_up == "items"
        self.layer = TPRAttention(
            2,
            filler_dim,
            1,
            queries=OwnFillerQueries(2, filler_dim, 1, match_roles=[ITEM], target_roles=[SUCCESSOR]),
            match=match,
            temperature=temperature if match == "softmax" else None,
            write=write,
            unit_fillers=True,
            clean_up=StoredCleanUp(sharpness) if clean_up == "stored" else None,
            normalise="unit",
            new_roles=[ITEM],
        ).requires_grad_(False)

    def forward(
        self,
        objects: Float[Tensor, "*batch t 2 f"],
        start: Float[Tensor, "*batch f"],
        hops: Int[Tensor, "*batch"],
        items: Float[Tensor, "*batch t f"],
    ) -> Float[Tensor, "*batch f"]:
        """The filler that is reached after so many hops."""
        asked, reached = start, start
        for hop in range(1, self.num_hops + 1):
            asking = torch.stack([asked, torch.zeros_like(asked)], -2).unsqueeze(-3)
            asked = self.layer(asking, memory=objects)[..., 0, ITEM, :]
            if self.uses_items:
                asked = self._nearest(asked, items)
            reached = torch.where((hops == hop).unsqueeze(-1), asked, reached)
        return reached

    def _nearest(self, filler: Tensor, items: Tensor) -> Tensor:
        """The mean of items, weighted by how near they are."""
        distance = (items - filler.unsqueeze(-2)).square().sum(-1)
        weights = (-self.sharpness * distance).softmax(-1)
        nearest: Tensor = (weights.unsqueeze(-2) @ items).squeeze(-2)
        return nearest
