"""TPR-Attention for contextual retrieval: the role to read is a function of the task."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.nn.attention import TPRAttention
from tpr_attention.nn.queries import Queries

__all__ = ["ContextualTPR"]

NOISE = 0.05
"""Of filler maps at the start, about the identity."""


class TaskQueries(nn.Module):
    """Match the own filler in a learned role; the role to read is linear in the filler of the last role, the task."""

    def __init__(self, num_roles: int, filler_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_roles, self.filler_dim, self.num_heads, self.num_matches = num_roles, filler_dim, num_heads, 1
        self.match_role = nn.Parameter(torch.randn(num_heads, 1, num_roles) * num_roles**-0.5)
        same = torch.eye(filler_dim).repeat(num_heads, 1, 1)
        self.filler_map = nn.Parameter(same + NOISE * torch.randn_like(same))
        self.target_role = nn.Parameter(torch.randn(num_heads, filler_dim, num_roles) * filler_dim**-0.5)
        self.sharpness = nn.Parameter(torch.zeros(num_heads))

    def forward(self, objects: Float[Tensor, "*batch t r f"]) -> Queries:
        """What each head asks."""
        own = torch.einsum("hmr,...trf->...thmf", self.match_role, objects)
        sharp = self.filler_map * self.sharpness.exp()[:, None, None]
        target = torch.einsum("...tf,hfr->...thr", objects[..., -1, :], self.target_role)
        every = (*objects.shape[:-2], *self.match_role.shape)
        return Queries(self.match_role.expand(every), torch.einsum("...thmf,hfg->...thmg", own, sharp), target)


class ContextualTPR(nn.Module):
    """One layer of TPR-Attention with the softmax match. A role for each field, and one for the task.

    Args:
        filler_dim: Numbers of a filler.
        num_heads: How many heads there are.
        hidden: Width of the network that turns the number of a search field into a filler.
        exclude_self: Whether an object does not find itself.
    """

    def __init__(
        self,
        num_searches: int,
        num_values: int,
        filler_dim: int = 16,
        num_heads: int = 3,
        hidden: int = 64,
        exclude_self: bool = True,
    ) -> None:
        super().__init__()
        if filler_dim < num_searches * num_values:
            raise ValueError(f"filler_dim: expected at least {num_searches * num_values}, got {filler_dim}")
        self.num_searches, self.filler_dim = num_searches, filler_dim
        roles = num_searches + num_values + 1
        self.search = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, filler_dim))
        self.value = nn.Linear(1, filler_dim)
        self.layer = TPRAttention(
            roles,
            filler_dim,
            num_heads,
            causal=False,
            queries=TaskQueries(roles, filler_dim, num_heads),
            match="softmax",
            temperature=1.0,
            exclude_self=exclude_self,
            normalise=None,
            new_roles=[*range(num_heads)],
        )
        self.output = nn.Linear(roles * filler_dim, 1)

    def forward(
        self, numbers: Float[Tensor, "*batch t field"], task: Float[Tensor, "*batch t search value"]
    ) -> Float[Tensor, "*batch t"]:
        """The sum that each object asks for."""
        fields = numbers.unsqueeze(-1)
        search = self.search(fields[..., : self.num_searches, :])
        value = self.value(fields[..., self.num_searches :, :])
        flat = task.flatten(-2)
        wanted = nn.functional.pad(flat, (0, self.filler_dim - flat.shape[-1])).unsqueeze(-2)
        update = self.layer(torch.cat([search, value, wanted], -2))
        answer: Tensor = self.output(update.flatten(-2)).squeeze(-1)
        return answer
