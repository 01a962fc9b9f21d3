"""Composition tasks: take a reference, replace one factor by a transform's (sec. 4).

A `Grid` has columns and actions, `Factors` are rows of it; a split of `SPLITS` says which combinations are held out,
`Pairing` draws pairs under `CONDITIONS`, an `Encoding` turns factors into objects, and a `Composition` is all of it.
`dsprites_composition` makes the paper's task, `random_composition` one of any size, and `table_composition` one from a
table.

Names are imported when they are used: `SPLITS` and `INTERACTIONS` need no torch.
"""

from importlib import import_module
from typing import Any

MODULES = {
    "encoding": ("Encoding", "FillerTable"),
    "factors": ("Column", "Factors", "Grid", "dsprites", "substitute"),
    "fillers": ("dsprites_fillers",),
    "held_out": ("HeldOut", "Split"),
    "interactions": (
        "ALL_INTERACTIONS",
        "DEVELOPMENT_INTERACTIONS",
        "HELD_OUT_INTERACTIONS",
        "INTERACTIONS",
        "Interaction",
    ),
    "laws": ("MIXINGS",),
    "pairs": ("CONDITIONS", "Condition", "Pairing", "Pairs"),
    "splits": ("SPLITS",),
    "tables": ("table_composition",),
    "task": ("Composition", "dsprites_composition"),
    "worlds": ("random_composition",),
}
NAMES = {name: module for module, names in MODULES.items() for name in names}

__all__ = sorted(NAMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{NAMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *NAMES]
