"""Optimisers and learning-rate schedules by name, for many runs at once: one row of weights a run."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

__all__ = ["OPTIMISERS", "SCHEDULES", "Optimiser"]

Rows = Float[Tensor, "n weights"]

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8
MOMENTUM = 0.9


class Optimiser(NamedTuple):
    """How a gradient becomes a step.

    Args:
        slots: What it remembers, by name: tensors of the weights' shape, zero at the start.
        scalars: Numbers that depend on the step alone.
        step: Rates, gradient, slots and scalars to what is subtracted from the weights; changes the slots in place.
    """

    slots: tuple[str, ...]
    scalars: Callable[[int], list[float]]
    step: Callable[[Tensor, Rows, Sequence[Rows], Tensor], Rows]


def _adam(rates: Tensor, gradient: Rows, slots: Sequence[Rows], scalars: Tensor) -> Rows:
    mean, square = slots
    mean.lerp_(gradient, 1 - FIRST_DECAY)
    square.lerp_(gradient.square(), 1 - SECOND_DECAY)
    return rates * (mean / scalars[0]) / ((square / scalars[1]).sqrt() + EPSILON)


def _sgd(rates: Tensor, gradient: Rows, slots: Sequence[Rows], scalars: Tensor) -> Rows:
    (momentum,) = slots
    momentum.mul_(MOMENTUM).add_(gradient)
    return rates * momentum


OPTIMISERS: dict[str, Optimiser] = {
    "adam": Optimiser(
        ("mean", "square"), lambda step: [1 - FIRST_DECAY ** (step + 1), 1 - SECOND_DECAY ** (step + 1)], _adam
    ),
    "sgd": Optimiser(("momentum",), lambda step: [], _sgd),
}

SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,
    "constant": lambda share: 1.0,
    "late-decay": lambda share: min(1.0, 4 * (1 - share)),
}
"""The share of the training that is done, to the share of the learning rate."""
