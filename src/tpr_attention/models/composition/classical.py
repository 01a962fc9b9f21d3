"""Multi-head attention over the reference and the transform as two tokens."""

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from tpr_attention.models.composition.copy_and_update import Actions, ByAction, CopyAndUpdate, Objects
from tpr_attention.models.composition.softmax import SoftmaxAttention

__all__ = ["Classical"]


class Classical(CopyAndUpdate):
    """One layer of softmax attention: the query is read from the action and the reference (decision 0013).

    A token is a whole object, flattened, and a one-hot id that tells the reference from the transform.

    Args:
        head_dim: The width of each head; that of an object if not given, so that a head can carry all of it.
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
        size = num_roles * filler_dim
        self.attention = SoftmaxAttention(
            num_actions + size, size + 2, size, num_heads, size if head_dim is None else head_dim
        )
        if start_at_copy:
            self.zero_output_map()

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        objects = torch.stack([reference, transform], -3).flatten(-2)
        ids = torch.eye(2, dtype=objects.dtype, device=objects.device).expand(*objects.shape[:-1], 2)
        asking = torch.cat([action, reference.flatten(-2)], -1)
        answer = self.attention(asking.unsqueeze(-2), torch.cat([objects, ids], -1))
        return self.as_objects(answer.squeeze(-2))

    def update_by_action(self, reference: ByAction, transform: ByAction) -> ByAction:
        """Between two tokens a softmax is a sigmoid, and linear maps that follow each other are one."""
        size, layer = self.num_roles * self.filler_dim, self.attention
        query, key, value = (
            rearrange(projection.weight, "... (h d) x -> ... h d x", h=layer.num_heads)
            for projection in (layer.query, layer.key, layer.value)
        )
        query = query / query.shape[-2] ** 0.5
        query_bias = rearrange(layer.query.bias, "... (h d) -> ... h d 1", h=layer.num_heads) / query.shape[-2] ** 0.5
        value_bias = rearrange(layer.value.bias, "... (h d) -> ... h d", h=layer.num_heads)
        output = rearrange(layer.output.weight, "... y (h d) -> ... h d y", h=layer.num_heads)
        by_action, by_reference = query[..., : self.num_actions] + query_bias, query[..., self.num_actions :]
        # What differs between the tokens: the objects, and the ids by (-1, 1).
        key_ids, value_ids = (weight[..., size + 1] - weight[..., size] for weight in (key, value))
        first, change = reference.flatten(-2), (transform - reference).flatten(-2)
        asked = _of_rows(first, einsum(by_reference, key[..., :size], "... h d x, ... h d y -> ... x h y"))
        asked = asked + einsum(by_action, key[..., :size], "... h d a, ... h d y -> ... a h y").unsqueeze(-3)
        logits = (asked * change.unsqueeze(-2)).sum(-1)
        logits = (
            logits
            + _of_rows(first, einsum(by_reference, key_ids, "... h d x, ... h d -> ... x h").unsqueeze(-1))[..., 0]
        )
        logits = logits + einsum(by_action, key_ids, "... h d a, ... h d -> ... a h").unsqueeze(-2)
        told = einsum(value[..., :size], output, "... h d x, ... h d y -> ... x h y")
        changes = (
            _of_rows(change, told) + einsum(value_ids, output, "... h d, ... h d y -> ... h y")[..., None, None, :, :]
        )
        always = einsum(value[..., size] + value_bias, output, "... h d, ... h d y -> ... y") + layer.output.bias
        update = (logits.sigmoid().unsqueeze(-1) * changes).sum(-2)
        return self.as_objects(
            update + _of_rows(first, told.sum(-2, keepdim=True))[..., 0, :] + always[..., None, None, :]
        )

    def output_map(self) -> tuple[Tensor, ...]:
        return self.attention.output.weight, self.attention.output.bias


def _of_rows(rows: Float[Tensor, "*n a b x"], maps: Float[Tensor, "*n x h y"]) -> Float[Tensor, "*n a b h y"]:
    """Linear maps of all rows, one for each head, as one product for each model."""
    return (rows.flatten(-3, -2) @ maps.flatten(-2)).reshape(*rows.shape[:-1], *maps.shape[-2:])
