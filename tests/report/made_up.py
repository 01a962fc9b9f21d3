"""Runs that nobody trained, of a task that does not exist: values are simple functions of model, seed and step."""

from dataclasses import replace

import numpy as np

from tpr_attention.report.panels import Band, Look, Panel, Plan, Series
from tpr_attention.runner.store import Store
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point, group_label
from tpr_attention.training.spec import Component, RunSpec, Training

STEPS = (0, 50, 100)
CONDITIONS = {"near": "Near", "far": "Far", "farther": "Farther"}
KINDS = ("large", "small")
NAMES = {
    "conditions": list(CONDITIONS),
    "metrics": ["loss", "accuracy"],
    "groups": {"kind": list(KINDS)},
    "axes": {"side": ["left", "right"]},
}
LEVELS = {"ours": 1e-4, "other": 1e-2, "third": 3e-2, "fit": 5e-3, "best": 1e-3}
"""The loss at the end of training of seed 0; `fit` and `best` are floors."""
FLOORS = ("fit", "best")
WORDS = {"ours": "Our model", "other": "The other", "third": "A third", "fit": "best fit", "best": "best answer"}
LOOKS = {
    "ours": Look("#d1242f", (), "o"),
    "other": Look("#b07800", (5, 2), "s"),
    "third": Look("#2563c9", (6, 2, 1, 2), "^"),
    "fit": Look("#1f2328", (1, 1.6), "", 1.2),
    "best": Look("#1f2328", (10, 3), "", 1.2),
}


def losses(spec: RunSpec, condition: str) -> np.ndarray:
    """One loss a step: they fall from 1 and differ by seed and condition; a floor has one."""
    end = LEVELS.get(spec.model.name, 1e-1) * (1 + spec.seed)
    if spec.model.name in FLOORS:
        return np.array([end])
    return (end * (1 + list(CONDITIONS).index(condition))) ** (np.array(STEPS) / STEPS[-1])


def save(store: Store, spec: RunSpec, values=losses, provenance=None) -> None:
    """Add a run with these losses. Its accuracy is 1 - loss; that of a group at the end is told by `of_kind`."""
    points = []
    for condition in CONDITIONS:
        found = values(spec, condition)
        steps = STEPS[: len(found)]
        for step, loss in zip(steps, found.tolist(), strict=True):
            points.append(Point(spec.digest, step, condition, None, (loss, 1 - loss)))
        points += [
            Point(spec.digest, steps[-1], condition, group_label("kind", kind), of_kind(found[-1], place))
            for place, kind in enumerate(KINDS)
        ]
    origin = {"seconds": 1.0} | (provenance or {})
    store.save(spec, curve(points, NAMES["metrics"]), {"w": np.zeros(1)}, origin, NAMES)


def of_kind(loss: float, place: int) -> tuple[float, float]:
    """The metrics of a group of examples."""
    return float(loss) * (1 + place), float(place)


def spec_of(model: str, seed: int = 0, **options: object) -> RunSpec:
    """A spec of the task."""
    return RunSpec(Component("made-up", options), Component(model), Training(steps=STEPS[-1]), seed)


def series(model: str, seeds: int, **options: object) -> Series:
    """A line over seeds."""
    specs = tuple(spec_of(model, seed, **options) for seed in range(seeds))
    return Series(model, specs, WORDS.get(model, ""), LOOKS.get(model))


def mark(floors):
    """What a panel says of its floors."""
    return "" if "best" not in floors else "solvable" if floors["best"] < 1e-10 else "not solvable"


def plan(models=("ours", "other", "third"), floors=FLOORS, seeds=3, bands=((2, "SD"),), **changes) -> Plan:
    """Two rows, with one panel for each band."""
    panels = []
    for row in ("first", "second"):
        lines, below = (tuple(series(model, seeds, row=row) for model in names) for names in (models, floors))
        for (condition, title), kind in zip(CONDITIONS.items(), bands, strict=False):
            cell = {"row": row, "test": title}
            panel = Panel(row, title, cell, condition, Band(*kind), lines, below, mark=mark)
            panels.append(replace(panel, **changes))
    return Plan("made-up", "A figure nobody ran", "Made-up losses.", tuple(panels), "Solvable: no loss is needed.")


def head_weights(order=1, heads=3, prefix="attention.", seed=0):
    """Random weights of a layer of heads; the first order has no axis of its own."""
    draw = np.random.default_rng(seed).normal
    own = () if order == 1 else (order,)
    shapes = {
        "query_map": (heads, *own, 5, 6),
        "id_query": (heads, *own, 2),
        "role_map": (heads, 5, 6),
        "filler_map": (heads, *[3] * order, 3),
    }
    return {prefix + name: draw(size=shape).astype(np.float32) for name, shape in shapes.items()}
