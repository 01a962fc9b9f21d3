"""From tokens to objects."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.functional.signature import expect_generator, expect_parameters, expect_positive, value_of
from tpr_attention.nn.initialisation import drawn, orthonormal_

__all__ = ["EMPTY", "RoleEmbedding", "shifted"]

EMPTY = -1
"""The token of a role that has no filler."""


class RoleEmbedding(nn.Module):
    """One token for each role of an object: its filler, the same in every role.

    Initialisation: fillers are orthonormal, as many at a time as fit.

    >>> embedding = RoleEmbedding(num_tokens=10, num_roles=2, filler_dim=16)
    >>> objects = embedding(torch.tensor([[3, 7], [3, -1]]))  # two objects; the second has nothing in its second role
    >>> objects.shape, torch.equal(objects[0, 0], objects[1, 0]), objects[1, 1].norm().item()
    (torch.Size([2, 2, 16]), True, 0.0)
    """

    def __init__(
        self,
        num_tokens: int,
        num_roles: int,
        filler_dim: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"num_tokens": num_tokens, "num_roles": num_roles, "filler_dim": filler_dim}
        self.num_tokens, self.num_roles, self.filler_dim = expect_positive(**sizes)
        expect_parameters(drawn(self.num_tokens, self.filler_dim), device, dtype, **sizes)
        self.fillers = nn.Parameter(torch.empty(self.num_tokens, self.filler_dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all fillers anew."""
        expect_generator(generator)
        orthonormal_(self.fillers, generator)

    def forward(self, tokens: Int[Tensor, "*batch r"]) -> Float[Tensor, "*batch r f"]:
        """The objects with these tokens; -1 stands for an empty role."""
        self._expect(tokens)
        found = nn.functional.embedding(tokens.clamp(min=0), self.fillers)
        return found.masked_fill((tokens == EMPTY).unsqueeze(-1), 0)

    def _expect(self, tokens: object) -> None:
        wanted = f"whole numbers from {EMPTY} to {self.num_tokens - 1} as a torch.int64 tensor [*batch r]"
        if not isinstance(tokens, Tensor) or tokens.dtype != torch.int64:
            got = tokens.dtype if isinstance(tokens, Tensor) else type(tokens).__name__
            raise TypeError(f"tokens: expected {wanted} with r={self.num_roles}, got {got}")
        if tokens.ndim == 0 or tokens.shape[-1] != self.num_roles:
            raise ValueError(f"tokens: expected {wanted} with r={self.num_roles}, got shape {list(tokens.shape)}")
        if tokens.device.type == "cpu" and tokens.numel():
            for end in (tokens.amin(), tokens.amax()):
                token = value_of(end)
                if token is not None and not EMPTY <= token < self.num_tokens:
                    raise ValueError(f"tokens: expected {wanted}, got {token}")

    def extra_repr(self) -> str:
        return f"num_tokens={self.num_tokens}, num_roles={self.num_roles}, filler_dim={self.filler_dim}"


def shifted(
    tokens: Int[Tensor, "*batch t"], num_roles: int, before: Int[Tensor, "*batch s"] | None = None
) -> Int[Tensor, "*batch t r"]:
    """Tokens for the roles "now", "one back", "two back", and so on.

    Args:
        before: The `num_roles - 1` tokens before these; none if not given.

    >>> shifted(torch.tensor([5, 6, 7]), 2)
    tensor([[ 5, -1],
            [ 6,  5],
            [ 7,  6]])
    """
    if before is None:
        before = tokens.new_full((*tokens.shape[:-1], num_roles - 1), EMPTY)
    line = torch.cat([before, tokens], -1)
    length = tokens.shape[-1]
    return torch.stack([line.narrow(-1, num_roles - 1 - k, length) for k in range(num_roles)], -1)
