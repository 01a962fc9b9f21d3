"""Heads asked for many pairs of each action: what depends on the action alone is computed once for all of them."""

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.action import read_by_action, write_by_action
from tpr_attention.models.composition.copy_and_update import ByAction
from tpr_attention.nn.action_heads import ActionHeads

__all__ = ["found", "written"]


def found(heads: ActionHeads, state: ByAction, transform: ByAction) -> Float[Tensor, "*n a b h p"]:
    """What heads find in b pairs of each action; parameters may have leading axes."""
    return heads.combine(read_by_action(torch.stack([state, transform], -3), heads.ids, heads.queries))


def written(
    heads: ActionHeads, found: Float[Tensor, "*n a b h p"], role_map: Float[Tensor, "*n h a r"] | None = None
) -> ByAction:
    """The update that heads make of what they have found, with their own role map if no other is given."""
    update: Tensor = write_by_action(found, heads.maps, heads.role_map if role_map is None else role_map)
    return update
