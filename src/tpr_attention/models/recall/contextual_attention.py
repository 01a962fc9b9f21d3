"""Multi-head attention for contextual retrieval."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["ContextualAttention"]


class ContextualAttention(nn.Module):
    """One layer of multi-head softmax attention between an encoder and a decoder, as in the published task.

    Args:
        width: Numbers of an object.
        num_heads: How many heads there are; one for each pair of a search and a value field is enough.
        head_dim: Numbers of a head.
        exclude_self: Whether an object does not find itself.
    """

    def __init__(
        self,
        num_searches: int,
        num_values: int,
        width: int = 128,
        num_heads: int = 9,
        head_dim: int = 16,
        exclude_self: bool = True,
    ) -> None:
        super().__init__()
        self.num_heads, self.exclude_self = num_heads, exclude_self
        fields = num_searches + num_values + num_searches * num_values
        self.encoder = nn.Sequential(nn.Linear(fields, width), nn.ReLU(), nn.Linear(width, width))
        heads = num_heads * head_dim
        self.query, self.value = nn.Linear(width, heads), nn.Linear(width, heads)
        self.key = nn.Linear(width, heads, bias=False)  # a bias would move all scores of a query alike
        self.output = nn.Linear(heads, width)
        self.decoder = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(
        self, numbers: Float[Tensor, "*batch t field"], task: Float[Tensor, "*batch t search value"]
    ) -> Float[Tensor, "*batch t"]:
        """The sum that each object asks for."""
        objects = self.encoder(torch.cat([numbers, task.flatten(-2)], -1))
        query, key, value = (
            layer(objects).unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.mT / key.shape[-1] ** 0.5
        if self.exclude_self:
            same = torch.eye(objects.shape[-2], dtype=torch.bool, device=objects.device)
            scores = scores.masked_fill(same, -torch.inf)
        read = (scores.softmax(-1) @ value).transpose(-3, -2).flatten(-2)
        answer: Tensor = self.decoder(objects + self.output(read)).squeeze(-1)
        return answer
