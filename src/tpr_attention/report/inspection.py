"""What a trained layer of heads does, read from its weights, free of what does not change its function.

The weights of a head are a product, so that its scale and sign may be in any factor, under every action separately.
Here they are in one place.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from tpr_attention.functional.action import read_map, update_map, write_map

__all__ = [
    "CombinedMap",
    "Head",
    "Inspection",
    "Layer",
    "Names",
    "balanced",
    "combined_map",
    "inspect_weights",
    "transfers",
]

WEIGHTS = ("query_map", "id_query", "filler_map", "role_map")
"""The weights that make a layer one of heads."""


class Names(NamedTuple):
    """What actions, objects and roles are called; numbers take the place of names that are not given."""

    actions: Sequence[str] = ()
    objects: Sequence[str] = ()
    roles: Sequence[str] = ()


class Head(NamedTuple):
    """A head of order m: what it reads under each action, from which object, how it maps it, where it writes it."""

    queries: Float[np.ndarray, "m a r"]
    ids: Float[np.ndarray, "m t"]
    filler_map: Float[np.ndarray, "*f f_out"]
    new_role: Float[np.ndarray, "a r_n"]


class CombinedMap(NamedTuple):
    """What all first-order heads do in sum: under action a, from role r of object t to role s.

    Args:
        copied: How much of the filler arrives unchanged; 1 writes it, -1 erases it.
        mixed: How large the rest of the map of fillers is; that of a rotation by a right angle would be 1.
    """

    copied: Float[np.ndarray, "a t r r_n"]
    mixed: Float[np.ndarray, "a t r r_n"]


class Layer(NamedTuple):
    """A layer of heads, and what they do in sum if that is a linear map.

    Args:
        normalised: Whether what a head reads is brought to unit length.
    """

    name: str
    names: Names
    heads: Sequence[Head]
    combined: CombinedMap | None
    normalised: bool = False


class Inspection(NamedTuple):
    """All layers of heads of a model, of which there is at least one."""

    title: str
    layers: Sequence[Layer]


class Transfer(NamedTuple):
    """What all heads bring from a role of an object to a role of the result; see `CombinedMap`."""

    obj: str
    role: str
    new_role: str
    copied: float
    mixed: float


def inspect_weights(
    weights: Mapping[str, np.ndarray], names: Names | None = None, *, title: str = "", normalised: Collection[str] = ()
) -> Inspection | None:
    """Find the layers of heads among weights, by the names of `WEIGHTS`. None if there is no layer, or none is finite.

    Args:
        normalised: The names of layers that bring what they read to unit length, which weights do not tell.

    >>> maps = {"query_map": np.ones((2, 5, 6)), "id_query": np.ones((2, 2)), "role_map": np.ones((2, 5, 6))}
    >>> found = inspect_weights({**maps, "filler_map": np.ones((2, 3, 3))}, Names(objects=["left", "right"]))
    >>> len(found.layers[0].heads), found.layers[0].names.objects, found.layers[0].names.roles[:2]
    (2, ('left', 'right'), ('role 1', 'role 2'))
    """
    prefixes = {name.removesuffix(WEIGHTS[0]) for name in weights if name.split(".")[-1] == WEIGHTS[0]}
    layers = (_layer(prefix, weights, names or Names(), normalised) for prefix in sorted(prefixes, key=_in_order))
    found = [layer for layer in layers if layer]
    return Inspection(title, found) if found else None


def balanced(head: Head) -> Head:
    """The same head with its scale and sign in its first id.

    Under each action, the largest entries of queries and new role are equally large, so that both are small where a
    head does little. Over all actions, the largest is 1, as it is in the filler map and in further ids.

    >>> head = Head(np.full((1, 1, 1), -2.0), np.array([[0.5, 1.0]]), np.full((1, 1), 3.0), np.full((1, 1), 8.0))
    >>> head = balanced(head)
    >>> head.queries.item(), head.ids.tolist(), head.filler_map.item(), head.new_role.item()
    (1.0, [[-24.0, -48.0]], 1.0, 1.0)
    """
    queries, ids, filler_map, new_role = head
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


def combined_map(
    query_map: Float[np.ndarray, "h a r"],
    id_query: Float[np.ndarray, "h t"],
    filler_map: Float[np.ndarray, "h f f"],
    role_map: Float[np.ndarray, "h a r_n"],
) -> CombinedMap:
    """The sum over heads of what is read, mapped and written (App. D).

    B[a, t, r, r_n] = sum_h id_h[t] q_h(a)[r] H_h r_n^h(a)[r_n],  copied = tr(B) / f,  mixed = |B - copied I| / sqrt(f)

    >>> one = np.ones((1, 1, 1))
    >>> combined_map(one, np.ones((1, 1)), np.eye(3)[None], -one).copied.item()
    -1.0
    """
    size = filler_map.shape[-1]
    whole = update_map(read_map(id_query, query_map), write_map(filler_map, role_map))
    blocks = whole.swapaxes(-3, -2)  # role to role, and between them a map of fillers
    copied = np.trace(blocks, axis1=-2, axis2=-1) / size
    rest = blocks - copied[..., None, None] * np.eye(size)
    return CombinedMap(copied, np.linalg.norm(rest, axis=(-2, -1)) / size**0.5)


def transfers(layer: Layer, action: str, *, most: int = 8, least: float = 0.05) -> tuple[list[Transfer], int]:
    """The strongest transfers of a layer under an action, in the order of objects and roles, and how many are left out.

    >>> maps = {"query_map": np.eye(2)[None], "id_query": np.eye(2)[:1], "role_map": np.eye(2)[None]}
    >>> (layer,) = inspect_weights({**maps, "filler_map": np.eye(3)[None]}).layers
    >>> transfers(layer, "action 2")
    ([Transfer(obj='object 1', role='role 2', new_role='role 2', copied=1.0, mixed=0.0)], 0)
    """
    if layer.combined is None:
        return [], 0
    place, names = layer.names.actions.index(action), layer.names
    copied, mixed = layer.combined.copied[place], layer.combined.mixed[place]
    size = np.hypot(copied, mixed)
    order = np.argsort(-size, axis=None, kind="stable")[: np.count_nonzero(size >= least)]
    found = [
        Transfer(names.objects[t], names.roles[r], names.roles[s], float(copied[t, r, s]), float(mixed[t, r, s]))
        for t, r, s in zip(*np.unravel_index(np.sort(order[:most]), size.shape), strict=True)
    ]
    return found, max(0, len(order) - most)


def _in_order(name: str) -> list[tuple[int, str]]:
    """Numbers in names by value: block 10 comes after block 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in name.split(".")]


