"""Products of scores as one inner product, so that conjunctions too have a memory of constant size.

A conjunction weighs an object by (q_1 . k)(q_2 . k) ... (q_m . k). The product is linear in the monomials of degree m
of the key, of which there are only C(d + m - 1, m), not d^m, since the order of their factors does not matter.
"""

from functools import lru_cache
from itertools import combinations_with_replacement, permutations
from math import factorial, prod

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["key_features", "num_features", "query_features"]


def num_features(size: int, num_matches: int, *, shared_key: bool) -> int:
    """How many numbers stand for a key of `size` met by `num_matches` queries.

    >>> num_features(15, 3, shared_key=True), num_features(15, 3, shared_key=False)
    (680, 3375)
    """
    if not shared_key:
        return int(size**num_matches)
    return prod(range(size, size + num_matches)) // factorial(num_matches)


def key_features(key: Float[Tensor, "*batch k d"], num_matches: int) -> Float[Tensor, "*batch p"]:
    """The monomials of one key shared by all matches (k = 1), or the outer product of one key for each (k = m).

    >>> key_features(torch.tensor([[2.0, 3.0]]), 2)
    tensor([4., 6., 9.])
    """
    if key.shape[-2] == num_matches:
        return _outer(key)
    indices, _ = _monomials(key.shape[-1], num_matches)
    return key.squeeze(-2)[..., indices.to(key.device)].prod(-2)


def query_features(query: Float[Tensor, "*batch m d"], *, shared_key: bool) -> Float[Tensor, "*batch p"]:
    r"""The vector whose inner product with `key_features` is the product of the m scores.

    >>> query, key = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[2.0, 3.0]])
    >>> query_features(query, shared_key=True) @ key_features(key, 2), (query @ key[0]).prod()
    (tensor(168.), tensor(168.))
    """
    matches = query.shape[-2]
    if matches == 1 or not shared_key:
        return _outer(query)
    indices, weights = _monomials(query.shape[-1], matches)
    indices = indices.to(query.device)
    terms: Tensor | None = None
    for order in permutations(range(matches)):
        term = query[..., order[0], :][..., indices[0]]
        for k in range(1, matches):
            term = term * query[..., order[k], :][..., indices[k]]
        terms = term if terms is None else terms + term
    assert terms is not None
    return terms * weights.to(query)


def _outer(vectors: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch p"]:
    product, *others = vectors.unbind(-2)
    for other in others:
        product = (product.unsqueeze(-1) * other.unsqueeze(-2)).flatten(-2)
    return product


@lru_cache(maxsize=8)
def _monomials(size: int, degree: int) -> tuple[Tensor, Tensor]:
    """Indices `[degree p]` of all monomials, and 1 / (how many permutations leave each unchanged)."""
    indices = list(combinations_with_replacement(range(size), degree))
    weights = [1 / prod(factorial(index.count(i)) for i in set(index)) for index in indices]
    return torch.tensor(indices).T.contiguous(), torch.tensor(weights, dtype=torch.float64)
