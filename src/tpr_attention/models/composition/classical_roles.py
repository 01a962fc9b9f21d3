"""Multi-head attention over the role-filler bindings of both objects as tokens."""

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.models.composition.copy_and_update import Actions, CopyAndUpdate, Objects
from tpr_attention.models.composition.softmax import SoftmaxAttention

__all__ = ["ClassicalRoles"]


class ClassicalRoles(CopyAndUpdate):
    """Softmax attention that is given the structure too: a token for each role of each object (decision 0013).

    A token is a filler and a one-hot vector that tells its role and its object. Each role of the output asks with the
    action, its own one-hot vector and what the reference has there.

    Args:
        head_dim: The width of each head; that of a token if not given.
        start_at_copy: Whether the update is zero at the start (decision 0012).
    """

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        filler_dim: int,
        num_heads: int = 4,
        head_dim: int | None = None,
        start_at_copy: bool = True,
    ) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        asking_size, token_size = num_actions + filler_dim + num_roles, filler_dim + 2 * num_roles
        self.attention = SoftmaxAttention(
            asking_size, token_size, filler_dim, num_heads, token_size if head_dim is None else head_dim
        )
        if start_at_copy:
            self.zero_output_map()

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        tokens = _with_names(torch.cat([reference, transform], -2))
        actions = action.unsqueeze(-2).expand(*reference.shape[:-1], -1)
        update: Tensor = self.attention(torch.cat([actions, _with_names(reference)], -1), tokens)
        return update

    def output_map(self) -> tuple[Tensor, ...]:
        return self.attention.output.weight, self.attention.output.bias


def _with_names(tokens: Float[Tensor, "*batch t f"]) -> Float[Tensor, "*batch t f_and_t"]:
    names = torch.eye(tokens.shape[-2], dtype=tokens.dtype, device=tokens.device)
    return torch.cat([tokens, names.expand(*tokens.shape[:-1], -1)], -1)
