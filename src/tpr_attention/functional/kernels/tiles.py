"""Causal attention to one memory by rank-one queries, in tiles that stay in the processor's cache.

The same function as `sweep` and its gradients, for the common case: one match, roles at every position. Nothing in here
is differentiated or traced, so memory is used again; see `tiled_sweep` for where it may be called.

A short sequence is read by scores alone, in panels of positions that see only what came before them: half of the
products of a square. A long one is read in chunks with a memory between them, a few chunks to a tile. With Q the
queries, K and V keys and values, M the memory before a chunk, S the causal scores, and P the gradient of the read-out
Z = Q M + S V,

    T = causal(P V^T)     dQ = P M^T + T K     dK = V G^T + T^T Q     dV = K G + S^T P     G <- G + Q^T P.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tpr_attention.functional.kernels.workspace import Room

__all__ = ["Asked", "Kept", "read_tiles", "tile_gradients"]

_TILE = 2**17  # numbers in the queries of a tile: half of a cache of 1 MB


class Asked(NamedTuple):
    """The inputs, or their gradients: b sequences of t positions, read by g queries at each."""

    match_role: Tensor  # [b t g r]
    match_filler: Tensor  # [b t g f]
    key: Tensor  # [b t p]
    value: Tensor | None  # [b t v]; None: the key
    target_role: Tensor  # [b t g r]
    state: Tensor | None  # [b p v]; None: an empty memory

    def values(self) -> Tensor:
        return self.key if self.value is None else self.value

    def of(self, sequences: slice) -> "Asked":
        return Asked(*(None if x is None else x[sequences] for x in self))  # type: ignore[arg-type]


class Kept(NamedTuple):
    """What the forward keeps for the backward: scores and read-outs where they are worth their memory."""

    readouts: Tensor | None  # [b t g v]
    scores: list[Tensor]  # of each tile
    memories: list[Tensor]  # before each tile, or where the others are kept before and after each of its chunks


def read_tiles(asked: Asked, *, by_scores: bool, exclude_self: bool, keep: bool) -> tuple[Tensor, Tensor | None, Kept]:
    """The extracted fillers `[b t g f]`, the memory after the last object if there is one, and what is kept."""
    room = Room(asked.key, asked.match_role.shape[2], exclude_self)
    fillers = torch.empty_like(asked.match_filler)
    every, width = asked.match_role.shape[:3], asked.values().shape[2]
    kept = Kept(asked.key.new_empty(*every, width) if keep else None, [], [])
    if by_scores:
        for those in _groups(asked):
            part = asked.of(those)
            for panel in _panels(part.key):
                query = room.outer("query", part.match_role[:, panel], part.match_filler[:, panel], _length(panel))
                scores = _panel_scores(part, query, panel, room, f"scores {len(kept.scores) * keep}")
                readout = _place(kept.readouts, those, panel, room, scores, width)
                torch.bmm(scores, part.values()[:, : panel.stop], out=readout)
                _extract(readout, part.target_role[:, panel], fillers[those, panel], room)
                if keep:
                    kept.scores.append(scores)
        return fillers, None, kept
    afters = []
    tiles = list(_tiles(asked))
    for i in range(asked.key.shape[0]):
        those = slice(i, i + 1)
        part = asked.of(those)
        memory = _start(part)
        for at, chunk in tiles:
            memories = _memories(part, at, chunk, memory, room, keep=keep)
            kept.memories.append(memories if keep else memory)
            before, memory = memories[:-1], memories[-1:] if keep else memories[-1:].clone()
            query = room.outer("query", part.match_role[:, at], part.match_filler[:, at], chunk)
            key, value = _chunks(part, at, chunk)
            scores = room.bmm(f"scores {len(kept.scores) * keep}", query, key.mT).mul_(room.mask(chunk))
            readout = _place(kept.readouts, those, at, room, scores, width)
            torch.bmm(query, before, out=readout).baddbmm_(scores, value)
            _extract(readout, part.target_role[:, at], fillers[those, at], room)
            if keep:
                kept.scores.append(scores)
        afters.append(memory)
    return fillers, torch.cat(afters), kept


def tile_gradients(
    asked: Asked, d_fillers: Tensor, d_after: Tensor | None, kept: Kept, *, exclude_self: bool, past: bool
) -> Asked:
    """Gradients of all inputs; those of keys, values and the state only if `past`."""
    room = Room(asked.key, asked.match_role.shape[2], exclude_self)
    found = Asked(*(None if x is None else torch.empty_like(x) for x in asked))  # type: ignore[arg-type]
    if not kept.memories:
        number = 0
        for those in _groups(asked):
            part, grads = asked.of(those), found.of(those)
            panels = list(_panels(part.key))
            for j in reversed(range(len(panels))):  # the last sees all objects, and its gradients need no zeros
                scores = kept.scores[number + j] if kept.scores else None
                readout = None if kept.readouts is None else kept.readouts[those, panels[j]]
                _panel_gradients(part, grads, d_fillers[those], panels[j], scores, readout, room, past)
            number += len(panels)
        return found
    tiles = list(_tiles(asked))
    for i in range(asked.key.shape[0]):
        those = slice(i, i + 1)
        part, grads = asked.of(those), found.of(those)
        d_memory = torch.zeros_like(kept.memories[0][:1]) if d_after is None else d_after[those]
        for j in reversed(range(len(tiles))):
            number = i * len(tiles) + j
            scores = kept.scores[number] if kept.scores else None
            readout = None if kept.readouts is None else kept.readouts[those, tiles[j][0]]
            memories = kept.memories[number]
            d_memory = _tile_gradients(
                part, grads, d_fillers[those], d_memory, *tiles[j], memories, scores, readout, room, past
            )
        if grads.state is not None:
            grads.state.copy_(d_memory)
    return found


def _tile_gradients(
    part: Asked,
    grads: Asked,
    d_fillers: Tensor,
    d_memory: Tensor,
    at: slice,
    chunk: int,
    memories: Tensor,
    scores: Tensor | None,
    readout: Tensor | None,
    room: Room,
    past: bool,
) -> Tensor:
    query = room.outer("query", part.match_role[:, at], part.match_filler[:, at], chunk)
    d_readout = room.outer("d_readout", part.target_role[:, at], d_fillers[:, at], chunk)
    key, value = _chunks(part, at, chunk)
    if len(memories) == 1:
        memories = _memories(part, at, chunk, memories, room, keep=False)
    before = memories[:-1]
    if scores is None:
        scores = room.bmm("scores", query, key.mT).mul_(room.mask(chunk))
    if readout is None:
        readout = room.bmm("readout", query, before).baddbmm_(scores, value)
    d_scores = room.bmm("d_scores", d_readout, value.mT).mul_(room.mask(chunk))
    if past:
        after, d_memory = _suffix(query, d_readout, d_memory, room)
        of_key = room.bmm("of_key", value, after.mT).baddbmm_(d_scores.mT, query)
        of_value = of_key.baddbmm_(key, after) if part.value is None else room.bmm("of_value", key, after)
        of_value.baddbmm_(scores.mT, d_readout)
        grads.key[:, at] = of_key.view(1, -1, key.shape[2])
        if grads.value is not None:
            grads.value[:, at] = of_value.view(1, -1, value.shape[2])
    d_query = room.bmm("d_query", d_readout, before.mT).baddbmm_(d_scores, key)
    _rank_one_gradients(part, grads, d_fillers, at, d_query, readout, room)
    return d_memory


def _panel_scores(part: Asked, query: Tensor, panel: slice, room: Room, name: str) -> Tensor:
    scores = room.bmm(name, query, part.key[:, : panel.stop].mT)
    scores[..., panel].mul_(room.mask(_length(panel)))
    return scores


def _panel_gradients(
    part: Asked,
    grads: Asked,
    d_fillers: Tensor,
    panel: slice,
    scores: Tensor | None,
    readout: Tensor | None,
    room: Room,
    past: bool,
) -> None:
    seen = slice(panel.stop)
    query = room.outer("query", part.match_role[:, panel], part.match_filler[:, panel], _length(panel))
    d_readout = room.outer("d_readout", part.target_role[:, panel], d_fillers[:, panel], _length(panel))
    key, value = part.key[:, seen], part.values()[:, seen]
    if scores is None:
        scores = _panel_scores(part, query, panel, room, "scores")
    if readout is None:
        readout = room.bmm("readout", scores, value)
    d_scores = room.bmm("d_scores", d_readout, value.mT)
    d_scores[..., panel].mul_(room.mask(_length(panel)))
    if past:
        of_key = room.bmm("of_key", d_scores.mT, query)
        if part.value is None:
            of_key.baddbmm_(scores.mT, d_readout)
        of_value = of_key if part.value is None else room.bmm("of_value", scores.mT, d_readout)
        for gradient, of_panel in ((grads.key, of_key), (grads.value, of_value)):
            if gradient is None:
                continue
            if panel.stop == gradient.shape[1]:
                gradient.copy_(of_panel)
            else:
                gradient[:, seen].add_(of_panel)
    _rank_one_gradients(part, grads, d_fillers, panel, room.bmm("d_query", d_scores, key), readout, room)


def _rank_one_gradients(
    part: Asked, grads: Asked, d_fillers: Tensor, at: slice, d_query: Tensor, readout: Tensor, room: Room
) -> None:
    """From the gradient of the outer products to those of their factors, and from the read-outs to target roles."""
    role, filler = part.match_role[:, at], part.match_filler[:, at]
    d_query, readout = d_query.view(*role.shape, -1), readout.reshape(*role.shape, -1)
    room.contract(d_query, filler.unsqueeze(-2), -1, grads.match_role[:, at])
    room.contract(d_query, role.unsqueeze(-1), -2, grads.match_filler[:, at])
    room.contract(readout, d_fillers[:, at].unsqueeze(-2), -1, grads.target_role[:, at])


def _extract(readout: Tensor, role: Tensor, found: Tensor, room: Room) -> None:
    room.contract(readout.view(*role.shape, -1), role.unsqueeze(-1), -2, found)


def _place(kept: Tensor | None, those: slice, at: slice, room: Room, scores: Tensor, width: int) -> Tensor:
    """Where the read-outs of a tile go, with the rows of its scores."""
    if kept is None:
        return room("readout", *scores.shape[:2], width)
    return kept[those, at].view(*scores.shape[:2], width)


def _length(at: slice) -> int:
    return int(at.stop - at.start)


def _groups(asked: Asked) -> Iterator[slice]:
    """So many short sequences that a panel of them fills a tile."""
    b, t, g = asked.match_role.shape[:3]
    many = max(1, _TILE // (min(_panel(t), t) * g * asked.key.shape[2]))
    return (slice(i, min(i + many, b)) for i in range(0, b, many))


def _panel(length: int) -> int:
    return 32 if length <= 128 else 64


def _chunk(width: int) -> int:
    return 32 if width <= 256 else 64


def _panels(key: Tensor) -> Iterator[slice]:
    length = key.shape[1]
    size = _panel(length)
    return (slice(i, min(i + size, length)) for i in range(0, length, size))


def _tiles(asked: Asked) -> Iterator[tuple[slice, int]]:
    """Positions of each tile, and of each of its chunks; the last may be one short chunk."""
    length, width = asked.key.shape[1:]
    chunk = _chunk(width)
    size = chunk * max(1, _TILE // (chunk * asked.match_role.shape[2] * width))
    whole = length - length % chunk
    for i in range(0, whole, size):
        yield slice(i, min(i + size, whole)), chunk
    if whole < length:
        yield slice(whole, length), length - whole


def _start(part: Asked) -> Tensor:
    if part.state is not None:
        return part.state
    return part.key.new_zeros(1, part.key.shape[2], part.values().shape[2])


def _chunks(part: Asked, at: slice, chunk: int) -> tuple[Tensor, Tensor]:
    key = part.key[:, at].reshape(-1, chunk, part.key.shape[2])
    return key, key if part.value is None else part.value[:, at].reshape(-1, chunk, part.value.shape[2])


def _memories(part: Asked, at: slice, chunk: int, start: Tensor, room: Room, *, keep: bool) -> Tensor:
    """The memory before each chunk of a tile, and after the last."""
    key, value = _chunks(part, at, chunk)
    shape = (key.shape[0] + 1, *start.shape[1:])
    memories = start.new_empty(shape) if keep else room("memories", *shape)
    memories[:1] = start
    torch.bmm(key.mT, value, out=memories[1:])
    for i in range(key.shape[0]):
        memories[i + 1].add_(memories[i])
    return memories


def _suffix(query: Tensor, d_readout: Tensor, after: Tensor, room: Room) -> tuple[Tensor, Tensor]:
    """The gradient of the memory after each chunk, and before the first."""
    d_memories = room("d_memories", query.shape[0] + 1, *after.shape[1:])
    d_memories[-1:] = after
    torch.bmm(query.mT, d_readout, out=d_memories[:-1])
    for i in reversed(range(query.shape[0])):
        d_memories[i].add_(d_memories[i + 1])
    return d_memories[1:], d_memories[:1]
