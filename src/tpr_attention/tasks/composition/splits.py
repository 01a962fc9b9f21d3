"""The paper's splits: which combinations of factors are held out of training, one predicate each (sec. 4).

Nothing here needs torch, so that names can be listed without loading it.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["SPLITS"]

SPLITS: dict[str, Callable[[Any], Any]] = {
    "scale_pos": lambda factors: (factors.value("scale") > 0.7) & (factors.value("position_x") > 0),
    "square_pos": lambda factors: factors.has("shape", "square") & (factors.value("position_x") > 0),
    "square_red": lambda factors: factors.has("shape", "square") & factors.has("colour", "red"),
}
"""Numerical factors, one of each kind, categorical factors. Each is a `Split` of `held_out`."""