def _layer(prefix: str, weights: Mapping[str, np.ndarray], names: Names, normalised: Collection[str]) -> Layer | None:
    """The layer whose weights begin with a prefix; None unless all four are there, finite and of the right ranks."""
    maps = [weights[prefix + part].astype(np.float64) for part in WEIGHTS if prefix + part in weights]
    if len(maps) < len(WEIGHTS) or not all(np.isfinite(one).all() for one in maps):
        return None
    queries, ids, filler_map, role_map = maps
    if queries.ndim == 3 and ids.ndim == 2:  # those of first order have no axis for the order
        queries, ids = queries[:, None], ids[:, None]
    if (queries.ndim, ids.ndim, role_map.ndim) != (4, 3, 3) or filler_map.ndim != queries.shape[1] + 2:
        return None
    name = prefix.rstrip(".")
    if name in normalised:  # then the sizes of what is read do not matter
        queries, ids = _ratio(queries, np.abs(_peak(queries))), _ratio(ids, np.abs(_peak(ids)))
    counts = {"action": queries.shape[2], "object": ids.shape[2], "role": queries.shape[3]}
    numbered = [tuple(f"{kind} {place + 1}" for place in range(count)) for kind, count in counts.items()]
    full = (tuple(given) if len(given) == len(other) else other for given, other in zip(names, numbered, strict=True))
    is_linear = filler_map.ndim == 3 and filler_map.shape[1] == filler_map.shape[2] and name not in normalised
    combined = combined_map(queries[:, 0], ids[:, 0], filler_map, role_map) if is_linear else None
    heads = [balanced(Head(*head)) for head in zip(queries, ids, filler_map, role_map, strict=True)]
    return Layer(name, Names(*full), heads, combined, name in normalised)


def _peak(values: np.ndarray) -> np.ndarray:
    """The entry of largest absolute value along the last axis."""
    return np.take_along_axis(values, np.abs(values).argmax(-1, keepdims=True), -1)


def _ratio(values: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """A quotient; zero where the unit is."""
    found: np.ndarray = np.divide(values, unit, out=np.zeros(values.shape), where=unit != 0)
    return found
