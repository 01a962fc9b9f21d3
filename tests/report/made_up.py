"""A store of runs that nobody trained: losses are simple functions of model, seed and step."""

from dataclasses import replace

import numpy as np

from tpr_attention.experiments.curves import curve
from tpr_attention.experiments.layout import TESTS, Band, Curve, Panel, Study
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store

STEPS = (0, 50, 100)
LEVELS = {"tpr": 1e-4, "classical": 1e-2, "resnet": 3e-2, "linear-floor": 5e-3, "oracle": 1e-3}


def losses(spec: RunSpec, condition: str) -> np.ndarray:
    """One loss a step: they fall from 1 and differ by seed and condition."""
    steps = np.array(STEPS) if spec.model not in ("linear-floor", "oracle") else np.array([0])
    if len(steps) == 1:
        return np.array([LEVELS[spec.model] * (1 + spec.seed)])
    end = LEVELS.get(spec.model, 1e-1) * (1 + spec.seed) * (1 + list(TESTS).index(condition))
    return end ** (steps / steps[-1])


def save(store: Store, spec: RunSpec, values=losses) -> None:
    """Add a run with these losses, all of them in its one role."""
    points = []
    for condition in TESTS:
        found = values(spec, condition)
        steps = STEPS if len(found) == len(STEPS) else (0,)
        points += [Point(spec.digest, step, condition, (float(loss),)) for step, loss in zip(steps, found, strict=True)]
    store.save(spec, curve(points, {"shape": 1.0}), {"w": np.zeros(1)}, {"seconds": 1.0})


def runs(label: str, seeds: int, **changes) -> Curve:
    """A line over seeds."""
    spec = replace(RunSpec(model=label, steps=STEPS[-1]), **changes)
    return Curve(label, tuple(replace(spec, seed=seed) for seed in range(seeds)))


def study(
    models=("tpr", "classical", "resnet"), floors=("linear-floor", "oracle"), seeds=3, bands=((2, "SD"),)
) -> Study:
    """Two rows of one panel for each band."""
    panels = []
    for row, split in {"first": "square_red", "second": "scale_pos"}.items():
        curves = tuple(runs(model, seeds, split=split) for model in models)
        below = tuple(runs(floor, seeds, split=split) for floor in floors)
        conditions = zip(TESTS.items(), bands, strict=False)
        panels += [
            Panel(row, test, split, None, 4, condition, Band(*kind), curves, below)
            for (condition, test), kind in conditions
        ]
    return Study("made-up", "A study nobody ran", "Losses that are made up.", tuple(panels))
