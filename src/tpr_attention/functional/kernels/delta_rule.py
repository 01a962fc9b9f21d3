r"""The delta rule over a long sequence, in chunks, with a backward that recomputes what it can.

In a chunk of c objects that starts from the memory M, with K, V and Q its keys, values and queries, G the Gram matrix
of the keys and B the gates,

    U = (I + B tril(G, -1))^-1 B (V - K M)        Z = Q M + causal(Q K^T) U        M <- M + K^T U

G and Q K^T are Hadamard products over the matches, so that only what meets M has f^m features. The backward keeps the
inputs, U, and the inverse and the first memory of each chunk. It runs the same recurrence from the end: with P the
gradient of Z and D that of the memory after the chunk,

    X = (I + B tril(G, -1))^-T (causal(Q K^T)^T P + K D)        D <- D + Q^T P - K^T B X.

Only M and D need a loop over chunks. For narrow keys it is one small matrix product a chunk.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import FunctionCtx

from tpr_attention.functional.monomials import key_features

__all__ = ["chunk_size", "chunked_delta", "features"]

_SMALL = 32  # widest key of which a chunk's whole transition, a square matrix, is cheaper than its factors
_STRETCH = 2**18  # features of objects that are computed at once: what is known of them should fit into a cache


def chunk_size(width: int) -> int:
    """Objects in a chunk, for keys with so many features."""
    return 16 if width <= _SMALL else 32


def chunked_delta(
    query: Float[Tensor, "b t m f"],
    key: Float[Tensor, "b t m f"],
    value: Float[Tensor, "b t v"],
    gate: Float[Tensor, "b t 1"],
    memory: Float[Tensor, "b p v"],
    exclude_self: bool,
) -> tuple[Float[Tensor, "b t v"], Float[Tensor, "b p v"]]:
    """Read every position's memory, after its own write or before; also return the memory after the last."""
    length = key.shape[1]
    chunk = min(chunk_size(memory.shape[1]), length)
    padding = -length % chunk
    tensors = [query, key, value, gate]
    if padding:
        tensors = [torch.cat([x, x.new_zeros(x.shape[0], padding, *x.shape[2:])], 1) for x in tensors]
    stretch = chunk * max(1, _STRETCH // (chunk * key.shape[0] * (memory.shape[1] + memory.shape[2])))
    found = []
    for part in zip(*(torch.split(x, stretch, 1) for x in tensors), strict=True):
        fillers, memory, *_ = _Delta.apply(*part, memory, chunk, exclude_self)  # type: ignore[no-untyped-call]
        found.append(fillers)
    fillers = torch.cat(found, 1) if len(found) > 1 else found[0]
    return fillers[:, :length] if padding else fillers, memory


class _Delta(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        query: Tensor, key: Tensor, value: Tensor, gate: Tensor, memory: Tensor, chunk: int, exclude_self: bool
    ) -> tuple[Tensor, ...]:
        q, k, v, g = _in_chunks(chunk, query, key, value, gate)
        inverse = _inverse(_scores(k, k), g)
        keys = features(k)
        starts, after, u = _memories(inverse, keys, v, g, memory)
        scores = _scores(q, k).mul_(_mask(chunk, exclude_self, q))
        z = torch.baddbmm(features(q) @ starts, scores, u)
        return z.reshape(value.shape), after, inverse, starts, u

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.chunk, ctx.exclude_self = inputs
        ctx.save_for_backward(*tensors, *output[2:])
        ctx.mark_non_differentiable(*output[2:])
        if isinstance(ctx, FunctionCtx):  # else it stands for one under vmap, to which torch 2.6 cannot pass None
            ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        query, key, value, gate, memory, inverse, starts, u = ctx.saved_tensors
        q, k, v, g = _in_chunks(ctx.chunk, query, key, value, gate)
        d_output, d_memory = gradients[:2]
        d_z = torch.zeros_like(v) if d_output is None else d_output.reshape(v.shape)
        if d_memory is None:
            d_memory = torch.zeros_like(memory)
        queries, keys = features(q), features(k)
        if torch.is_grad_enabled():  # for second derivatives, what was kept has to depend on the inputs again
            inverse = _inverse(_scores(k, k), g)
            starts, _, u = _memories(inverse, keys, v, g, memory)
        seen, before = _mask(ctx.chunk, ctx.exclude_self, q), _mask(ctx.chunk, True, q)
        d_u = _scores(q, k).mul_(seen).mT @ d_z
        ends, d_memory = _memory_gradients(inverse, queries, keys, g, d_z, d_u, d_memory)
        x = inverse.mT @ torch.baddbmm(d_u, keys, ends)
        d_value = g * x
        d_scores, d_gram = (d_z @ u.mT).mul_(seen), (d_value @ u.mT).mul_(-before)
        of_queries = _pull_back(d_z @ starts.mT, q)
        of_keys = _pull_back(torch.baddbmm(u @ ends.mT, d_value, starts.mT, alpha=-1), k)
        d_query, d_key = _through_scores(of_queries, of_keys, q, k, d_scores, d_gram)
        d_gate = None
        if ctx.needs_input_grad[3]:
            error = torch.baddbmm(v, keys, starts, alpha=-1)
            error = torch.baddbmm(error, _scores(k, k).mul_(before), u, alpha=-1)
            d_gate = (x * error).sum(-1).reshape(gate.shape)
        return (
            d_query.reshape(query.shape),
            d_key.reshape(key.shape),
            d_value.reshape(value.shape),
            d_gate,
            d_memory,
            None,
            None,
        )


def _in_chunks(chunk: int, *tensors: Tensor) -> list[Tensor]:
    """`[b t ...]` as `[(b n) c ...]`."""
    return [x.reshape(-1, chunk, *x.shape[2:]) for x in tensors]


def _mask(length: int, exclude_self: bool, like: Tensor) -> Tensor:
    """1 where a row's position may see a column's."""
    return torch.ones(length, length, dtype=like.dtype, device=like.device).tril(-int(exclude_self))


def features(vectors: Float[Tensor, "b t m f"]) -> Float[Tensor, "b t p"]:
    """The outer product of the vectors of all matches."""
    return vectors.squeeze(2) if vectors.shape[2] == 1 else key_features(vectors, vectors.shape[2])


def _scores(query: Float[Tensor, "b t m f"], key: Float[Tensor, "b t m f"]) -> Float[Tensor, "b t t"]:
    """The inner products of the outer products, without forming these."""
    return _product(_factors(query, key))


def _factors(query: Tensor, key: Tensor) -> list[Tensor]:
    return [q @ k.mT for q, k in zip(query.unbind(2), key.unbind(2), strict=True)]


def _product(factors: Sequence[Tensor]) -> Tensor:
    product, *others = factors
    for other in others:
        product = product * other
    return product


def _inverse(gram: Float[Tensor, "b t t"], gate: Float[Tensor, "b t 1"]) -> Float[Tensor, "b t t"]:
    """(I + B tril(G, -1))^-1, by substitution, which does not amplify rounding as powers of G would."""
    one = torch.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
    # of a unitriangular matrix only what is below the diagonal is read
    inverse: Tensor = torch.linalg.solve_triangular(gate * gram, one.expand_as(gram), upper=False, unitriangular=True)
    return inverse


def _memories(
    inverse: Tensor, keys: Tensor, value: Tensor, gate: Tensor, memory: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The memory before each chunk, that after the last `[b p v]`, and what each object adds under its key."""
    starts, added = [], []
    if keys.shape[2] <= _SMALL:
        of_keys, of_values = inverse @ (gate * keys), inverse @ (gate * value)
        moves, news = _by_chunk(_transition(keys, of_keys), memory), _by_chunk(keys.mT @ of_values, memory)
        for move, new in zip(moves, news, strict=True):
            starts.append(memory)
            memory = torch.baddbmm(new, move, memory)
        before = _by_memory(starts)
        return before, memory, torch.baddbmm(of_values, of_keys, before, alpha=-1)
    weights = inverse * gate.mT
    for w, k, v in zip(*(_by_chunk(x, memory) for x in (weights, keys, value)), strict=True):
        starts.append(memory)
        u = w @ torch.baddbmm(v, k, memory, alpha=-1)
        memory = torch.baddbmm(memory, k.mT, u)
        added.append(u)
    return _by_memory(starts), memory, _by_memory(added)


def _memory_gradients(
    inverse: Tensor, queries: Tensor, keys: Tensor, gate: Tensor, d_z: Tensor, d_u: Tensor, d_memory: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradient of the memory after each chunk, and of that before the first."""
    ends = []
    direct = queries.mT @ d_z
    if keys.shape[2] <= _SMALL:
        weights = inverse @ (gate * keys)
        moves = _by_chunk(_transition(weights, keys), d_memory)[::-1]
        news = _by_chunk(torch.baddbmm(direct, weights.mT, d_u, alpha=-1), d_memory)[::-1]
        for move, new in zip(moves, news, strict=True):
            ends.append(d_memory)
            d_memory = torch.baddbmm(new, move, d_memory)
        return _by_memory(ends[::-1]), d_memory
    weights = gate * inverse.mT
    parts = [_by_chunk(x, d_memory)[::-1] for x in (weights, keys, d_u, direct)]
    for w, k, d, new in zip(*parts, strict=True):
        ends.append(d_memory)
        d_value = w @ torch.baddbmm(d, k, d_memory)
        d_memory = torch.baddbmm(d_memory + new, k.mT, d_value, alpha=-1)
    return _by_memory(ends[::-1]), d_memory


def _transition(left: Float[Tensor, "b t p"], right: Float[Tensor, "b t p"]) -> Float[Tensor, "b p p"]:
    """I - left^T right, by which a chunk multiplies the memory."""
    one = torch.eye(left.shape[2], dtype=left.dtype, device=left.device)
    return torch.baddbmm(one, left.mT, right, alpha=-1)


def _by_chunk(x: Tensor, memory: Tensor) -> list[Tensor]:
    """`[(b n) ...]` as n tensors `[b ...]`."""
    by_memory = x.reshape(memory.shape[0], -1, *x.shape[1:])
    return [x] if by_memory.shape[1] == 1 else list(by_memory.transpose(0, 1).contiguous().unbind(0))


def _by_memory(chunks: list[Tensor]) -> Tensor:
    """The inverse of `_by_chunk`."""
    return chunks[0].clone() if len(chunks) == 1 else torch.stack(chunks, 1).flatten(0, 1)


def _pull_back(gradient: Float[Tensor, "b t p"], vectors: Float[Tensor, "b t m f"]) -> list[Tensor]:
    """The gradients of the vectors `[b c f]` of each match, given that of their outer product."""
    if vectors.shape[2] == 1:
        return [gradient]
    found = []
    for j in range(vectors.shape[2]):
        here, filler_dim = gradient, vectors.shape[3]
        for other in reversed(vectors[:, :, j + 1 :].unbind(2)):  # what comes after varies fastest
            here = (here.reshape(*other.shape[:2], -1, filler_dim) * other.unsqueeze(2)).sum(-1)
        for other in vectors[:, :, :j].unbind(2):
            here = (here.reshape(*other.shape, -1) * other.unsqueeze(-1)).sum(2)
        found.append(here)
    return found


def _through_scores(
    d_query: list[Tensor], d_key: list[Tensor], query: Tensor, key: Tensor, d_scores: Tensor, d_gram: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of queries and keys, with those that pass the scores inside of chunks."""
    queries, keys = query.unbind(2), key.unbind(2)
    by_query, by_key = [d_scores], [d_gram]
    if len(keys) > 1:
        scores, grams = _factors(query, key), _factors(key, key)
        by_query = [d_scores * _product(scores[:j] + scores[j + 1 :]) for j in range(len(keys))]
        by_key = [d_gram * _product(grams[:j] + grams[j + 1 :]) for j in range(len(keys))]
    for j, (q, k, d_s, d_g) in enumerate(zip(queries, keys, by_query, by_key, strict=True)):
        d_query[j] = torch.baddbmm(d_query[j], d_s, k)
        for factor, vector in ((d_s.mT, q), (d_g.mT, k), (d_g, k)):  # a sum with the transpose would take longer
            d_key[j] = torch.baddbmm(d_key[j], factor, vector)
    return torch.stack(d_query, 2), torch.stack(d_key, 2)
