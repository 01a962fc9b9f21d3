"""What a trained layer of heads does, read from its weights alone, free of what does not change its function.

The weights of a head are a product, so size and sign may wander between its factors, under every action by itself. What
is shown has them in one place.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from einops import einsum
from jaxtyping import Float

__all__ = [
    "Head",
    "Inside",
    "Layer",
    "Names",
    "Together",
    "Transfer",
    "balanced",
    "look_inside",
    "together",
    "transfers",
]

OBJECTS = ("reference", "transform")


class Names(NamedTuple):
    """What actions, objects and roles are called."""

    actions: tuple[str, ...]
    objects: tuple[str, ...]
    roles: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Head:
    """A head of order m: what it reads under each action, from which object, how it maps it, where it writes it."""

    queries: Float[np.ndarray, "m a r"]
    ids: Float[np.ndarray, "m t"]
    filler_map: Float[np.ndarray, "*f g"]
    new_role: Float[np.ndarray, "a s"]


@dataclass(frozen=True, eq=False)
class Together:
    """What all first-order heads do in sum: under action a, from role r of object t to role s.

    Args:
        copied: How much of the filler arrives as it is; 1 writes it, -1 erases it.
        other: How large the rest of the map of fillers is; that of a rotation by a right angle would be 1.
    """

    copied: Float[np.ndarray, "a t r s"]
    other: Float[np.ndarray, "a t r s"]


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer of heads, and what they do together if that is a linear map.

    Args:
        normalised: Whether what a head reads is brought to unit length.
    """

    name: str
    names: Names
    heads: tuple[Head, ...]
    together: Together | None
    normalised: bool = False


class Transfer(NamedTuple):
    """What all heads bring from a role of an object to a role of the result; see `Together`."""

    thing: str
    role: str
    new_role: str
    copied: float
    other: float


@dataclass(frozen=True, eq=False)
class Inside:
    """All layers of heads of a model, of which there is at least one."""

    title: str
    layers: tuple[Layer, ...]


def look_inside(
    weights: Mapping[str, np.ndarray],
    *,
    title: str = "",
    actions: Sequence[str] = (),
    roles: Sequence[str] = (),
    normalised: Collection[str] = (),
) -> Inside | None:
    """The layers of heads among these weights: whatever has a query map, an id query, a role map and a filler map.

    Args:
        normalised: The names of layers that bring what they read to unit length, which weights do not tell.

    >>> maps = {"query_map": np.ones((2, 5, 6)), "id_query": np.ones((2, 2)), "role_map": np.ones((2, 5, 6))}
    >>> inside = look_inside({**maps, "filler_map": np.ones((2, 3, 3))}, roles=["shape"])
    >>> len(inside.layers[0].heads), inside.layers[0].names.roles[:2]
    (2, ('role 1', 'role 2'))
    """
    found = tuple(
        _layer(name, maps, actions, roles, name in normalised)
        for name, maps in _stored(weights)
        if all(np.isfinite(one).all() for one in maps)
    )
    return Inside(title, found) if found else None


def balanced(
    queries: Float[np.ndarray, "m a r"],
    ids: Float[np.ndarray, "m t"],
    filler_map: Float[np.ndarray, "*f g"],
    new_role: Float[np.ndarray, "a s"],
) -> Head:
    """The same head, with its size and sign in its first id.

    Under each action, the largest entries of queries and new role are equally large: where a head does little, both are
    pale. Over all actions, the largest is 1, as it is in the filler map and in further ids.

    >>> head = balanced(np.full((1, 1, 1), -2.0), np.array([[0.5, 1.0]]), np.full((1, 1), 3.0), np.full((1, 1), 8.0))
    >>> head.queries.item(), head.ids.tolist(), head.filler_map.item(), head.new_role.item()
    (1.0, [[-24.0, -48.0]], 1.0, 1.0)
    """
    read, write = _peak(queries), _peak(new_role)
    level = np.abs(read.prod(0) * write) ** (1 / (len(queries) + 1))
    queries, new_role = _ratio(queries, read) * level, _ratio(new_role, np.abs(write)) * level * np.sign(read.prod(0))
    asked, further = level.max(keepdims=True), _peak(ids[1:])
    mapped, whole = _peak(filler_map.reshape(-1)), _peak(new_role.reshape(-1))
    size = asked ** len(queries) * further.prod() * mapped * whole
    return Head(
        _ratio(queries, asked),
        np.concatenate([ids[:1] * size, _ratio(ids[1:], further)]),
        _ratio(filler_map, mapped),
        _ratio(new_role, whole),
    )


