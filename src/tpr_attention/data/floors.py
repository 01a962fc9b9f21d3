"""The lowest losses of a task, exactly: of maps that are linear in the objects, and of who knows what can be known."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.data.composition import Composition
from tpr_attention.data.encoding import FillerTable
from tpr_attention.data.expectation import REFERENCE, TRANSFORM, Term, mean
from tpr_attention.data.pairs import Chain

__all__ = ["Floors", "floors"]

RANK = 1e-12  # a direction with less of the largest second moment is one that inputs do not have
ROUNDING = 1e-12  # a loss with less of the largest square in the tables is zero


class Floors(NamedTuple):
    """Two losses under one condition, mean squared errors over roles and fillers.

    Args:
        linear: Of the map for each action that is linear in (reference, transform, 1) and best in training; of the
            shortest if there are many.
        knowable: Of the best answer for who knows the task, what training shows and the inputs without their noise, if
            there is any, and nothing else.
    """

    linear: float
    knowable: float

    @property
    def solvable(self) -> bool:
        """Whether training and the inputs tell all that is asked for."""
        return self.knowable == 0


def floors(task: Composition) -> dict[str, Floors]:
    """Both floors under each condition of a task, over all of its pairs and not a sample of them.

    >>> from tpr_attention.data.composition import dsprites_composition
    >>> found = floors(dsprites_composition("square_red", "scale_pos"))
    >>> f"{found['train'].linear:.2e}", found["ood_composition"]
    ('1.05e-03', Floors(linear=0.0, knowable=0.0))
    """
    names = {condition: name for name, condition in task.pairing.conditions.items()}
    losses = {condition: np.zeros(2) for condition in names}
    for action in task.grid.actions:
        allowed = [condition for condition, name in names.items() if action in task.pairing.actions(name)]
        if not allowed:
            continue
        chains = [task.pairing.chain(names[condition], action) for condition in allowed]
        both = np.stack([_linear(task, chains, action), _unknown(task, chains, action)], -1)
        for condition, errors in zip(allowed, both, strict=True):
            weights = task.pairing.weights(names[condition])
            losses[condition] += weights[action] / sum(weights.values()) * errors
    smallest = ROUNDING * task.encoding.stacked.square().max().item()
    found = {condition: loss / (task.num_roles * task.filler_dim) for condition, loss in losses.items()}
    exact = {condition: np.where(loss > smallest, loss, 0).tolist() for condition, loss in found.items()}
    return {name: Floors(*exact[condition]) for name, condition in task.pairing.conditions.items()}


def _linear(task: Composition, chains: list[Chain], action: str) -> Float[np.ndarray, "c"]:
    """The squared error of the linear map that is best over all pairs of training.

    E |O_3 - O_1 - x W|^2,    x = (O_1, O_2, 1),    W = E[x x^T]^+ E[x (O_3 - O_1)^T] over training

    It is a quadratic form in the moments of x and of the fillers of O_3 that depend on both objects, and one in those
    of the noise on O_1 and O_2.
    """
    tables, replaced, size = task.encoding.tables, task.grid.actions[action], task.filler_dim
    mixed = [table for table in tables if _is_mixed(table, replaced)]
    terms = [_term(task, table.columns, table.fillers, taken) for taken in ((), task.grid.names) for table in tables]
    terms += [Term(np.ones(1), ()), *(_term(task, table.columns, table.fillers, replaced) for table in mixed)]
    entries = len(tables) * size
    inputs = 2 * entries + 1
    error = np.zeros((inputs + len(mixed) * size, entries))  # as a map of the terms; at first that of the copy
    for j, table in enumerate(tables):
        if {*table.columns} & {*replaced}:
            first = inputs + mixed.index(table) * size if table in mixed else entries + j * size
            role = np.arange(j * size, (j + 1) * size)
            error[role, role], error[role - j * size + first, role] = -1, 1
    trained = [task.pairing.chain("train", action)] * (action in task.pairing.actions("train"))
    moments = _moments([*trained, *chains], terms)
    noise, through = task.noise**2 * np.eye(inputs), np.eye(inputs, entries)  # what the copy lets through of it
    noise[-1, -1] = 0
    if trained:
        fitted = moments[0, :inputs]
        inverse = np.linalg.pinv(fitted[:, :inputs] + noise, rcond=RANK, hermitian=True)
        weight = inverse @ (fitted @ error - noise @ through)
        error[:inputs] -= weight
        through += weight
    clean = np.einsum("zy,czw,wy->c", error, moments[len(trained) :], error, optimize="greedy")
    return np.asarray(clean + np.einsum("xy,xw,wy->", through, noise, through, optimize="greedy"))


def _unknown(task: Composition, chains: list[Chain], action: str) -> Float[np.ndarray, "c"]:
    """The squared error of the best guess.

    sum_k P(row k is the target's and in neither input) |f_k - guess|^2, over the rows k that training does not show

    Only a row that depends on both objects can be in neither of them.
    """
    replaced, total = {*task.grid.actions[action]}, np.zeros(len(chains))
    costs = (task.encoding.stacked - task.guesses).square().sum(-1, keepdim=True) * ~task.shown[:, None]
    parts = torch.split(costs, [len(table.fillers) for table in task.encoding.tables])
    for table, cost in zip(task.encoding.tables, parts, strict=True):
        if cost.any() and _is_mixed(table, replaced):
            term = _term(task, table.columns, cost, replaced)
            ours, theirs = {*table.columns} & replaced, {*table.columns} - replaced
            for sign, equal in ((1, set()), (-1, ours), (-1, theirs), (1, ours | theirs)):
                total += sign * mean(chains, [term], equal)[:, 0]
    return total


def _moments(chains: list[Chain], terms: list[Term]) -> Float[np.ndarray, "c z z"]:
    """The mean product of any two numbers of the terms."""
    count = range(len(terms))
    upper = {(j, k): mean(chains, [terms[j], terms[k]]) for k in count for j in range(k + 1)}
    return np.block([[upper[j, k] if j <= k else upper[k, j].swapaxes(1, 2) for k in count] for j in count])


def _term(task: Composition, columns: tuple[str, ...], values: Float[Tensor, "k n"], taken: Collection[str]) -> Term:
    """Rows of a table for an object that has some columns of the transform and all others of the reference."""
    sizes = [task.grid.sizes[task.grid.index(name)] for name in columns]
    whose = tuple((TRANSFORM if name in taken else REFERENCE, name) for name in columns)
    return Term(values.double().numpy().reshape(*sizes, -1), whose)


def _is_mixed(table: FillerTable, replaced: Collection[str]) -> bool:
    """Whether a filler of the target depends on both inputs."""
    return 0 < sum(name in replaced for name in table.columns) < len(table.columns)
