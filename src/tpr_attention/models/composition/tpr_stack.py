"""TPR-Attention past the paper: heads of higher order, and blocks that follow each other."""

import torch
from torch import Tensor, nn

from tpr_attention.models.composition.copy_and_update import Actions, ByAction, CopyAndUpdate, Objects
from tpr_attention.models.composition.folding import found, written
from tpr_attention.nn.action_attention import ActionTPRAttention
from tpr_attention.nn.action_blocks import ActionTPRBlock, ActionTPRStack
from tpr_attention.nn.higher_order import HigherOrderActionTPRAttention

__all__ = ["StackedTPR", "tpr_second", "tpr_stack"]


class StackedTPR(CopyAndUpdate):
    """A stack of blocks over the reference and the transform; the answer is what the reference becomes.

    >>> sizes = 5, 6, 3
    >>> StackedTPR(*sizes, ActionTPRStack(ActionTPRBlock(ActionTPRAttention(*sizes, num_heads=4)))).folds
    True
    """

    def __init__(self, num_actions: int, num_roles: int, filler_dim: int, stack: ActionTPRStack) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        self.stack = stack
        for block in stack.blocks:
            for heads in block.heads:
                nn.init.normal_(heads.role_map, std=num_roles**-0.5)
        self.zero_output_map()

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        return self.stack.update(torch.stack([reference, transform], -3), action)

    def update_by_action(self, reference: ByAction, transform: ByAction) -> ByAction:
        """What is read and written under an action is one matrix each, for all heads of a kind."""
        update, state = torch.zeros_like(reference), reference
        *before, last = self.stack.blocks
        for block in before:
            told = [found(heads, state, transform) for heads in block.heads]
            for heads, one in zip(block.heads, told, strict=True):
                update = update + written(heads, one)
                state = state + written(heads, one, heads.role_map.detach())
        for heads in last.heads:
            update = update + written(heads, found(heads, state, transform))
        return update

    def output_map(self) -> tuple[Tensor, ...]:
        return tuple(heads.role_map for block in self.stack.blocks for heads in block.heads)


def tpr_second(num_actions: int, num_roles: int, filler_dim: int, num_heads: int = 12) -> StackedTPR:
    """One block: the paper's heads beside as many of second order, which are bilinear in the objects."""
    sizes = num_actions, num_roles, filler_dim
    linear = ActionTPRAttention(*sizes, num_heads, filler_start="orthonormal")
    block = ActionTPRBlock(linear, HigherOrderActionTPRAttention(*sizes, num_heads))
    return StackedTPR(*sizes, ActionTPRStack(block))


def tpr_stack(num_actions: int, num_roles: int, filler_dim: int, num_heads: int = 12) -> StackedTPR:
    """Two blocks: the paper's heads, which substitute, then heads of three kinds that read what has become of it.

    The second block has as many of the paper's heads, of normalised ones and of those of second order.
    """
    sizes = num_actions, num_roles, filler_dim
    substitute = ActionTPRBlock(ActionTPRAttention(*sizes, num_heads, filler_start="orthonormal"))
    recompute = ActionTPRBlock(
        ActionTPRAttention(*sizes, num_heads, filler_start="orthonormal"),
        ActionTPRAttention(*sizes, num_heads, normalise="unit", filler_start="orthonormal"),
        HigherOrderActionTPRAttention(*sizes, num_heads),
    )
    return StackedTPR(*sizes, ActionTPRStack(substitute, recompute))
