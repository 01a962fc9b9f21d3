"""Causal linear attention over a long sequence, in chunks, with a backward that recomputes what it can.

`b` memories are read by `g` queries each at every position. Inside a chunk of c positions the scores are formed; what
came before the chunk is one matrix, the memory. k chunks form a block: the memories at their starts follow from one
matrix product, so that small memories do not cost one small kernel for each chunk.

Only the inputs and the memory at the start of each block are kept for the backward, and for short sequences the
read-out too. The backward is the same machine run from the end: with Q the queries, K and V keys and values, M the
memory before a chunk, S the causal scores, and P the gradient of the read-out Z = Q M + S V,

    T = causal(P V^T)     dQ = P M^T + T K     dK = V G^T + T^T Q     dV = K G + S^T P     G <- G + Q^T P,

where G, the gradient of the memory after the chunk, runs backwards.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import FunctionCtx

__all__ = ["chunk_size", "extract_each", "sweep"]

_KEEP_READOUT = 16  # for sequences up to this many times the width: a fifth of the work, for the memory it takes
_SMALL, _MIDDLE = 32, 256  # widths of the memory up to which the sizes below measured best


def chunk_size(width: int, readers: int) -> int:
    """Positions in a chunk for a memory of this width: large enough for the matrix product, small for the scores."""
    return max(16, 32 // readers) if width <= _SMALL else 64 if width <= _MIDDLE else 128


def _chunks_in_block(width: int) -> int:
    return 128 if width <= _SMALL else 4 if width <= _MIDDLE else 1


def sweep(
    match_role: Float[Tensor, "b t g r"] | None,
    query: Float[Tensor, "b t g d"],
    key: Float[Tensor, "b t p"],
    value: Float[Tensor, "b t v"] | None,
    target_role: Float[Tensor, "b t g r_t"] | None,
    state: Float[Tensor, "b p v"],
    *,
    exclude_self: bool = False,
) -> tuple[Float[Tensor, "b t g f"], Float[Tensor, "b p v"]]:
    """Read every position's memory, the position itself included or not; also return the memory after the last.

    Where `match_role` is given the query is its outer product with `query`, and where `target_role` is given the
    read-out is a role-filler matrix that it contracts: both products are as wide as the memory and are formed a block
    at a time. No `value` means that the key is the value too.
    """
    length, width = key.shape[1], max(state.shape[1:])
    chunk = min(chunk_size(width, query.shape[2]), length)
    padding = -length % chunk
    tensors: tuple[Tensor | None, ...] = (match_role, query, key, value, target_role)
    if padding:
        tensors = tuple(x if x is None else _pad(x, padding) for x in tensors)
    present = [x for x in (*tensors, state) if x is not None]
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in present) and length <= _KEEP_READOUT * width
    block = chunk * _chunks_in_block(width)
    readout, after, *_ = _Sweep.apply(*tensors, state, chunk, block, keep, exclude_self)  # type: ignore[no-untyped-call]
    return readout[:, :length] if padding else readout, after


class _Sweep(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        match_role: Tensor | None,
        query: Tensor,
        key: Tensor,
        value: Tensor | None,
        target_role: Tensor | None,
        state: Tensor,
        chunk: int,
        block: int,
        keep: bool,
        exclude_self: bool,
    ) -> tuple[Tensor, ...]:
        mask = _causal_mask(chunk, query, exclude_self)
        outputs, starts, scores, readouts = [], [], [], []
        for i in range(-(-key.shape[1] // block)):
            at = _block(i, block, key)
            q, (k, v) = _rows(match_role, query, at, chunk), _chunks(key, value, at, chunk)
            starts.append(state)
            before, state = _prefix(k.mT @ v, state)
            s = (q @ k.mT).mul_(mask)
            z = torch.baddbmm(q @ before, s, v).reshape(state.shape[0], -1, query.shape[2], state.shape[2])
            outputs.append(z if target_role is None else extract_each(z, target_role.narrow(1, *at)))
            if keep:
                scores.append(s)
                readouts.append(z)
        return torch.cat(outputs, 1), state, *starts[1:], *scores, *readouts

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.chunk, ctx.block, ctx.keep, ctx.exclude_self = inputs
        ctx.save_for_backward(*tensors, *output[2:])
        kept = output[2:] if _depends_on_the_past(ctx) else output[1:]
        ctx.mark_non_differentiable(*kept)
        if isinstance(ctx, FunctionCtx):  # else it stands for one under vmap, to which torch 2.6 cannot pass None
            ctx.set_materialize_grads(False)  # zeros for what is kept would cost as much as keeping it

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        match_role, query, key, value, target_role, *kept = ctx.saved_tensors
        chunk, keep = ctx.chunk, ctx.keep
        blocks = -(-key.shape[1] // ctx.block)
        if torch.is_grad_enabled():  # for second derivatives, what was kept has to depend on the inputs again
            keep, kept = False, kept[:1]
            for i in range(blocks - 1):
                k, v = _chunks(key, value, _block(i, ctx.block, key), chunk)
                kept.append(_prefix(k.mT @ v, kept[-1])[1])
        d_output, d_state = gradients[:2]
        if d_output is None:
            d_output = query.new_zeros(*query.shape[:3], _filler_dim(kept[0], target_role))
        if d_state is None:
            d_state = torch.zeros_like(kept[0])
        mask = _causal_mask(chunk, query, ctx.exclude_self)
        found: tuple[list[Tensor | None], ...] = ([], [], [], [], [])
        for i in reversed(range(blocks)):
            at = _block(i, ctx.block, key)
            q, (k, v) = _rows(match_role, query, at, chunk), _chunks(key, value, at, chunk)
            before, _ = _prefix(k.mT @ v, kept[i])
            d_z = _rows(target_role, d_output, at, chunk)
            s = kept[blocks + i] if keep else (q @ k.mT).mul_(mask)
            d_s = (d_z @ v.mT).mul_(mask)
            d_key = d_value = d_match = d_target = None
            if _depends_on_the_past(ctx):
                after, d_state = _suffix(q.mT @ d_z, d_state)
                if value is None:
                    d_key = torch.baddbmm(torch.baddbmm(k @ (after + after.mT), d_s.mT, q), s.mT, d_z)
                else:
                    d_key = torch.baddbmm(v @ after.mT, d_s.mT, q)
                    d_value = torch.baddbmm(k @ after, s.mT, d_z).reshape(key.shape[0], -1, value.shape[2])
                d_key = d_key.reshape(key.shape[0], -1, key.shape[2])
            if target_role is not None:
                z = kept[2 * blocks + i] if keep else torch.baddbmm(q @ before, s, v)
                role = target_role.narrow(1, *at)
                d_target = _match_each(z.reshape(*role.shape, -1), d_output.narrow(1, *at))
            vectors = query.narrow(1, *at)
            d_query = torch.baddbmm(d_z @ before.mT, d_s, k)
            if match_role is None:
                d_query = d_query.reshape(vectors.shape)
            else:
                role = match_role.narrow(1, *at)
                d_query = d_query.reshape(*role.shape, -1)
                d_match, d_query = _match_each(d_query, vectors), extract_each(d_query, role)
            parts = d_match, d_query, d_key, d_value, d_target
            for gradient, part in zip(found, parts, strict=True):
                gradient.append(part)
        return (*map(_joined, found), d_state, None, None, None, None)


def _joined(blocks: list[Tensor | None]) -> Tensor | None:
    """The blocks, found from last to first, as one tensor; lets go of them, so that only one gradient exists twice."""
    present = [block for block in reversed(blocks) if block is not None]
    blocks.clear()
    return torch.cat(present, 1) if present else None


def _depends_on_the_past(ctx: Any) -> bool:
    """Whether keys, values or the state have a gradient: where objects are data, only the queries do."""
    needed = ctx.needs_input_grad
    return bool(needed[2] or needed[3] or needed[5])


def _pad(x: Tensor, padding: int) -> Tensor:
    return torch.cat([x, x.new_zeros(x.shape[0], padding, *x.shape[2:])], 1)


def _filler_dim(state: Tensor, target_role: Tensor | None) -> int:
    return state.shape[2] // (1 if target_role is None else target_role.shape[3])


def _causal_mask(length: int, query: Tensor, exclude_self: bool) -> Tensor:
    """1 where a row's position may see a column's, for rows `(t g)`, g being the query's third axis."""
    mask = torch.ones(length, length, dtype=query.dtype, device=query.device).tril(-int(exclude_self))
    return mask.unsqueeze(1).expand(-1, query.shape[2], -1).reshape(-1, length)


