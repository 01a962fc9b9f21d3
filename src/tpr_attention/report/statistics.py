"""Means over seeds, their bands, and paired comparisons."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from tpr_attention.report.panels import Band
from tpr_attention.training.spec import ROUNDING

__all__ = [
    "Interval",
    "Losses",
    "band",
    "clipped",
    "difference",
    "geometric_mean",
    "mean",
    "nearest",
    "ratio",
    "standard_error",
]

LEVEL = 0.95
RESAMPLES = 9999

Losses = Float[np.ndarray, "n"]


class Interval(NamedTuple):
    """An estimate and its bootstrap confidence interval over seeds; with one seed there is none."""

    value: float
    low: float | None
    high: float | None

    @property
    def least(self) -> float:
        """The lower end; the value if there is none."""
        return self.value if self.low is None else self.low

    @property
    def most(self) -> float:
        """The upper end; the value if there is none."""
        return self.value if self.high is None else self.high


def mean(losses: Losses) -> float:
    """The arithmetic mean over seeds, without those that diverged; infinite if all did.

    >>> mean(np.array([1.0, 3.0, np.inf]))
    2.0
    """
    lived = losses[~np.isinf(losses)]
    return float(lived.mean()) if len(lived) else float("inf")


def standard_error(losses: Losses) -> float | None:
    """The standard error of that mean; None with fewer than two seeds."""
    lived = losses[~np.isinf(losses)]
    return float(lived.std(ddof=1) / np.sqrt(len(lived))) if len(lived) > 1 else None


def band(losses: Float[np.ndarray, "n s"], kind: Band) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The mean over seeds, and the lower and upper edge about it; None with fewer than two seeds.

    >>> mean, low, high = band(np.array([[1.0], [3.0]]), Band(2, "SE"))
    >>> float(mean[0]), float(low[0]), float(high[0])
    (2.0, 0.0, 4.0)
    """
    if len(losses) < 2:
        return None
    middle, spread = losses.mean(0), losses.std(0, ddof=1)
    width = kind.times * (spread if kind.kind == "SD" else spread / np.sqrt(len(losses)))
    return middle, middle - width, middle + width


def ratio(ours: Losses, theirs: Losses) -> Interval:
    """How many times our loss theirs is: the geometric mean over seeds, each seed compared with itself.

    >>> round(ratio(np.array([1.0, 1.0]), np.array([2.0, 8.0])).value, 6)
    4.0
    """
    with np.errstate(invalid="ignore"):  # two losses that diverged have no ratio
        logs = np.log(clipped(theirs)) - np.log(clipped(ours))
    return Interval(*(None if value is None else float(np.exp(value)) for value in _bootstrap(logs)))  # type: ignore[arg-type]


def clipped(losses: Losses) -> Losses:
    """Losses that are not below rounding."""
    found: np.ndarray = np.maximum(losses, ROUNDING)
    return found


def geometric_mean(losses: Losses) -> float:
    """The geometric mean; infinite if one of them is.

    >>> round(geometric_mean(np.array([1e-4, 1e-2])), 9)
    0.001
    """
    return float(np.exp(np.log(clipped(losses)).mean()))


def nearest(losses: Mapping[str, Losses]) -> str:
    """Whose losses are the lowest, as geometric means over seeds.

    >>> nearest({"one": np.array([1.0, 1.0]), "two": np.array([1e-4, 5.0])})
    'two'
    """
    return min(losses, key=lambda label: geometric_mean(losses[label]))


def difference(ours: Losses, theirs: Losses) -> Interval:
    """Their loss minus ours: the mean over seeds, each seed compared with itself."""
    with np.errstate(invalid="ignore"):
        return _bootstrap(theirs - ours)


def _bootstrap(values: Losses) -> Interval:
    """The mean, and the percentiles of the means of resampled seeds; the same numbers always give the same interval."""
    if len(values) < 2 or not np.isfinite(values).all():
        return Interval(float(values.mean()), None, None)
    drawn = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(values.mean()), float(low), float(high))
