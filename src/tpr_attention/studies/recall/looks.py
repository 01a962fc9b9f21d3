"""How contestants are drawn, the same in all figures of the study."""

from tpr_attention.report.panels import Look

__all__ = ["LOOKS", "published_look"]

LOOKS = {
    "tpr": Look("#d1242f", (), "o"),
    "tpr-delta": Look("#0e8a9c", (2, 1, 5, 1), "*"),
    "tpr-softmax": Look("#7c3aed", (8, 1.5), "P"),
    "tpr-one": Look("#c2477f", (2, 1), "v"),
    "tpr-small": Look("#7a4a21", (5, 1, 1, 1), "<"),
    "softmax": Look("#b07800", (5, 2), "s"),
    "linear": Look("#2563c9", (6, 2, 1, 2), "^"),
    "delta": Look("#168a5b", (3, 1.5), "D"),
    "dpfp": Look("#3d3a8c", (8, 3, 3, 3), ">"),
    "softmax-roles": Look("#e0a83c", (1, 1), "s"),
    "linear-roles": Look("#7fa8ec", (1, 1), "^"),
    "delta-roles": Look("#66b88f", (1, 1), "D"),
    "dpfp-roles": Look("#8f8cd0", (1, 1), ">"),
}
"""Name of a contestant to its look. Those with the encoder of the TPR contestants are dotted."""


def published_look(name: str) -> Look:
    """Points of published values, in the colour of a contestant."""
    return Look(LOOKS[name].colour, (), LOOKS[name].marker)
