"""The lowest losses of a task, exactly: of maps that are linear in the objects, and of who knows what can be known.

Means are over all pairs of an action and a condition, exactly and without listing them. Pairs are a chain
a1 - r1 - a2 - r2 (see `pairs`). A mean over them is a sum of products whose factors depend on few columns each.
Summed in a good order, it costs little more than reading the factors.
"""

from collections.abc import Collection, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tpr_attention.tasks.composition.encoding import Encoding, FillerTable
from tpr_attention.tasks.composition.factors import Grid
from tpr_attention.tasks.composition.held_out import HeldOut
from tpr_attention.tasks.composition.pairs import Chain, Pairing

__all__ = ["REFERENCE", "TRANSFORM", "Term", "floors", "known_rows", "mean"]

RANK = 1e-12  # a direction with less of the largest second moment is one that inputs do not have
ROUNDING = 1e-12  # a loss with less of the largest square in the tables is zero
REFERENCE, TRANSFORM = 1, 2
MOST_NUMBERS = 2_000  # of two objects: a map of more, for each action, takes minutes and gigabytes
MOST_MEANS = 200_000  # of products of two fillers: about a thousand take a second


class Term(NamedTuple):
    """Numbers that depend on columns of the reference and of the transform.

    Args:
        values: An axis for each of these columns, and a last one for the numbers.
        columns: Whose column it is, `REFERENCE` or `TRANSFORM`, and its name.
    """

    values: Float[np.ndarray, "*classes n"]
    columns: tuple[tuple[int, str], ...]


def floors(
    encoding: Encoding, pairing: Pairing, *, noise: float = 0.0, scored: Sequence[bool] | None = None
) -> dict[str, dict[str, float]]:
    """Two losses under each condition, over all of its pairs and not a sample of them.

    `linear` is that of the map for each action that is linear in (reference, transform, 1) and best in training; of the
    shortest if there are many. `knowable` is that of the best answer for who knows the task, what training shows and
    the inputs without their noise, and nothing else: zero if training and the inputs tell all that is asked for.

    Args:
        noise: The standard deviation of noise on the inputs.
        scored: Which roles count; None for all.

    >>> from tpr_attention.tasks.composition.task import dsprites_composition
    >>> found = dsprites_composition("square_red", "scale_pos").floors()
    >>> f"{found['train']['linear']:.2e}", found["ood_composition"]
    ('1.05e-03', {'linear': 0.0, 'knowable': 0.0})
    """
    _expect_short(encoding, len(pairing.grid.actions))
    problem = _Problem(encoding, pairing, noise, _weights(encoding, scored))
    names = {condition: name for name, condition in pairing.conditions.items()}
    losses = {condition: np.zeros(2) for condition in names}
    for action in pairing.grid.actions:
        allowed = [condition for condition, name in names.items() if action in pairing.actions(name)]
        if not allowed:
            continue
        chains = [pairing.chain(names[condition], action) for condition in allowed]
        both = np.stack([_linear(problem, chains, action), _unknown(problem, chains, action)], -1)
        for condition, errors in zip(allowed, both, strict=True):
            weights = pairing.weights(names[condition])
            losses[condition] += weights[action] / sum(weights.values()) * errors
    smallest = ROUNDING * encoding.stacked.square().max().item()
    exact = {condition: np.where(loss > smallest, loss, 0).tolist() for condition, loss in losses.items()}
    return {
        name: dict(zip(("linear", "knowable"), exact[condition], strict=True))
        for name, condition in pairing.conditions.items()
    }


def known_rows(encoding: Encoding, held_out: HeldOut) -> Bool[Tensor, "k"]:
    """Which rows of the encoding's tables follow a law or are in some object that is not held out."""
    known = []
    for table in encoding.tables:
        rest = [name for name in held_out.names if name not in table.columns]
        seen = ~held_out.matrix(table.columns, rest).all(1)
        known.append(seen if table.guess is not None else torch.ones_like(seen))
    return torch.cat(known)


def _expect_short(encoding: Encoding, actions: int) -> None:
    """Refuse what would take hours, before it begins."""
    numbers = 2 * len(encoding.tables) * encoding.filler_dim
    terms = 2 * len(encoding.tables) + 1
    means = actions * terms * (terms + 1) // 2
    if numbers > MOST_NUMBERS or means > MOST_MEANS:
        raise ValueError(
            f"expected a world whose pairs have at most {MOST_NUMBERS:,} numbers and {MOST_MEANS:,} means of products, "
            f"got {numbers:,} and {means:,}"
        )


class _Problem(NamedTuple):
    encoding: Encoding
    pairing: Pairing
    noise: float
    weights: Float[np.ndarray, "j"]  # of the squared error of a role in the loss


