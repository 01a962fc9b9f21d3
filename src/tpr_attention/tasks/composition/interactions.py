"""The paper's interactions of factors by name: which factors, and the law of the filler that they share (App. E).

Nothing here needs torch, so that names can be listed without loading it.
"""

from typing import NamedTuple

__all__ = ["INTERACTIONS", "Interaction"]


class Interaction(NamedTuple):
    """A further role whose filler depends on several factors.

    Args:
        factors: Names of the factors, in the order in which the law takes their fillers.
        law: The import path of a function of fillers; see `laws`.
    """

    factors: tuple[str, ...]
    law: str


INTERACTIONS: dict[str, Interaction] = {
    "scale_pos": Interaction(("scale", "position"), "tpr_attention.tasks.composition.laws:direction_of_sum"),
    "shape_col": Interaction(("shape", "colour"), "tpr_attention.tasks.composition.laws:random_bilinear"),
}
"""The numerical and the categorical interaction of the paper."""
