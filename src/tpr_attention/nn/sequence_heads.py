"""What heads over sequences have in common, whatever their memory: they ask, and they write."""

from collections.abc import Sequence

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.precision import autocasts
from tpr_attention.functional.signature import Sizes, choose, expect, expect_alike, expect_generator, expect_parameters
from tpr_attention.nn.initialisation import drawn, expect_roles, fill_, orthonormal_, role_vectors, roles_in_turn
from tpr_attention.nn.queries import OwnFillerQueries, Queries, expect_sizes

__all__ = ["SequenceHeads", "expect_module"]

STARTS = {"roles": "identity maps, one-hot new roles", "orthonormal": "random maps and new roles"}


class SequenceHeads(nn.Module):
    """Queries, filler maps and new roles of heads over a sequence.

    Args:
        queries: Module from objects to `Queries`; `OwnFillerQueries` if not given.
        new_roles: The role that each head writes, by number; drawn if not given.
        start: "roles": filler maps start as the identity, new roles one-hot. "orthonormal": both random.
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        num_matches: int,
        queries: nn.Module | None,
        new_roles: Sequence[int] | None,
        start: str,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        sizes = expect_sizes(num_roles, filler_dim, num_heads, num_matches)
        self.num_roles, self.filler_dim, self.num_heads, self.num_matches = sizes.values()
        numbers = self.num_heads * self.filler_dim**2 + drawn(self.num_heads, self.num_roles)
        expect_parameters(numbers, device, dtype, **sizes)
        choose("start", start, STARTS)
        expect_module("queries", queries, "from objects to Queries")
        self.start, self._new_roles = start, expect_roles("new_roles", new_roles, self.num_heads, self.num_roles)
        if queries is None:
            queries = OwnFillerQueries(*sizes.values(), device=device, dtype=dtype)
        for name, own in sizes.items():
            theirs = getattr(queries, name, None)
            if theirs not in (None, own):
                raise ValueError(f"queries: expected {name}={own} as the layer has, got {theirs}")
        self.queries = queries
        square = (self.num_heads, self.filler_dim, self.filler_dim)
        self.filler_map = nn.Parameter(torch.empty(square, device=device, dtype=dtype))
        self.new_role = nn.Parameter(torch.empty(self.num_heads, self.num_roles, device=device, dtype=dtype))
        self._reset_own_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew, but for those of modules of the user's own."""
        self._reset_own_parameters(generator)
        for module in self.children():
            if type(module).__module__.startswith("tpr_attention.") and hasattr(module, "reset_parameters"):
                module.reset_parameters(generator)  # type: ignore[operator]

    def _reset_own_parameters(self, generator: torch.Generator | None = None) -> None:
        expect_generator(generator)
        if self.start == "orthonormal":
            orthonormal_(self.filler_map, generator)
            if self._new_roles is None:
                orthonormal_(self.new_role, generator)
                return
        else:
            same = torch.eye(self.filler_dim, device=self.filler_map.device)
            fill_(self.filler_map, same.expand(self.num_heads, -1, -1))
        roles = self._new_roles
        if roles is None:
            roles = roles_in_turn(self.num_heads, self.num_roles, generator, self.new_role.device)
        fill_(self.new_role, role_vectors(roles.to(self.new_role.device), self.num_roles))

    def ask(self, objects: Float[Tensor, "*batch t r f"]) -> Queries:
        """What every object asks."""
        sizes: Sizes = {"r": self.num_roles, "f": self.filler_dim, "h": self.num_heads, "m": self.num_matches}
        expect("objects", objects, "*batch t r f", sizes)
        dtypes = not autocasts(objects.device)
        expect_alike({"filler_map": self.filler_map, "objects": objects}, dtypes=dtypes)
        queries = self.queries(objects)
        if not isinstance(queries, tuple) or len(queries) != 3:
            raise TypeError(
                f"queries: expected {type(self.queries).__name__} to return Queries(match_role, match_filler, "
                f"target_role), got {type(queries).__name__}"
            )
        for name, value, axes in zip(Queries._fields, queries, _QUERY_AXES, strict=True):
            expect(f"queries.{name}", value, axes, sizes)
        named = {f"queries.{name}": query for name, query in zip(Queries._fields, queries, strict=True)}
        expect_alike({"objects": objects, **named}, dtypes=dtypes)
        return Queries(*queries)

    def bind(self, fillers: Float[Tensor, "*batch q h f"]) -> tuple[Tensor, Float[Tensor, "*batch q r f"]]:
        """The mapped fillers, and the sum of their bindings to the new roles."""
        mapped = einsum(fillers, self.filler_map, "... h f, h f f_out -> ... h f_out")
        return mapped, einsum(self.new_role, mapped, "h r, ... h f -> ... r f")


_QUERY_AXES = (("*batch t h m r", "h m r"), ("*batch t h m f",), ("*batch t h r", "h r"))


def expect_module(name: str, module: object, does: str) -> None:
    """Check that something is a module or None."""
    if module is not None and not isinstance(module, nn.Module):
        raise TypeError(f"{name}: expected a module {does}, got {type(module).__name__}")
