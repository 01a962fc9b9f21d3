"""Pairs as objects: parts of a key in their roles, the value in others. The encoder of TPR contestants."""

from math import ceil
from typing import Literal

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.nn.initialisation import orthonormal_

__all__ = ["TABLE_SHARE", "KeyStart", "RoleObjects", "Values"]

Values = Literal["one-hot", "learned"]
KeyStart = Literal["table", "orthonormal", "random"]

TABLE_SHARE = 2.2
"""How many numbers the table of keys has for each key, in the published protocol."""


class RoleObjects(nn.Module):
    """Objects of pairs and of queries. A query has nothing in the roles of the value.

    Args:
        matches: How many roles keys have in all, shared evenly by the parts of a key.
        values: "one-hot" for fixed values, as many roles as they need; "learned" for fillers in one role, which a
            linear map reads off.
        keys: "table" if keys are rows of a wide normal table that a linear map turns into fillers, as in the published
            protocol; otherwise each key has its own fillers, "orthonormal" or "random" unit vectors at the start.
    """

    def __init__(
        self,
        key_fields: int,
        num_keys: int,
        num_values: int,
        filler_dim: int,
        matches: int,
        values: Values,
        keys: KeyStart,
    ) -> None:
        super().__init__()
        if matches % key_fields:
            raise ValueError(f"num_matches: expected a multiple of {key_fields}, the parts of a key, got {matches}")
        self.key_fields, self.num_values, self.filler_dim, self.matches = key_fields, num_values, filler_dim, matches
        self.is_one_hot = values == "one-hot"
        self.value_roles = ceil(num_values / filler_dim) if self.is_one_hot else 1
        self.num_roles = matches + self.value_roles
        each = matches // key_fields * filler_dim
        self.wide: nn.Parameter | None = None
        if keys == "table":
            wide = int(TABLE_SHARE * num_keys)
            self.wide = nn.Parameter(torch.randn(key_fields, num_keys, wide))
            self.key_fillers = nn.Parameter(torch.randn(key_fields, wide, each) * (wide * filler_dim) ** -0.5)
        else:
            fillers = torch.randn(matches, num_keys, filler_dim)
            fillers = orthonormal_(fillers) if keys == "orthonormal" else nn.functional.normalize(fillers, dim=-1)
            self.key_fillers = nn.Parameter(rearrange(fillers, "(c m) n f -> c n (m f)", c=key_fields))
        if not self.is_one_hot:
            self.value_fillers = nn.Parameter(orthonormal_(torch.empty(num_values, filler_dim)))
            self.values_of = nn.Linear(filler_dim, num_values)

    def keys(self, fields: Int[Tensor, "*batch c"]) -> Float[Tensor, "*batch m f"]:
        """The fillers of keys."""
        table = self.key_fillers if self.wide is None else self.wide @ self.key_fillers
        parts = [nn.functional.embedding(fields[..., field], table[field]) for field in range(self.key_fields)]
        return rearrange(torch.cat(parts, -1), "... (m f) -> ... m f", m=self.matches)

    def values(self, numbers: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch v f"]:
        """The fillers of values."""
        if not self.is_one_hot:
            return nn.functional.embedding(numbers, self.value_fillers).unsqueeze(-2)
        places = torch.arange(self.value_roles * self.filler_dim, device=numbers.device)
        one_hot = (numbers.unsqueeze(-1) == places).to(self.key_fillers.dtype)
        return rearrange(one_hot, "... (v f) -> ... v f", v=self.value_roles)

    def pairs(self, pairs: Int[Tensor, "*batch c_and_value"]) -> Float[Tensor, "*batch r f"]:
        """Objects of pairs."""
        return torch.cat([self.keys(pairs[..., :-1]), self.values(pairs[..., -1])], -2)

    def queries(self, fields: Int[Tensor, "*batch c"]) -> Float[Tensor, "*batch r f"]:
        """Objects of queries."""
        return nn.functional.pad(self.keys(fields), (0, 0, 0, self.value_roles))

    def answer(self, fillers: Float[Tensor, "*batch v f"]) -> Float[Tensor, "*batch n"]:
        """What is read in the roles of the value, as an entry for each value."""
        if self.is_one_hot:
            return fillers.flatten(-2)[..., : self.num_values]
        answer: Tensor = self.values_of(fillers.squeeze(-2))
        return answer