def together(
    query_map: Float[np.ndarray, "h a r"],
    id_query: Float[np.ndarray, "h t"],
    filler_map: Float[np.ndarray, "h f f"],
    role_map: Float[np.ndarray, "h a s"],
) -> Together:
    """The sum over heads of what is read, mapped and written (App. D).

    B[a, t, r, s] = sum_h id_h[t] q_h(a)[r] H_h r_n^h(a)[s],    copied = tr(B) / f,    other = |B - copied I| / sqrt(f)

    >>> one = np.ones((1, 1, 1))
    >>> together(one, np.ones((1, 1)), np.eye(3)[None], -one).copied.item()
    -1.0
    """
    size = filler_map.shape[-1]
    blocks = einsum(id_query, query_map, filler_map, role_map, "h t, h a r, h f g, h a s -> a t r s f g")
    copied = np.trace(blocks, axis1=-2, axis2=-1) / size
    rest = blocks - copied[..., None, None] * np.eye(size)
    return Together(copied, np.linalg.norm(rest, axis=(-2, -1)) / size**0.5)


def transfers(layer: Layer, action: str, *, most: int = 8, least: float = 0.05) -> tuple[list[Transfer], int]:
    """The strongest transfers of a layer under an action, in the order of objects and roles, and how many are left out.

    >>> maps = {"query_map": np.eye(2)[None], "id_query": np.eye(2)[:1], "role_map": np.eye(2)[None]}
    >>> (layer,) = look_inside({**maps, "filler_map": np.eye(3)[None]}).layers
    >>> transfers(layer, "action 2")
    ([Transfer(thing='reference', role='role 2', new_role='role 2', copied=1.0, other=0.0)], 0)
    """
    if layer.together is None:
        return [], 0
    place, names = layer.names.actions.index(action), layer.names
    copied, other = layer.together.copied[place], layer.together.other[place]
    size = np.hypot(copied, other)
    order = np.argsort(-size, axis=None, kind="stable")[: np.count_nonzero(size >= least)]
    found = [
        Transfer(names.objects[t], names.roles[r], names.roles[s], float(copied[t, r, s]), float(other[t, r, s]))
        for t, r, s in zip(*np.unravel_index(np.sort(order[:most]), size.shape), strict=True)
    ]
    return found, max(0, len(order) - most)


def _stored(weights: Mapping[str, np.ndarray]) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Names of layers and their four weights in double precision; queries and ids have an axis for the order."""
    for name in sorted((name for name in weights if re.fullmatch(r"(.*\.)?query_map", name)), key=_in_order):
        prefix = name.removesuffix("query_map")
        parts = [weights.get(prefix + part) for part in ("query_map", "id_query", "filler_map", "role_map")]
        queries, ids, filler_map, role_map = (None if part is None else part.astype(np.float64) for part in parts)
        if queries is None or ids is None or filler_map is None or role_map is None:
            continue
        if queries.ndim == 3 and ids.ndim == 2:
            queries, ids = queries[:, None], ids[:, None]
        if (queries.ndim, ids.ndim, role_map.ndim) == (4, 3, 3) and filler_map.ndim == queries.shape[1] + 2:
            yield prefix.rstrip("."), (queries, ids, filler_map, role_map)


def _in_order(name: str) -> list[tuple[int, str]]:
    """So that block 10 comes after block 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in name.split(".")]


def _layer(
    name: str, maps: tuple[np.ndarray, ...], actions: Sequence[str], roles: Sequence[str], normalised: bool
) -> Layer:
    queries, ids, filler_map, role_map = maps
    if normalised:  # then their sizes do not matter
        queries, ids = _ratio(queries, np.abs(_peak(queries))), _ratio(ids, np.abs(_peak(ids)))
    names = Names(
        _named(actions, "action", queries.shape[2]),
        _named(OBJECTS, "object", ids.shape[2]),
        _named(roles, "role", queries.shape[3]),
    )
    is_linear = filler_map.ndim == 3 and filler_map.shape[1] == filler_map.shape[2] and not normalised
    whole = together(queries[:, 0], ids[:, 0], filler_map, role_map) if is_linear else None
    heads = zip(queries, ids, filler_map, role_map, strict=True)
    return Layer(name, names, tuple(balanced(*head) for head in heads), whole, normalised)


def _named(names: Sequence[str], kind: str, count: int) -> tuple[str, ...]:
    """These names if there are so many, or else numbers."""
    return tuple(names) if len(names) == count else tuple(f"{kind} {place}" for place in range(1, count + 1))


def _peak(values: np.ndarray) -> np.ndarray:
    """The entry of largest absolute value along the last axis."""
    return np.take_along_axis(values, np.abs(values).argmax(-1, keepdims=True), -1)


def _ratio(values: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """A quotient; zero where the unit is."""
    found: np.ndarray = np.divide(values, unit, out=np.zeros(values.shape), where=unit != 0)
    return found
