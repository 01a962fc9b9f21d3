"""The forms of `recall`: the same numbers by scores of all pairs, by chunks, or by one object after another."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tpr_attention.functional.kernels.sweep import chunk_size, extract_each, sweep
from tpr_attention.functional.kernels.tiled_sweep import can_tile, tiled_sweep
from tpr_attention.functional.kernels.tiles import Asked
from tpr_attention.functional.layout import Reading
from tpr_attention.functional.monomials import key_features, query_features

__all__ = ["FORMS", "cheapest", "cheapest_read", "memory_after", "read_memory", "read_objects"]

_SWEEP_OVERHEAD = 5_000_000  # multiplications in the time that the chunked form's kernel launches take
_TILED, _TILED_LENGTH = 512, 32  # queries and positions from which tiles pay
_PASS = 16  # multiplications in a matrix product in the time of one in a pass over memory


def _parallel(reading: Reading, causal: bool, exclude_self: bool, final_state: bool) -> tuple[Tensor, Tensor | None]:
    length = reading.key.shape[1]
    if causal and reading.state is None and (asked := _tiled(reading)) and _many(reading):
        fillers, _ = tiled_sweep(asked, by_scores=True, exclude_self=exclude_self)
        return fillers, memory_after(reading) if final_state else None
    visible = None
    if causal or exclude_self:
        visible = torch.ones(length, length, dtype=reading.key.dtype, device=reading.key.device)
        visible = visible.tril(-int(exclude_self)) if causal else visible.fill_diagonal_(0)
    return read_objects(reading, visible), memory_after(reading) if final_state else None


def read_objects(reading: Reading, visible: Tensor | None) -> Tensor:
    """Every query's extracted filler, by the scores of all pairs; where `visible [b? q s]` is zero they are."""
    memories, length, readers, _, filler_dim = reading.match_filler.shape
    stored, rows = reading.key.shape[1], length * readers
    if visible is not None:
        visible = visible.unsqueeze(-2).expand(*visible.shape[:-1], readers, stored).flatten(-3, -2)
    if reading.match_role is not None and reading.state is None and stored < filler_dim:
        return _read_few(reading, visible)
    queries = reading.queries()
    keys = [*_each(reading.key, 2)] * (reading.num_matches() if reading.shared_key() else 1)
    asked = [queries.reshape(memories, rows, -1)] if len(keys) == 1 else [x.flatten(1, 2) for x in queries.unbind(3)]
    scores = _product([query @ key.mT for query, key in zip(asked, keys, strict=True)])
    values = keys[0] if reading.value is None else reading.value
    readout = (scores if visible is None else scores.mul_(visible)) @ values  # in place: nothing else needs them
    if reading.state is not None:
        features = query_features(queries, shared_key=reading.shared_key())
        readout = readout + features.reshape(memories, rows, -1) @ reading.state
    if reading.target_role is None:
        return readout.reshape(memories, length, readers, -1)
    return extract_each(readout, reading.target_role)


def _read_few(reading: Reading, visible: Tensor | None) -> Tensor:
    """Filler first, role second: cheaper while s r < r f, when a score costs less to store than a query."""
    memories, length, readers, _, filler_dim = reading.match_filler.shape
    assert reading.match_role is not None
    assert reading.target_role is not None
    roles, stored, rows = reading.target_role.shape[3], reading.key.shape[1], length * readers
    held = reading.key.reshape(memories, stored * roles, filler_dim)
    factors = []
    for role, filler in zip(_each(reading.match_role, 3), _each(reading.match_filler, 3), strict=True):
        met = filler.reshape(memories, rows, filler_dim) @ held.mT
        factors.append((met.reshape(memories, rows, stored, roles) * role.reshape(memories, rows, 1, roles)).sum(-1))
    scores = _product(factors)
    if visible is not None:
        scores = scores * visible
    weights = scores.unsqueeze(-1) * reading.target_role.reshape(memories, rows, 1, roles)
    fillers = weights.reshape(memories, rows, stored * roles) @ reading.values().reshape(held.shape)
    return fillers.reshape(memories, length, readers, filler_dim)


def _chunked(reading: Reading, causal: bool, exclude_self: bool, final_state: bool) -> tuple[Tensor, Tensor | None]:
    if not causal:
        memory = memory_after(reading)
        return read_memory(reading, memory, without_own=exclude_self), memory
    if asked := _tiled(reading):
        return tiled_sweep(asked, by_scores=False, exclude_self=exclude_self)
    match_role, query, key, value = reading.match_role, reading.match_filler, reading.key, reading.value
    if reading.num_matches() == 1:
        match_role = None if match_role is None else match_role.squeeze(3)
        query, key = query.squeeze(3), key.squeeze(2)
    else:
        query = query_features(reading.queries(), shared_key=reading.shared_key())
        match_role, key, value = None, key_features(key, reading.num_matches()), reading.values()
    return sweep(match_role, query, key, value, reading.target_role, reading.start(), exclude_self=exclude_self)


