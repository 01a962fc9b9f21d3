"""Who is compared, with how many heads, and at which learning rate."""

from dataclasses import replace

from tpr_attention.experiments.spec import RunSpec

__all__ = ["CONTESTANTS", "FLOORS", "KNOWABLE", "LINEAR", "RATES", "contestant", "floor"]

CONTESTANTS = {"tpr": "TPR-Attention", "classical": "classical attention", "resnet": "ResNet"}
"""The paper's model first, then its baselines."""

LINEAR, KNOWABLE = "linear-floor", "oracle"
FLOORS = {LINEAR: "best linear fit", KNOWABLE: "best guess"}
"""The linear map for each action that fits the training data best, and the best answer that can be known."""

HEADLESS = ("resnet",)

RATES: dict[tuple[str, str | None, int], float] = {
    ("tpr", None, 4): 0.01,
    ("tpr", None, 8): 0.1,
    ("tpr", "scale_pos", 8): 0.1,
    ("tpr", "shape_col", 8): 0.03,
    ("classical", None, 4): 0.03,
    ("classical", None, 8): 0.1,
    ("classical", "scale_pos", 8): 0.03,
    ("classical", "shape_col", 8): 0.03,
    ("resnet", None, 4): 0.01,
    ("resnet", None, 8): 0.01,
    ("resnet", "scale_pos", 8): 0.01,
    ("resnet", "shape_col", 8): 0.01,
}
"""Contestant, interaction and heads to the rate that `search` found (decision 0018)."""


def contestant(label: str, split: str, interaction: str | None, heads: int) -> RunSpec:
    """The spec of a contestant, for seed 0.

    >>> contestant("classical", "square_red", None, 8).options
    {'num_heads': 8}
    """
    spec = RunSpec(model=label, split=split, interaction=interaction, learning_rate=RATES[label, interaction, heads])
    return spec if label in HEADLESS else replace(spec, options={"num_heads": heads})


def floor(label: str, split: str, interaction: str | None) -> RunSpec:
    """The spec of a floor, for seed 0."""
    return RunSpec(model=label, split=split, interaction=interaction)
