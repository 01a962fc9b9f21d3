"""Interactions of factors by name: which factors, and the law of the filler that they share (App. E).

Nothing here needs torch, so that names can be listed without loading it.
"""

from typing import NamedTuple

__all__ = [
    "ALL_INTERACTIONS",
    "DEVELOPMENT_INTERACTIONS",
    "HELD_OUT_INTERACTIONS",
    "INTERACTIONS",
    "INTERACTION_GROUPS",
    "Interaction",
]


class Interaction(NamedTuple):
    """A further role whose filler depends on several factors.

    Args:
        factors: Names of the factors, in the order in which the law takes their fillers.
        law: The import path of a function of fillers; see `laws`.
    """

    factors: tuple[str, ...]
    law: str


def _paper(law: str, *factors: str) -> Interaction:
    return Interaction(factors, f"tpr_attention.tasks.composition.laws:{law}")


def _family(law: str, *factors: str) -> Interaction:
    return Interaction(factors, f"tpr_attention.tasks.composition.law_family:{law}")


INTERACTIONS: dict[str, Interaction] = {
    "scale_pos": _paper("direction_of_sum", "scale", "position"),
    "shape_col": _paper("random_bilinear", "shape", "colour"),
}
"""The numerical and the categorical interaction of the paper."""

DEVELOPMENT_INTERACTIONS: dict[str, Interaction] = {
    "shape_col": INTERACTIONS["shape_col"],
    "bilinear_shape_scale": _paper("random_bilinear", "shape", "scale"),
    "bilinear_colour_orientation": _paper("random_bilinear", "colour", "orientation"),
    "saturating_colour_orientation": _family("saturating", "colour", "orientation"),
    "conditional_shape_scale_position": _family("conditional", "shape", "scale", "position"),
    "scaled_shape_colour_scale": _family("scaled_bilinear", "shape", "colour", "scale"),
    "direction_orientation_position": _paper("direction_of_sum", "orientation", "position"),
    "largest_scale_position": _family("largest", "scale", "position"),
    "sine_orientation_scale": _family("sine", "orientation", "scale"),
}
"""Interactions on which options of models may be chosen.

`shape_col` is one of them only with the split `{"shape": "heart", "colour": "blue"}`, which no study has.
"""

HELD_OUT_INTERACTIONS: dict[str, Interaction] = {
    "softsign_position_colour": _family("softsign", "position", "colour"),
    "switch_colour_orientation_scale": _family("switch", "colour", "orientation", "scale"),
    "trilinear_shape_orientation_scale": _family("trilinear", "shape", "orientation", "scale"),
    "product_orientation_scale": _family("product", "orientation", "scale"),
    "difference_shape_position": _family("soft_difference", "shape", "position"),
    "smallest_orientation_position": _family("smallest", "orientation", "position"),
    "threshold_scale_position": _family("threshold", "scale", "position"),
    "mixture_shape_orientation": _family("mixture", "shape", "orientation"),
    "squared_scale_colour": _family("squared_sum", "scale", "colour"),
}
"""Interactions that no choice may depend on. None has a formula of the development.

A law of these that draws something does not depend on both factors of `square_red`, or of `scale_pos`. With these
splits all of its fillers are in training.
"""

INTERACTION_GROUPS: dict[str, dict[str, Interaction]] = {
    "the paper's": INTERACTIONS,
    "development": DEVELOPMENT_INTERACTIONS,
    "held out": HELD_OUT_INTERACTIONS,
}
"""All named interactions, by what they are for."""

ALL_INTERACTIONS: dict[str, Interaction] = {
    name: one for group in INTERACTION_GROUPS.values() for name, one in group.items()
}
"""What the option `interaction` of a task may name."""
