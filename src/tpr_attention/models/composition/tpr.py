"""Action-conditioned TPR-Attention over the reference and the transform (App. D)."""

import torch
from einops import rearrange
from torch import Tensor, nn

from tpr_attention.functional.action import read_map, update_map, write_map
from tpr_attention.models.composition.copy_and_update import Actions, ByAction, CopyAndUpdate, Objects
from tpr_attention.models.composition.folding import found, written
from tpr_attention.nn.action_attention import ActionTPRAttention

__all__ = ["TPR"]

LARGE = 32


class TPR(CopyAndUpdate):
    """The paper's model: heads erase what the reference has in the acted role and write what the transform has.

    Args:
        learn_ids: Whether each head learns which object it reads; if not, heads read the two in turn (decision 0016).
        start_at_copy: Whether the update is zero at the start (decision 0012).

    >>> TPR(num_actions=5, num_roles=6, filler_dim=3, num_heads=4).attention
    ActionTPRAttention(num_actions=5, num_roles=6, filler_dim=3, num_heads=4, num_objects=2, filler_start='orthonormal')
    """

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        filler_dim: int,
        num_heads: int = 4,
        learn_ids: bool = True,
        start_at_copy: bool = True,
    ) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        self.attention = ActionTPRAttention(num_actions, num_roles, filler_dim, num_heads, filler_start="orthonormal")
        nn.init.normal_(self.attention.role_map, std=num_roles**-0.5)
        if not learn_ids:
            ids = self.attention.id_query.requires_grad_(False)
            ids.copy_(torch.eye(2, device=ids.device)[torch.arange(num_heads, device=ids.device) % 2])
        if start_at_copy:
            self.zero_output_map()

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        update: Tensor = self.attention(torch.stack([reference, transform], -3), action)
        return update

    def update_by_action(self, reference: ByAction, transform: ByAction) -> ByAction:
        """Linear for each action, so that all heads are one matrix; for large objects that is too large."""
        layer = self.attention
        if self.num_roles * self.filler_dim > LARGE:
            return written(layer, found(layer, reference, transform))
        reads, writes = read_map(layer.id_query, layer.query_map), write_map(layer.filler_map, layer.role_map)
        matrix = rearrange(update_map(reads, writes), "... t r f r_n f_out -> ... (t r f) (r_n f_out)")
        return self.as_objects(torch.cat([reference.flatten(-2), transform.flatten(-2)], -1) @ matrix)

    def output_map(self) -> tuple[Tensor, ...]:
        return (self.attention.role_map,)