def _block(number: int, size: int, key: Tensor) -> tuple[int, int]:
    """First position and length of a block."""
    return number * size, min(size, key.shape[1] - number * size)


def _rows(role: Tensor | None, vector: Tensor, at: tuple[int, int], chunk: int) -> Tensor:
    """Rows `[(b k) (c g) p]` of a block: the vectors, or their outer products with the roles."""
    vector = vector.narrow(1, *at)
    if role is not None:
        vector = role.narrow(1, *at).unsqueeze(-1) * vector.unsqueeze(-2)
    return vector.reshape(-1, chunk * vector.shape[2], vector.shape[3:].numel())


def _chunks(key: Tensor, value: Tensor | None, at: tuple[int, int], chunk: int) -> tuple[Tensor, Tensor]:
    """Keys and values of a block, `[(b k) c p]` and `[(b k) c v]`."""
    k = key.narrow(1, *at).reshape(-1, chunk, key.shape[2])
    return k, k if value is None else value.narrow(1, *at).reshape(-1, chunk, value.shape[2])


def _prefix(updates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The memory before each chunk `[(b k) p v]`, and after the last `[b p v]`."""
    chunks = updates.shape[0] // state.shape[0]
    if chunks == 1:
        return state, state + updates
    sums = torch.ones(chunks + 1, chunks, dtype=state.dtype, device=state.device).tril(-1) @ updates.reshape(
        state.shape[0], chunks, -1
    )
    states = sums.reshape(state.shape[0], chunks + 1, *state.shape[1:]) + state.unsqueeze(1)
    # a copy of the last: a view of it, kept for the backward, would keep all of them
    return states[:, :-1].reshape(updates.shape), states[:, -1].clone()


def _suffix(updates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The same from the end: what stands after each chunk, and before the first."""
    if updates.shape[0] == state.shape[0]:
        return state, state + updates
    by_memory = updates.reshape(state.shape[0], -1, *state.shape[1:])
    after, first = _prefix(by_memory.flip(1).reshape(updates.shape), state)
    return after.reshape(by_memory.shape).flip(1).reshape(updates.shape), first


def extract_each(objects: Tensor, role: Tensor) -> Tensor:
    """r^T O, for objects with role and filler in one axis or in two."""
    objects = objects.reshape(*role.shape, -1)
    if objects.shape[-2:].numel() <= _SMALL:
        return (role.unsqueeze(-2) @ objects).squeeze(-2)
    return (objects * role.unsqueeze(-1)).sum(-2)


def _match_each(objects: Tensor, filler: Tensor) -> Tensor:
    """O f."""
    if objects.shape[-2:].numel() <= _SMALL:
        return (objects @ filler.unsqueeze(-1)).squeeze(-1)
    return (objects * filler.unsqueeze(-2)).sum(-1)
