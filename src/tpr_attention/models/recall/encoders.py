"""How pairs become keys and values, and what is read becomes an answer: three encoders for every memory."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.models.recall.role_objects import TABLE_SHARE, KeyStart, RoleObjects, Values

__all__ = ["Encoded", "Encoder", "make_encoder"]


class Encoded(NamedTuple):
    """Keys and values of pairs, keys of queries, and what else the answer and a gate may depend on."""

    keys: Float[Tensor, "*batch h t k"]
    values: Float[Tensor, "*batch h t v"]
    queries: Float[Tensor, "*batch h q k"]
    written: Float[Tensor, "*batch t d"]
    asked: Float[Tensor, "*batch q d"]


class Encoder(Protocol):
    """Makes what a memory is written and asked with, and an answer of what was read."""

    key_dim: int
    written_dim: int
    num_heads: int

    def __call__(self, pairs: Tensor, queries: Tensor) -> Encoded:
        """Keys and values."""

    def answer(self, read: Float[Tensor, "*batch h q v"], encoded: Encoded) -> Float[Tensor, "*batch q n"]:
        """An entry for each value."""


class PublishedEncoder(nn.Module):
    """A wide normal table with one linear map to keys and one to queries; values are one-hot (Schlag et al. 2021)."""

    def __init__(self, key_fields: int, num_keys: int, num_values: int, width: int, num_heads: int) -> None:
        super().__init__()
        if num_heads != 1:
            raise ValueError(f"num_heads: expected 1 with the encoder 'published', got {num_heads}")
        wide = int(TABLE_SHARE * num_keys)
        self.num_values, self.key_dim, self.written_dim, self.num_heads = num_values, width, width, 1
        self.table = nn.Parameter(torch.randn(key_fields, num_keys, wide))
        self.key, self.query = (nn.Parameter(torch.empty(key_fields, wide, width)) for _ in range(2))
        for weight in (self.key, self.query):
            nn.init.uniform_(weight, -(wide**-0.5), wide**-0.5)  # as `nn.Linear` does: scores start small at any size

    def forward(self, pairs: Int[Tensor, "*batch t c_and_value"], queries: Int[Tensor, "*batch q c"]) -> Encoded:
        """Keys, one-hot values and queries of one head."""
        keys, asked = self._rows(pairs[..., :-1], self.key), self._rows(queries, self.query)
        places = torch.arange(self.num_values, device=pairs.device)
        values = (pairs[..., -1:] == places).to(keys.dtype)
        return Encoded(keys.unsqueeze(-3), values.unsqueeze(-3), asked.unsqueeze(-3), keys, asked)

    def answer(self, read: Float[Tensor, "*batch h q v"], encoded: Encoded) -> Float[Tensor, "*batch q v"]:
        """What was read."""
        return read.squeeze(-3)

    def _rows(self, fields: Tensor, weight: Tensor) -> Tensor:
        table = self.table @ weight
        parts = [nn.functional.embedding(fields[..., field], table[field]) for field in range(len(table))]
        return torch.stack(parts).sum(0)


class BlockEncoder(nn.Module):
    """A usual attention block: embeddings, a linear map, norms, keys, queries and values, a residual, a linear head."""

    def __init__(
        self, key_fields: int, num_keys: int, num_values: int, width: int, num_heads: int, embedding_dim: int = 32
    ) -> None:
        super().__init__()
        if width % num_heads:
            raise ValueError(f"width: expected a multiple of the {num_heads} heads, got {width}")
        self.num_heads, self.key_dim, self.written_dim = num_heads, width // num_heads, width
        self.key_tables = nn.ModuleList(nn.Embedding(num_keys, embedding_dim) for _ in range(key_fields))
        self.value_table = nn.Embedding(num_values, embedding_dim)
        self.input = nn.Linear((key_fields + 1) * embedding_dim, width)
        self.norm, self.last_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.key, self.query, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.head = nn.Linear(width, num_values)

    def forward(self, pairs: Int[Tensor, "*batch t c_and_value"], queries: Int[Tensor, "*batch q c"]) -> Encoded:
        """Keys, values and queries of each head."""
        values = self.value_table(pairs[..., -1])
        stored = self.input(torch.cat([*self._fields(pairs[..., :-1]), values], -1))
        nothing = values.new_zeros(*queries.shape[:-1], values.shape[-1])
        asked = self.input(torch.cat([*self._fields(queries), nothing], -1))
        written, asking = self.norm(stored), self.norm(asked)
        keys, values = self._heads(self.key(written)), self._heads(self.value(written))
        return Encoded(keys, values, self._heads(self.query(asking)), written, asked)

    def answer(self, read: Float[Tensor, "*batch h q v"], encoded: Encoded) -> Float[Tensor, "*batch q n"]:
        """The head's reading of the residual stream."""
        joined = rearrange(read, "... h q v -> ... q (h v)")
        answer: Tensor = self.head(self.last_norm(encoded.asked + self.output(joined)))
        return answer

    def _fields(self, fields: Tensor) -> list[Tensor]:
        return [table(fields[..., place]) for place, table in enumerate(self.key_tables)]

    def _heads(self, x: Tensor) -> Tensor:
        return rearrange(x, "... t (h k) -> ... h t k", h=self.num_heads)


