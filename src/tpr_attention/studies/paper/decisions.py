"""What the paper leaves open, and what we chose: the decision records in one line each."""

from tpr_attention.report.tables import Column, Table

__all__ = ["decisions_table"]

DECISIONS = (
    ("range of positions", "-1 to 1, so that posX > 0 is half of the plane", "0007"),
    ("angles of the scale fillers", "theta from 0 to pi/2 in six equal steps, phi = pi/4", "0008"),
    ("distribution of the mixing tensor", "standard normal, drawn anew for each seed", "0009"),
    ("actions", "five: shape, scale, orientation, position (one role), colour; the interaction's slot is none", "0010"),
    (
        "how pairs are drawn",
        "all actions equally likely, then all pairs of the condition; equal factors allowed",
        "0011",
    ),
    ("answers of `ood_reference` and `ood_transform`", "wherever they fall", "0011"),
    ("initialisation", "every model starts at the exact copy of the reference", "0012"),
    (
        "tokens of classical attention",
        "two: the reference and the transform, the query from action and reference",
        "0013",
    ),
    ("the ResNet's layer", "one hidden layer of 128 rectified units", "0014"),
    ("ids of TPR-Attention", "each head learns which object it reads", "0016"),
    ("loss, optimiser, batch, steps, data", "squared error over all roles; Adam; see the record", "0017"),
    (
        "what can be known at all",
        "two floors: the best linear fit, and the best guess given the training",
        "0015",
    ),
    ("what lower, substantially and in part mean", "paired ratios over seeds and their intervals", "0019"),
    ("learning rate", "searched on five values for each model and setting, in distribution only", "0018"),
    (
        "number of training pairs",
        "50,000 in the figures; from 30 on in the map, with rates searched for each number",
        "0029",
    ),
)


def decisions_table() -> Table:
    """Every choice, with the record that gives the reason."""
    columns = [Column("the paper leaves open"), Column("here"), Column("decision record")]
    return Table("decisions", "Where the paper is silent.", columns, [list(row) for row in DECISIONS])
