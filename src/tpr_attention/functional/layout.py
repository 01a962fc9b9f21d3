"""The two kinds of roles, laid out as one problem: b memories, each read by g queries at every position."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.kernels.extraction import keys_and_values
from tpr_attention.functional.monomials import num_features

__all__ = ["Reading", "by_head", "by_sequence"]


class Reading(NamedTuple):
    """Linear attention of queries at q positions over b sequences of s keys and values, which form b memories."""

    match_role: Float[Tensor, "b q g m r"] | None
    match_filler: Float[Tensor, "b q g m f"]
    key: Float[Tensor, "b s m_k d"]  # m_k is 1, one key for all matches, or m
    value: Float[Tensor, "b s v"] | None  # None: the key
    target_role: Float[Tensor, "b q g r"] | None
    state: Float[Tensor, "b p v"] | None = None

    def num_matches(self) -> int:
        return self.match_filler.shape[3]

    def shared_key(self) -> bool:
        return self.key.shape[2] == 1

    def values(self) -> Tensor:
        return self.key.squeeze(2) if self.value is None else self.value

    def num_features(self) -> int:
        return num_features(self.key.shape[3], self.num_matches(), shared_key=self.shared_key())

    def queries(self) -> Float[Tensor, "b q g m d"]:
        if self.match_role is None:
            return self.match_filler
        return (self.match_role.unsqueeze(-1) * self.match_filler.unsqueeze(-2)).flatten(-2)

    def start(self) -> Float[Tensor, "b p v"]:
        if self.state is not None:
            return self.state
        return self.key.new_zeros(self.key.shape[0], self.num_features(), self.values().shape[2])


def by_sequence(
    objects: Tensor,
    match_role: Tensor,
    match_filler: Tensor,
    target_role: Tensor,
    *,
    keys: Tensor | None = None,
    gate: Tensor | None = None,
    state: Tensor | None = None,
) -> Reading:
    """One memory of whole objects for each sequence, which all heads read."""
    stored, (roles, filler_dim) = objects.shape[-3], objects.shape[-2:]
    every, (heads, matches) = match_filler.shape[:-3], match_filler.shape[-3:-1]
    value = None
    if keys is not None or gate is not None:
        value = objects.reshape(-1, stored, roles * filler_dim)
    if gate is not None and value is not None:
        value = value * gate.reshape(-1, stored, 1)
    if match_role.ndim == 3:
        match_role = match_role.expand(*every, heads, matches, roles)
    if target_role.ndim == 2:
        target_role = target_role.expand(*every, heads, roles)
    if len(every) != 2:  # a view that changes nothing would still cost
        match_role = match_role.reshape(-1, every[-1], heads, matches, roles)
        match_filler = match_filler.reshape(-1, every[-1], heads, matches, filler_dim)
        target_role = target_role.reshape(-1, every[-1], heads, roles)
    return Reading(
        match_role,
        match_filler,
        (objects if keys is None else keys).reshape(-1, stored, 1, roles * filler_dim),
        value,
        target_role,
        None if state is None else state.reshape(-1, *state.shape[-2:]),
    )


def by_head(
    objects: Tensor,
    match_role: Tensor,
    match_filler: Tensor,
    target_role: Tensor,
    *,
    keys: Tensor | None = None,
    gate: Tensor | None = None,
    state: Tensor | None = None,
) -> Reading:
    """One memory of fillers for each head of each sequence: what its roles read of the objects is known beforehand."""
    stored, filler_dim, (length, _, matches) = objects.shape[-3], objects.shape[-1], match_filler.shape[-4:-1]
    objects = objects.reshape(-1, *objects.shape[-3:])
    key, value = keys_and_values(
        objects, None if keys is None else keys.reshape(objects.shape), match_role, target_role
    )
    key = key.reshape(-1, matches, stored, filler_dim)
    if gate is not None:
        value = value * gate.reshape(-1, *gate.shape[-2:]).mT.unsqueeze(-1)
    return Reading(
        None,
        match_filler.movedim(-3, -4).reshape(-1, length, 1, matches, filler_dim),
        key.movedim(1, 2),
        value.reshape(-1, stored, filler_dim),
        None,
        None if state is None else state.reshape(-1, *state.shape[-2:]),
    )