class RoleEncoder(nn.Module):
    """The encoder of TPR contestants for any memory: unit-length fillers of all key roles together are one key.

    Keys have entries of variance one. Queries go through a linear map that starts as the identity.
    """

    def __init__(
        self, key_fields: int, num_keys: int, num_values: int, width: int, num_heads: int, *, is_fixed: bool
    ) -> None:
        super().__init__()
        matches = 2
        if num_heads != 1 or width % matches:
            raise ValueError(f"width: expected an even width and one head with the encoder 'roles', got {width}")
        self.num_heads, self.key_dim, self.written_dim = 1, width, width
        values: Values = "one-hot" if is_fixed else "learned"
        keys: KeyStart = "table" if is_fixed else "orthonormal"
        self.objects = RoleObjects(key_fields, num_keys, num_values, width // matches, matches, values, keys)
        self.query = nn.Parameter(torch.eye(width))

    def forward(self, pairs: Int[Tensor, "*batch t c_and_value"], queries: Int[Tensor, "*batch q c"]) -> Encoded:
        """Keys, values and queries of one head."""
        keys, asked = self._unit(pairs[..., :-1]), self._unit(queries)
        values = self.objects.values(pairs[..., -1]).flatten(-2)
        return Encoded(keys.unsqueeze(-3), values.unsqueeze(-3), (asked @ self.query).unsqueeze(-3), keys, asked)

    def answer(self, read: Float[Tensor, "*batch h q v"], encoded: Encoded) -> Float[Tensor, "*batch q n"]:
        """The values of what was read."""
        return self.objects.answer(rearrange(read, "... 1 q (v f) -> ... q v f", v=self.objects.value_roles))

    def _unit(self, fields: Tensor) -> Tensor:
        fillers = nn.functional.normalize(self.objects.keys(fields), dim=-1)
        scaled: Tensor = fillers * self.objects.filler_dim**0.5
        return scaled.flatten(-2)


ENCODERS: dict[str, Callable[[int, int, int, int, int], nn.Module]] = {
    "published": PublishedEncoder,
    "block": BlockEncoder,
    "roles": lambda *sizes: RoleEncoder(*sizes, is_fixed=False),
    "fixed-roles": lambda *sizes: RoleEncoder(*sizes, is_fixed=True),
}


def make_encoder(name: str, key_fields: int, num_keys: int, num_values: int, width: int, num_heads: int) -> nn.Module:
    """Make an encoder by its name."""
    if name not in ENCODERS:
        raise ValueError(f"encoder: expected one of {list(ENCODERS)}, got {name!r}")
    if width < 1 or num_heads < 1:
        raise ValueError(f"width: expected at least one number and one head, got {width} and {num_heads}")
    return ENCODERS[name](key_fields, num_keys, num_values, width, num_heads)
