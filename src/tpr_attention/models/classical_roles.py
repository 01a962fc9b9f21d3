"""Multi-head attention over the role-filler bindings of both objects as tokens."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from tpr_attention.functional.signature import expect_positive
from tpr_attention.models.copy_and_update import Actions, CopyAndUpdate, Objects

__all__ = ["ClassicalRoles"]


class ClassicalRoles(CopyAndUpdate):
    """Softmax attention that is given the structure too: a token for each role of each object (decision 0013).

    A token is a filler and a one-hot vector that tells its role and its object. Each role of the output asks with the
    action, its own one-hot vector and what the reference has there.

    Args:
        head_dim: The width of each head; that of a token if not given.
    """

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        filler_dim: int,
        num_heads: int = 4,
        head_dim: int | None = None,
    ) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        size = filler_dim + 2 * num_roles
        head_dim = size if head_dim is None else head_dim
        expect_positive(num_heads=num_heads, head_dim=head_dim)
        self.num_heads = num_heads
        self.query = nn.Linear(num_actions + num_roles + filler_dim, num_heads * head_dim)
        self.key = nn.Linear(size, num_heads * head_dim)
        self.value = nn.Linear(size, num_heads * head_dim)
        self.output = nn.Linear(num_heads * head_dim, filler_dim)

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        tokens = _with_names(torch.cat([reference, transform], -2))
        asking = _with_names(reference)
        query = self.query(torch.cat([action.unsqueeze(-2).expand(*asking.shape[:-1], -1), asking], -1))
        read = F.scaled_dot_product_attention(
            *(
                rearrange(projected, "... t (h d) -> ... h t d", h=self.num_heads)
                for projected in (query, self.key(tokens), self.value(tokens))
            )
        )
        update: Tensor = self.output(rearrange(read, "... h t d -> ... t (h d)"))
        return update

    def output_map(self) -> tuple[Tensor, ...]:
        return self.output.weight, self.output.bias


def _with_names(tokens: Float[Tensor, "*batch t f"]) -> Float[Tensor, "*batch t f_and_t"]:
    names = torch.eye(tokens.shape[-2]).to(tokens)
    return torch.cat([tokens, names.expand(*tokens.shape[:-1], -1)], -1)