def _many(reading: Reading) -> bool:
    memories, length, readers = reading.match_filler.shape[:3]
    return memories * length * readers >= _TILED and length >= _TILED_LENGTH


def _tiled(reading: Reading) -> Asked | None:
    """What is computed in tiles: one match of roles at each position."""
    match_role, query, key, value, target_role, state = reading
    if match_role is None or target_role is None or reading.num_matches() > 1 or not can_tile(key):
        return None
    return Asked(match_role.squeeze(3), query.squeeze(3), key.squeeze(2), value, target_role, state)


def _recurrent(reading: Reading, causal: bool, exclude_self: bool, final_state: bool) -> tuple[Tensor, Tensor | None]:
    keys, values = key_features(reading.key, reading.num_matches()), reading.values()
    memory = reading.start()
    readouts = []
    for t in range(keys.shape[1]):
        before, memory = memory, memory + keys[:, t].unsqueeze(-1) * values[:, t].unsqueeze(-2)
        if causal:
            readouts.append(read_memory(_at(reading, t), before if exclude_self else memory))
    if causal:
        return torch.cat(readouts, 1), memory
    return read_memory(reading, memory, without_own=exclude_self), memory


FORMS: dict[str, Callable[[Reading, bool, bool, bool], tuple[Tensor, Tensor | None]]] = {
    "parallel": _parallel,
    "chunked": _chunked,
    "recurrent": _recurrent,
}


def cheapest(reading: Reading, causal: bool, final_state: bool) -> str:
    """The form that should take less time, in units of multiplications."""
    memories, length, readers, matches, _ = reading.match_filler.shape
    value = reading.values().shape[2]
    memory = reading.num_features() * value
    parallel = _score_work(reading)
    if causal and _many(reading) and _tiled(reading):
        parallel = parallel * (length + 64) // (2 * length)  # panels of positions see only what came before them
    parallel += memories * length * memory * (final_state + (reading.state is not None) * readers)
    if parallel <= _SWEEP_OVERHEAD:
        return "parallel"
    chunked = memories * length * (1 + readers) * memory
    if causal:
        chunk = min(length, chunk_size(max(reading.num_features(), value), readers))
        chunked += memories * length * readers * chunk * (reading.num_features() + value)
        chunked += _SWEEP_OVERHEAD
    if matches > 1:
        chunked += memories * length * readers * reading.num_features() * matches * 2 ** (matches - 1) * _PASS
    return "parallel" if parallel <= chunked else "chunked"


def cheapest_read(reading: Reading) -> str:
    """The same for a reading whose queries are not at the positions of the objects."""
    memories, length, readers, matches, _ = reading.match_filler.shape
    memory = reading.num_features() * reading.values().shape[2]
    first = memories * (length * readers + reading.key.shape[1]) * memory
    if matches > 1:
        first += memories * length * readers * reading.num_features() * matches * 2 ** (matches - 1) * _PASS
    return "parallel" if _score_work(reading) <= first else "chunked"


def _score_work(reading: Reading) -> int:
    memories, length, readers, matches, _ = reading.match_filler.shape
    return (
        memories
        * length
        * readers
        * reading.key.shape[1]
        * (matches * reading.key.shape[3] + reading.values().shape[2])
    )


def memory_after(reading: Reading) -> Tensor:
    """The memory once all objects are in it."""
    memory = key_features(reading.key, reading.num_matches()).mT @ reading.values()
    return memory if reading.state is None else reading.state + memory


def read_memory(reading: Reading, memory: Tensor, *, without_own: bool = False) -> Tensor:
    """Every query's extracted filler from one memory, or from that memory without the object at its own position."""
    queries = reading.queries()
    features = query_features(queries, shared_key=reading.shared_key())
    readout = (features.flatten(1, 2) @ memory).reshape(*features.shape[:3], -1)
    if without_own:
        scores = _product((queries * reading.key.unsqueeze(2)).sum(-1).unbind(-1))
        readout = readout - scores.unsqueeze(-1) * reading.values().unsqueeze(2)
    return _extract(readout, reading)


def _at(reading: Reading, t: int) -> Reading:
    """The queries of one position."""
    here = slice(t, t + 1)
    return reading._replace(
        match_role=None if reading.match_role is None else reading.match_role[:, here],
        match_filler=reading.match_filler[:, here],
        target_role=None if reading.target_role is None else reading.target_role[:, here],
    )


def _each(x: Tensor, axis: int) -> Sequence[Tensor]:
    """The slices along an axis, without the cost of slicing where there is only one."""
    return (x.squeeze(axis),) if x.shape[axis] == 1 else x.unbind(axis)


def _product(factors: Sequence[Tensor]) -> Tensor:
    product, *others = factors
    for other in others:
        product = product * other
    return product


def _extract(readout: Tensor, reading: Reading) -> Tensor:
    return readout if reading.target_role is None else extract_each(readout, reading.target_role)
