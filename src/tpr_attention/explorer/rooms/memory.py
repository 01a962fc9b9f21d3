"""The room "Memory and attention": the words that its objects are made of, and where it starts.

Every role has as many fillers as the others, and all share one space: filler k of a role is the k-th axis. So the same
vector is "yellow" as a colour and "triangle" as a shape, and an object is a square matrix.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tpr_attention.explorer.trained import Trained

__all__ = ["FILLERS", "MAPS", "data"]

FILLERS = {
    "shape": ("disc", "triangle", "square", "heart"),
    "colour": ("red", "yellow", "green", "blue"),
    "size": ("tiny", "small", "medium", "large"),
    "position": ("left", "right", "top", "bottom"),
}
"""The names of the fillers of each role."""

MAPS = {
    "identity": np.eye(4),
    "next": np.roll(np.eye(4), 1, axis=1),
    "swap": np.eye(4)[[3, 1, 2, 0]],
    "negate": -np.eye(4),
    "forget": np.full((4, 4), 0.25),
}
"""The map H of each name; a filler f becomes f^T H. "next" takes each filler to the one after it and the last to the
first, "swap" the first to the last and the last to the first, "forget" every filler to the mean of all."""

OBJECTS = (
    ("disc", "red", "large", "left"),
    ("triangle", "yellow", "large", "right"),
    ("square", "green", "small", "top"),
)


def data(trained: Sequence[Trained]) -> dict[str, Any] | None:
    """The vocabulary, the maps, and the objects of the paper's figure 1. Needs no trained model."""
    return {
        "roles": list(FILLERS),
        "fillers": [list(names) for names in FILLERS.values()],
        "maps": [{"name": name, "map": array} for name, array in MAPS.items()],
        "objects": [[names.index(word) for word, names in zip(one, FILLERS.values(), strict=True)] for one in OBJECTS],
    }
