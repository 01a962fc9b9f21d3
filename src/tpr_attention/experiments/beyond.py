"""Past the paper: heads of second order and stacked blocks, in every cell of the paper and with both floors."""

from collections.abc import Callable, Iterator
from functools import cache

from tpr_attention.experiments.contestants import FLOORS, contestant, floor
from tpr_attention.experiments.layout import INTERACTIONS, SPLITS, TESTS, Band, Panel, Setup, Study, over_seeds
from tpr_attention.experiments.spec import RunSpec

__all__ = ["BEYOND", "NEW", "OURS", "newcomer"]

NEW = {"tpr-second": "second-order heads", "tpr-stack": "stacked blocks"}
"""The new contestants."""

OURS = "tpr-stack"
COMPARED = ("tpr", "resnet")
HEADS, RATE = 12, 0.01


def newcomer(label: str, split: str, interaction: str | None) -> RunSpec:
    """The spec of a new contestant, for seed 0: the same options and rate in all settings."""
    return RunSpec(model=label, options={"num_heads": HEADS}, split=split, interaction=interaction, learning_rate=RATE)


def _panels(setup: Setup, split: str, interaction: str | None) -> Iterator[Panel]:
    specs = {label: contestant(label, split, interaction, 8) for label in COMPARED}
    specs |= {label: newcomer(label, split, interaction) for label in NEW}
    curves = tuple(over_seeds(label, spec, setup) for label, spec in specs.items())
    floors = tuple(over_seeds(label, floor(label, split, interaction), setup) for label in FLOORS)
    for condition, test in TESTS.items():
        yield Panel(split, test, split, interaction, None, condition, Band(1, "SE"), curves, floors)


def _study(name: str, interaction: str | None) -> Callable[[Setup], Study]:
    def make(setup: Setup) -> Study:
        words = f"with the {INTERACTIONS[interaction]}" if interaction else "without interaction"
        return Study(
            name,
            f"Past the paper, {words}",
            f"Loss on held-out combinations {words}: the paper's layer, second-order heads and stacked blocks.",
            tuple(panel for split in SPLITS for panel in _panels(setup, split, interaction)),
        )

    return make


BEYOND: dict[str, Callable[[Setup], Study]] = {
    "beyond-none": cache(_study("beyond-none", None)),
    "beyond-numerical": cache(_study("beyond-numerical", "scale_pos")),
    "beyond-categorical": cache(_study("beyond-categorical", "shape_col")),
}
"""Name to figure: all cells of the paper."""
