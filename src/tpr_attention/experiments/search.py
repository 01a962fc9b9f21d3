"""The learning-rate search: the same small grid for every contestant, judged in distribution only."""

from collections.abc import Callable
from dataclasses import replace
from math import log10
from statistics import fmean

from tpr_attention.experiments.contestants import RATES, contestant
from tpr_attention.experiments.points import ROUNDING
from tpr_attention.experiments.spec import RunSpec

__all__ = ["GRID", "best_rate", "score", "search"]

GRID = (0.001, 0.003, 0.01, 0.03, 0.1)
SEEDS = (1000, 1001, 1002)
"""Seeds that no study uses."""

Key = tuple[str, str | None, int]


def search(steps: int) -> dict[Key, dict[float, tuple[RunSpec, ...]]]:
    """The runs of the search, by contestant, interaction and heads, and by rate."""
    return {
        key: {
            rate: tuple(
                replace(contestant(key[0], "square_red", *key[1:]), learning_rate=rate, steps=steps, seed=seed)
                for seed in SEEDS
            )
            for rate in GRID
        }
        for key in RATES
    }


def score(losses: list[float]) -> float:
    """The mean order of magnitude of in-distribution losses over seeds; less is better.

    >>> score([1e-4, 1e-6])
    -5.0
    """
    return fmean(log10(max(loss, ROUNDING)) if loss == loss else 10.0 for loss in losses)


def best_rate(runs: dict[float, tuple[RunSpec, ...]], loss: Callable[[RunSpec], float]) -> float:
    """The rate with the best score; of equal ones the smallest."""
    return min(sorted(runs), key=lambda rate: score([loss(spec) for spec in runs[rate]]))
