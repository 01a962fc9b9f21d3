"""Means over all pairs of an action and a condition, exactly and without listing them.

Pairs are a chain a1 - r1 - a2 - r2 (see `pairs`). A mean over them is a sum of products whose factors depend on few
columns each. Summed in a good order, it costs little more than reading the factors.
"""

from collections.abc import Collection, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from tpr_attention.tasks.composition.pairs import Chain

__all__ = ["REFERENCE", "TRANSFORM", "Term", "mean"]

REFERENCE, TRANSFORM = 1, 2


class Term(NamedTuple):
    """Numbers that depend on columns of the reference and of the transform.

    Args:
        values: An axis for each of these columns, and a last one for the numbers.
        columns: Whose column it is, `REFERENCE` or `TRANSFORM`, and its name.
    """

    values: Float[np.ndarray, "*classes n"]
    columns: tuple[tuple[int, str], ...]


def mean(chains: Sequence[Chain], terms: Sequence[Term], equal: Collection[str] = ()) -> Float[np.ndarray, "c ..."]:
    """The mean of the outer product of terms, where pairs that differ in one of the columns `equal` count as zero.

    E[ t_1 (x) t_2 (x) ... ; the reference and the transform agree in `equal` ]

    Args:
        chains: Of one action, under one or more conditions.

    >>> from tpr_attention.tasks.composition.task import dsprites_composition
    >>> chain = dsprites_composition("square_red").pairing.chain("train", "colour")
    >>> shape, colour = (Term(np.eye(3), ((REFERENCE, name),)) for name in ("shape", "colour"))
    >>> mean([chain], [shape, colour])[0].round(3)  # no red squares; others are rare, having fewer targets
    array([[0.   , 0.1  , 0.1  ],
           [0.133, 0.133, 0.133],
           [0.133, 0.133, 0.133]])
    """
    chain = chains[0]
    total = _total(chains, terms, {*equal})
    if chain.require_change:  # without the pairs that agree in all that the action replaces
        total = total - _total(chains, terms, {*equal, *chain.acted})
    named = {place for term in terms for place in term.columns} | {*product((REFERENCE, TRANSFORM), equal)}
    free = {*product((REFERENCE, TRANSFORM), chain.free)} - named
    others = prod(chain.grid.sizes[chain.grid.index(name)] for _, name in free)
    shares = np.array([others / chain.count for chain in chains])
    return np.asarray(total * shares.reshape(-1, *[1] * len(terms)))


def _total(chains: Sequence[Chain], terms: Sequence[Term], equal: set[str]) -> Float[np.ndarray, "c ..."]:
    """The sum over all classes of the columns that the terms and the chains have, whether something changes or not."""
    grid, acted, rest = chains[0].grid, chains[0].acted, chains[0].rest
    sizes = [grid.sizes[grid.index(name)] for name in (*acted, *rest)]
    neighbours = {
        (REFERENCE, REFERENCE): [chain.as_reference for chain in chains],
        (TRANSFORM, REFERENCE): [chain.as_target for chain in chains],
        (TRANSFORM, TRANSFORM): [chain.as_transform for chain in chains],
    }
    arrays = [term.values for term in terms]
    arrays += [torch.stack(held).double().numpy().reshape(-1, *sizes) for held in neighbours.values()]
    places = [term.columns for term in terms]
    places += [(*product((a,), acted), *product((r,), rest)) for a, r in neighbours]
    numbers: dict[tuple[int, str], int] = {}
    axes = [
        [numbers.setdefault((REFERENCE if name in equal else whose, name), len(numbers)) for whose, name in columns]
        for columns in places
    ]
    condition, *output = range(len(numbers), len(numbers) + 1 + len(terms))
    axes = [[*axes[k], output[k]] if k < len(terms) else [condition, *axes[k]] for k in range(len(axes))]
    operands = [part for pair in zip(arrays, axes, strict=True) for part in pair]
    return np.asarray(np.einsum(*operands, [condition, *output], optimize="greedy"))
