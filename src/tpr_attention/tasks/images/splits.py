"""Published splits of white dSprites, one predicate each; positions go from 0 to 1, to the right and downwards.

Nothing here needs torch, so that names can be listed without loading it.
"""

from collections.abc import Callable
from math import pi
from typing import Any

__all__ = ["PUBLISHED"]


def _squares_right(factors: Any) -> Any:
    return factors.has("shape", "square") & (factors.value("position_x") > 0.5)


def _hearts_right(factors: Any) -> Any:
    return factors.has("shape", "heart") & (factors.value("position_x") > 0.5)


def _ellipses_below(factors: Any) -> Any:
    return factors.has("shape", "ellipse") & (factors.value("position_y") > 0.5)


def _squares_left(factors: Any) -> Any:
    return factors.has("shape", "square") & (factors.value("position_x") < 0.5)


def _one_element(factors: Any) -> Any:
    turn = factors.value("orientation")
    return (
        factors.has("shape", "ellipse")
        & (factors.value("scale") < 0.6)
        & (turn >= 2 * pi / 3)
        & (turn <= 4 * pi / 3)
        & (factors.value("position_x") >= 0.6)
        & (factors.value("position_y") >= 0.6)
    )


PUBLISHED: dict[str, Callable[[Any], Any]] = {
    "sqr2tx": _squares_right,
    "r2r-1": _hearts_right,
    "r2r-2": lambda factors: _hearts_right(factors) | _ellipses_below(factors),
    "r2r-3": lambda factors: _hearts_right(factors) | _ellipses_below(factors) | _squares_left(factors),
    "r2e": _one_element,
}
"""What is held out. "sqr2tx" is that of Montero et al. (2021), "r2r-1" (recombination to range) that of MAGANet.

We did not find the definitions of the others in full. Our reading: "r2r-2" and "r2r-3" hold out further shapes, each in
another half of the plane, so that every position is still shown with some shape; "r2e" (recombination to element) holds
out small ellipses within ranges of all other factors.
"""
