"""The paper's splits, which say what is held out of training, one predicate each, and its tests in words (sec. 4).

Nothing here needs torch, so that names can be listed without loading it.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["SPLITS", "TESTS"]

SPLITS: dict[str, Callable[[Any], Any]] = {
    "scale_pos": lambda factors: (factors.value("scale") > 0.7) & (factors.value("position_x") > 0),
    "square_pos": lambda factors: factors.has("shape", "square") & (factors.value("position_x") > 0),
    "square_red": lambda factors: factors.has("shape", "square") & factors.has("colour", "red"),
}
"""Numerical factors, one of each kind, categorical factors. Each is a `Split` of `held_out`."""

TESTS = {
    "ood_reference": "Test 1: held-out reference",
    "ood_transform": "Test 2: held-out transform",
    "ood_composition": "Test 3: held-out composition",
}
"""The paper's tests: the conditions of `pairs` by name, and what figures call them."""
