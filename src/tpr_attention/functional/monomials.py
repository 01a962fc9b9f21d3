"""Products of scores as one inner product, so that conjunctions too have a memory of constant size.

A conjunction weighs an object by (q_1 . k)(q_2 . k) ... (q_m . k). The product is linear in the monomials of degree m
of the key, of which there are only C(d + m - 1, m), not d^m, since the order of their factors does not matter.
"""

from math import factorial, prod

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["MOST_MATCHES", "key_features", "num_features", "query_features"]

MOST_MATCHES = 1000  # a product of more scores is zero or infinite, and to count its monomials takes long


def num_features(size: int, num_matches: int, *, shared_key: bool) -> int:
    """How many numbers stand for a key of `size` met by `num_matches` queries.

    >>> num_features(15, 3, shared_key=True), num_features(15, 3, shared_key=False)
    (680, 3375)
    """
    if num_matches == 1:
        return size
    if not shared_key:
        return int(size**num_matches)
    return prod(range(size, size + num_matches)) // factorial(num_matches)


def key_features(key: Float[Tensor, "*batch m_k d"], num_matches: int) -> Float[Tensor, "*batch p"]:
    """The monomials of one key shared by all matches (m_k = 1), or the outer product of one key for each (m_k = m).

    >>> key_features(torch.tensor([[2.0, 3.0]]), 2)
    tensor([4., 6., 9.])
    """
    if key.shape[-2] == num_matches:
        return _outer(key)
    key = key.squeeze(-2)
    indices, _ = _monomials(key.shape[-1], num_matches, key)
    product = key[..., indices[0]]
    for k in range(1, num_matches):
        product = product * key[..., indices[k]]
    return product


def query_features(query: Float[Tensor, "*batch m d"], *, shared_key: bool) -> Float[Tensor, "*batch p"]:
    r"""The vector whose inner product with `key_features` is the product of the m scores.

    >>> query, key = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[2.0, 3.0]])
    >>> query_features(query, shared_key=True) @ key_features(key, 2), (query @ key[0]).prod()
    (tensor(168.), tensor(168.))
    """
    matches = query.shape[-2]
    if matches == 1 or not shared_key:
        return _outer(query)
    indices, weights = _monomials(query.shape[-1], matches, query)
    partial: dict[tuple[int, ...], Tensor | None] = {(): None}  # by the queries used up so far: 2^m sums, not m!
    for k in range(matches):
        grown: dict[tuple[int, ...], Tensor | None] = {}
        entries = [vector[..., indices[k]] for vector in query.unbind(-2)]
        for used, product in partial.items():
            for j in (j for j in range(matches) if j not in used):
                term = entries[j] if product is None else product * entries[j]
                together = tuple(sorted((*used, j)))
                so_far = grown.get(together)
                grown[together] = term if so_far is None else so_far + term
        partial = grown
    symmetric = partial[tuple(range(matches))]
    assert symmetric is not None
    return symmetric * weights


def _outer(vectors: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch p"]:
    product, *others = vectors.unbind(-2)
    for other in others:
        product = (product.unsqueeze(-1) * other.unsqueeze(-2)).flatten(-2)
    return product


def _monomials(size: int, degree: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Sorted indices `[degree p]` of all monomials, and 1 / (how many permutations leave each unchanged).

    Those that start with i are i followed by the monomials of one degree less that start with i or later, which are
    the last ones in sorted order.
    """
    numbers = torch.arange(size, device=like.device)
    indices = numbers[None]
    for lower in range(1, degree):
        counts = [num_features(size - i, lower, shared_key=True) for i in range(size)]
        rest = torch.cat([indices[:, -count:] for count in counts], 1)
        first = torch.cat([numbers[i : i + 1].expand(count) for i, count in enumerate(counts)])
        indices = torch.cat([first[None], rest])
    weights = torch.ones_like(indices[0], dtype=like.dtype)
    repeats = torch.ones_like(weights)
    for k in range(1, degree):
        repeats = torch.where(indices[k] == indices[k - 1], repeats + 1, torch.ones_like(repeats))
        weights = weights / repeats
    return indices, weights
