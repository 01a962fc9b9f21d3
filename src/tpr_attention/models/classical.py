"""Multi-head attention over the reference and the transform as two tokens."""

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

from tpr_attention.functional.signature import expect_positive
from tpr_attention.models.copy_and_update import Actions, CopyAndUpdate, Objects

__all__ = ["Classical"]


class Classical(CopyAndUpdate):
    """One layer of softmax attention: the query is read from the action and the reference (decision 0013).

    A token is a whole object, flattened, and a one-hot id that tells the reference from the transform.

    Args:
        head_dim: The width of each head; that of an object if not given, so that a head can carry all of it.
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
        size = num_roles * filler_dim
        head_dim = size if head_dim is None else head_dim
        expect_positive(num_heads=num_heads, head_dim=head_dim)
        self.num_heads = num_heads
        self.query = nn.Linear(num_actions + size, num_heads * head_dim)
        self.key = nn.Linear(size + 2, num_heads * head_dim)
        self.value = nn.Linear(size + 2, num_heads * head_dim)
        self.output = nn.Linear(num_heads * head_dim, size)

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        objects = torch.stack([reference, transform], -3).flatten(-2)
        ids = torch.eye(2).to(objects).expand(*objects.shape[:-1], 2)
        tokens = torch.cat([objects, ids], -1)
        query = self.query(torch.cat([action, reference.flatten(-2)], -1))
        read = F.scaled_dot_product_attention(
            rearrange(query, "... (h d) -> ... h 1 d", h=self.num_heads),
            rearrange(self.key(tokens), "... t (h d) -> ... h t d", h=self.num_heads),
            rearrange(self.value(tokens), "... t (h d) -> ... h t d", h=self.num_heads),
        )
        return self.as_objects(self.output(rearrange(read, "... h 1 d -> ... (h d)")))

    def output_map(self) -> tuple[Tensor, ...]:
        return self.output.weight, self.output.bias
