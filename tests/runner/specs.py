"""Specs of short trainings, and a made-up result."""

import numpy as np

from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.spec import Component, RunSpec, Training


def tiny(**changes):
    """A spec of a training of milliseconds."""
    return RunSpec.of({"steps": 4, "train_examples": 100, "test_examples": 20, "batch_size": 50, **changes})


SPECS = [
    tiny(model=model, interaction=interaction, seed=seed)
    for model, interaction in (("tpr", None), ("tpr", "shape_col"), ("resnet", None), ("oracle", None))
    for seed in (0, 1)
]

# A stored run is read without its task and its model, which need not be importable.
SPEC = RunSpec(
    Component("somewhere.task:Task", {"sizes": [3, 4], "noise": 0.5}),
    Component("somewhere.model:Model", {"width": 3, "bias": True, "law": {"of": "x"}}),
    Training(steps=8),
    seed=4,
)
NAMES = {"conditions": ["test"], "metrics": ["loss", "accuracy"], "groups": {"kind": ["a", "b"]}, "axes": {}}
CURVE = curve(
    [
        Point("", 0, "test", None, (1.0, 0.5)),
        Point("", 5, "train", None, (0.5,)),
        Point("", 5, "test", None, (0.25, float("nan"))),
        Point("", 5, "test", "kind=a", (0.1, 0.3)),
    ],
    NAMES["metrics"],
)
WEIGHTS = {"layer.weight": np.arange(6, dtype=np.float32).reshape(2, 3).T, "step": np.array(3)}


def save(store, spec=SPEC, *, weights=WEIGHTS, **provenance):
    """Store the made-up result."""
    store.save(spec, CURVE, weights, provenance, NAMES)
