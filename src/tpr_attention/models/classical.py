"""Multi-head attention over the reference and the transform as two tokens."""

import torch
from torch import Tensor

from tpr_attention.models.copy_and_update import Actions, CopyAndUpdate, Objects
from tpr_attention.models.softmax import SoftmaxAttention

__all__ = ["Classical"]


class Classical(CopyAndUpdate):
    """One layer of softmax attention: the query is read from the action and the reference (decision 0013).

    A token is a whole object, flattened, and a one-hot id that tells the reference from the transform.

    Args:
        head_dim: The width of each head; that of an object if not given, so that a head can carry all of it.
    """

    def __init__(
        self, num_actions: int, num_roles: int, filler_dim: int, num_heads: int = 4, head_dim: int | None = None
    ) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        size = num_roles * filler_dim
        self.attention = SoftmaxAttention(
            num_actions + size, size + 2, size, num_heads, size if head_dim is None else head_dim
        )

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        objects = torch.stack([reference, transform], -3).flatten(-2)
        ids = torch.eye(2).to(objects).expand(*objects.shape[:-1], 2)
        asking = torch.cat([action, reference.flatten(-2)], -1)
        answer = self.attention(asking.unsqueeze(-2), torch.cat([objects, ids], -1))
        return self.as_objects(answer.squeeze(-2))

    def output_map(self) -> tuple[Tensor, ...]:
        return self.attention.output.weight, self.attention.output.bias
