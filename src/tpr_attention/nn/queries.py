"""What a head asks of the memory, as a function of the current object (Algorithm 1)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.monomials import MOST_MATCHES
from tpr_attention.functional.precision import autocasts
from tpr_attention.functional.signature import (
    expect,
    expect_alike,
    expect_generator,
    expect_parameters,
    expect_positive,
    expect_whole,
)
from tpr_attention.nn.initialisation import drawn, expect_roles, fill_, orthonormal_, role_vectors, roles_in_turn

__all__ = ["FixedRoleQueries", "LinearQueries", "OwnFillerQueries", "Queries", "expect_sizes"]


class Queries(NamedTuple):
    """For every head: the role and filler of each match, and the role to read.

    Roles that do not depend on the object may be given once for each head, which makes attention much cheaper.
    """

    match_role: Float[Tensor, "*batch t h m r"] | Float[Tensor, "h m r"]
    match_filler: Float[Tensor, "*batch t h m f"]
    target_role: Float[Tensor, "*batch t h r"] | Float[Tensor, "h r"]


class LinearQueries(nn.Module):
    """Match role, match filler and target role as linear maps of the object, as in the paper.

    Each map may be replaced by any module from the flattened object to the same number of outputs.

    Initialisation: fillers are taken to have unit length, as in the paper, so that an object of r roles has squared
    length r; the weights that make a query vector of d entries have variance 1 / (r d), which gives it unit length on
    average, and a perfect match a score of about one. Biases start at zero.

    >>> queries = LinearQueries(6, 3, num_heads=4)(torch.randn(2, 7, 6, 3))
    >>> queries.match_role.shape, queries.match_filler.shape, queries.target_role.shape
    (torch.Size([2, 7, 4, 1, 6]), torch.Size([2, 7, 4, 1, 3]), torch.Size([2, 7, 4, 6]))
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        num_matches: int = 1,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = expect_sizes(num_roles, filler_dim, num_heads, num_matches)
        num_roles, filler_dim, num_heads, num_matches = sizes.values()
        each = num_matches * (num_roles + filler_dim) + num_roles  # outputs of a head
        numbers = num_heads * each * (num_roles * filler_dim + 1)
        expect_parameters(numbers, device, dtype, **sizes)
        self.num_roles, self.filler_dim = num_roles, filler_dim
        self.num_heads, self.num_matches = num_heads, num_matches
        width = num_roles * filler_dim
        self.match_role = nn.Linear(width, num_heads * num_matches * num_roles, device=device, dtype=dtype)
        self.match_filler = nn.Linear(width, num_heads * num_matches * filler_dim, device=device, dtype=dtype)
        self.target_role = nn.Linear(width, num_heads * num_roles, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew."""
        expect_generator(generator)
        for linear, size in (
            (self.match_role, self.num_roles),
            (self.match_filler, self.filler_dim),
            (self.target_role, self.num_roles),
        ):
            _unit_length_(linear, self.num_roles, size, generator)

    def forward(self, objects: Float[Tensor, "*batch t r f"]) -> Queries:
        """What every object asks."""
        _expect_objects(objects, self)
        flat = objects.flatten(-2)
        matches = (self.num_heads, self.num_matches)
        match_role, match_filler, target_role = _apply(flat, self.match_role, self.match_filler, self.target_role)
        return Queries(
            match_role.unflatten(-1, (*matches, self.num_roles)),
            match_filler.unflatten(-1, (*matches, self.filler_dim)),
            target_role.unflatten(-1, (self.num_heads, self.num_roles)),
        )


class FixedRoleQueries(nn.Module):
    """Match and target roles as parameters of each head; only the match filler is read from the object.

    Keys and values then shrink from the object to one filler, and the memory of a head to filler x filler.

    Initialisation: the match filler as in `LinearQueries`; roles are orthonormal, so that heads start by asking for
    different roles.

    >>> queries = FixedRoleQueries(6, 3, num_heads=4)(torch.randn(2, 7, 6, 3))
    >>> queries.match_role.shape, queries.match_filler.shape, queries.target_role.shape
    (torch.Size([4, 1, 6]), torch.Size([2, 7, 4, 1, 3]), torch.Size([4, 6]))
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        num_matches: int = 1,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = expect_sizes(num_roles, filler_dim, num_heads, num_matches)
        num_roles, filler_dim, num_heads, num_matches = sizes.values()
        roles = drawn(num_heads * num_matches, num_roles) + drawn(num_heads, num_roles)
        numbers = roles + num_heads * num_matches * filler_dim * (num_roles * filler_dim + 1)
        expect_parameters(numbers, device, dtype, **sizes)
        self.num_roles, self.filler_dim = num_roles, filler_dim
        self.num_heads, self.num_matches = num_heads, num_matches
        self.match_role = nn.Parameter(torch.empty(num_heads, num_matches, num_roles, device=device, dtype=dtype))
        self.match_filler = nn.Linear(
            num_roles * filler_dim, num_heads * num_matches * filler_dim, device=device, dtype=dtype
        )
        self.target_role = nn.Parameter(torch.empty(num_heads, num_roles, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew."""
        expect_generator(generator)
        rows = self.match_role.new_empty(self.num_heads * self.num_matches, self.num_roles)
        with torch.no_grad():
            self.match_role.copy_(orthonormal_(rows, generator).view_as(self.match_role))
        orthonormal_(self.target_role, generator)
        _unit_length_(self.match_filler, self.num_roles, self.filler_dim, generator)

    def forward(self, objects: Float[Tensor, "*batch t r f"]) -> Queries:
        """What every object asks."""
        _expect_objects(objects, self)
        filler = self.match_filler(objects.flatten(-2))
        return Queries(
            self.match_role,
            filler.unflatten(-1, (self.num_heads, self.num_matches, self.filler_dim)),
            self.target_role,
        )


class OwnFillerQueries(FixedRoleQueries):
    r"""Every head looks for objects that have, in its match roles, what the object has itself: the default.

    f_m = A_hm O,    where A_hm starts as reading the object's own filler in a role.

    Match and target roles are parameters of each head that start as one-hot vectors. All is learned from there.

    Args:
        match_roles: The role that each head matches, one number a head, or a list of `num_matches` numbers a head.
            Drawn if not given: different heads start with different roles, and none reads what it matches, as far as
            there are roles.
        own_roles: The roles whose fillers the head looks for; the match roles if not given.
        target_roles: The role that each head reads; drawn if not given.

    >>> queries = OwnFillerQueries(6, 3, num_heads=2, match_roles=[0, 1], target_roles=[5, 5])
    >>> objects = torch.randn(2, 7, 6, 3)
    >>> torch.equal(queries(objects).match_filler[..., 0, :], objects[:, :, :2])
    True
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        num_matches: int = 1,
        *,
        match_roles: Sequence[int] | Sequence[Sequence[int]] | None = None,
        own_roles: Sequence[int] | Sequence[Sequence[int]] | None = None,
        target_roles: Sequence[int] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        roles, _, heads, matches = expect_sizes(num_roles, filler_dim, num_heads, num_matches).values()
        self._match_roles = expect_roles("match_roles", match_roles, heads, roles, matches)
        self._own_roles = expect_roles("own_roles", own_roles, heads, roles, matches)
        self._target_roles = expect_roles("target_roles", target_roles, heads, roles)
        super().__init__(num_roles, filler_dim, num_heads, num_matches, device=device, dtype=dtype)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Start anew; roles that were not given are drawn."""
        expect_generator(generator)
        device, (heads, matches) = self.match_role.device, (self.num_heads, self.num_matches)
        # all roles in a circle: a head reads a role and matches the next ones
        circle = roles_in_turn(self.num_roles, self.num_roles, generator, device)
        place = circle.argsort()
        if self._target_roles is not None:
            turns = place[self._target_roles.to(device)]
        elif self._match_roles is not None:
            turns = (place[self._match_roles[:, 0].to(device)] - 1) % self.num_roles
        else:
            turns = roles_in_turn(heads, self.num_roles, generator, device)
        nearest = (turns[:, None] + torch.arange(1, matches + 1, device=device)) % self.num_roles
        match = circle[nearest] if self._match_roles is None else self._match_roles.to(device)
        own = match if self._own_roles is None else self._own_roles.to(device)
        fill_(self.target_role, role_vectors(circle[turns], self.num_roles))
        fill_(self.match_role, role_vectors(match, self.num_roles))
        reads = role_vectors(own.flatten(), self.num_roles)
        same = torch.eye(self.filler_dim, device=device)
        fill_(self.match_filler.weight, torch.einsum("kr,fg->kfrg", reads, same).flatten(2).flatten(0, 1))
        nn.init.zeros_(self.match_filler.bias)


def _apply(flat: Tensor, *maps: nn.Module) -> Sequence[Any]:
    """What each map makes of the objects: by one matrix product, if all are plain linear maps without hooks."""
    weights: list[Tensor] = []
    biases: list[Tensor] = []
    for each in maps:
        if type(each) is not nn.Linear or each.bias is None or each._forward_hooks or each._forward_pre_hooks:
            return [each(flat) for each in maps]
        weights.append(each.weight)
        biases.append(each.bias)
    joined = nn.functional.linear(flat, torch.cat(weights), torch.cat(biases))
    return torch.split(joined, [len(bias) for bias in biases], -1)


def expect_sizes(num_roles: int, filler_dim: int, num_heads: int, num_matches: int) -> dict[str, int]:
    """Check the sizes of a layer or of its queries, and return them by name as Python's own numbers."""
    sizes = expect_positive(num_roles=num_roles, filler_dim=filler_dim, num_heads=num_heads)
    matches = expect_whole("num_matches", num_matches, 1, MOST_MATCHES)
    return dict(zip(("num_roles", "filler_dim", "num_heads", "num_matches"), (*sizes, matches), strict=True))


def _expect_objects(objects: Tensor, queries: LinearQueries | FixedRoleQueries) -> None:
    """Check that the maps can be applied; a map that was replaced knows itself what it takes."""
    expect("objects", objects, "*batch t r f", {"r": queries.num_roles, "f": queries.filler_dim})
    if type(queries.match_filler) is nn.Linear:
        alike = {"match_filler.weight": queries.match_filler.weight, "objects": objects}
        expect_alike(alike, dtypes=not autocasts(objects.device))


def _unit_length_(linear: nn.Linear, num_roles: int, size: int, generator: torch.Generator | None) -> None:
    """Make the linear map give vectors of `size` entries and length one, on average, for an object of unit fillers."""
    nn.init.normal_(linear.weight, std=(num_roles * size) ** -0.5, generator=generator)
    nn.init.zeros_(linear.bias)
