"""Heads asked for many pairs of each action: what depends on the action alone is computed once for all of them."""

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from tpr_attention.models.copy_and_update import ByAction
from tpr_attention.nn.action_heads import ActionHeads

__all__ = ["found", "writes"]


def found(heads: ActionHeads, state: ByAction, transform: ByAction) -> Float[Tensor, "*n a m hp"]:
    """What heads find in m pairs of each action; parameters may have leading axes."""
    reads = einsum(heads.ids, heads.queries, "... q t, ... q a r -> ... a t r q").flatten(-3, -2)
    rows = rearrange(torch.cat([state, transform], -2), "... m r f -> ... (m f) r")
    fillers = rearrange(rows @ reads, "... (m f) q -> ... m q f", f=heads.filler_dim)
    return heads.combine(fillers).flatten(-2)


def writes(heads: ActionHeads, role_map: Float[Tensor, "*n h a s"]) -> Float[Tensor, "*n a hp sg"]:
    """What is written where under each action, for each number that was found."""
    return einsum(heads.maps, role_map, "... h p g, ... h a s -> ... a h p s g").flatten(-2).flatten(-3, -2)