def _weights(encoding: Encoding, scored: Sequence[bool] | None) -> Float[np.ndarray, "j"]:
    counted = np.array([True] * len(encoding.tables) if scored is None else scored, dtype=float)
    outside = encoding.num_roles - len(encoding.tables)
    return np.asarray(counted / (counted.sum() + outside) / encoding.filler_dim)


def _linear(problem: _Problem, chains: list[Chain], action: str) -> Float[np.ndarray, "c"]:
    """The squared error of the linear map that is best over all pairs of training.

    E |O_3 - O_1 - x W|^2,    x = (O_1, O_2, 1),    W = E[x x^T]^+ E[x (O_3 - O_1)^T] over training

    It is a quadratic form in the moments of x and of the fillers of O_3 that depend on both objects, and one in those
    of the noise on O_1 and O_2.
    """
    encoding, pairing, grid = problem.encoding, problem.pairing, problem.pairing.grid
    tables, replaced, size = encoding.tables, grid.actions[action], encoding.filler_dim
    mixed = [table for table in tables if _is_mixed(table, replaced)]
    terms = [_term(grid, table.columns, table.fillers, taken) for taken in ((), grid.names) for table in tables]
    terms += [Term(np.ones(1), ()), *(_term(grid, table.columns, table.fillers, replaced) for table in mixed)]
    entries = len(tables) * size
    inputs = 2 * entries + 1
    error = np.zeros((inputs + len(mixed) * size, entries))  # as a map of the terms; at first that of the copy
    for j, table in enumerate(tables):
        if {*table.columns} & {*replaced}:
            first = inputs + mixed.index(table) * size if table in mixed else entries + j * size
            role = np.arange(j * size, (j + 1) * size)
            error[role, role], error[role - j * size + first, role] = -1, 1
    trained = [pairing.chain("train", action)] * (action in pairing.actions("train"))
    moments = _moments([*trained, *chains], terms)
    noise, through = problem.noise**2 * np.eye(inputs), np.eye(inputs, entries)  # what the copy lets through of it
    noise[-1, -1] = 0
    if trained:
        fitted = moments[0, :inputs]
        inverse = np.linalg.pinv(fitted[:, :inputs] + noise, rcond=RANK, hermitian=True)
        weight = inverse @ (fitted @ error - noise @ through)
        error[:inputs] -= weight
        through += weight
    weights = np.repeat(problem.weights, size)
    clean = np.einsum("zy,czw,wy->c", error, moments[len(trained) :], error * weights, optimize="greedy")
    return np.asarray(clean + np.einsum("xy,xw,wy->", through, noise, through * weights, optimize="greedy"))


def _unknown(problem: _Problem, chains: list[Chain], action: str) -> Float[np.ndarray, "c"]:
    """The squared error of the best guess.

    sum_k P(row k is the target's and in neither input) |f_k - guess|^2, over the rows k that training does not show

    Only a row that depends on both objects can be in neither of them.
    """
    encoding, grid = problem.encoding, problem.pairing.grid
    replaced, total = {*grid.actions[action]}, np.zeros(len(chains))
    unknown = ~known_rows(encoding, problem.pairing.held_out)
    costs = (encoding.stacked - encoding.guesses).square().sum(-1, keepdim=True) * unknown[:, None]
    parts = torch.split(costs, [len(table.fillers) for table in encoding.tables])
    for table, part, weight in zip(encoding.tables, parts, problem.weights, strict=True):
        cost = part * weight
        if cost.any() and _is_mixed(table, replaced):
            term = _term(grid, table.columns, cost, replaced)
            ours, theirs = {*table.columns} & replaced, {*table.columns} - replaced
            for sign, equal in ((1, set()), (-1, ours), (-1, theirs), (1, ours | theirs)):
                total += sign * mean(chains, [term], equal)[:, 0]
    return total


def _moments(chains: list[Chain], terms: list[Term]) -> Float[np.ndarray, "c z z"]:
    """The mean product of any two numbers of the terms."""
    count = range(len(terms))
    upper = {(j, k): mean(chains, [terms[j], terms[k]]) for k in count for j in range(k + 1)}
    return np.block([[upper[j, k] if j <= k else upper[k, j].swapaxes(1, 2) for k in count] for j in count])


def _term(grid: Grid, columns: tuple[str, ...], values: Float[Tensor, "k n"], taken: Collection[str]) -> Term:
    """Rows of a table for an object that has some columns of the transform and all others of the reference."""
    sizes = [grid.sizes[grid.index(name)] for name in columns]
    whose = tuple((TRANSFORM if name in taken else REFERENCE, name) for name in columns)
    return Term(values.double().numpy().reshape(*sizes, -1), whose)


def _is_mixed(table: FillerTable, replaced: Collection[str]) -> bool:
    """Whether a filler of the target depends on both inputs."""
    return 0 < sum(name in replaced for name in table.columns) < len(table.columns)


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
