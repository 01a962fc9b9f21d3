"""The room "Composition": worlds of the composition task as tables, and the trained models that answer in them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any

import numpy as np

from tpr_attention.explorer.trained import Trained
from tpr_attention.models.composition.tpr_laws import SHARPNESS
from tpr_attention.studies.contestants import CONTESTANTS, words
from tpr_attention.studies.paper.heads import NORMALISED
from tpr_attention.tasks.composition.encoding import FillerTable
from tpr_attention.tasks.composition.splits import SPLITS
from tpr_attention.tasks.composition.task import Composition
from tpr_attention.training.options import default_options
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import RunSpec, SpecError

__all__ = ["KINDS", "data"]

TASK = "composition"
MOST_ROWS = 32_768
"""Rows of fillers, or combinations of a split, that a page may have of one world."""
MOST_BYTES = 1_200_000
"""Of all weights together, before they are compressed."""
FEW = 100
"""Of runs with fewer training pairs than the most, those nearest to this number are shown."""

KINDS: dict[str, str] = {
    "tpr": "heads",
    "tpr-second": "heads",
    "tpr-stack": "heads",
    "tpr-deep": "heads",
    "tpr-laws": "laws",
    "classical": "attention",
    "classical-matched": "attention",
    "classical-deep": "attention",
    "classical-roles": "role-attention",
    "classical-roles-matched": "role-attention",
    "resnet": "feed-forward",
    "resnet-matched": "feed-forward",
    "resnet-deep": "feed-forward",
    "linear": "linear",
    "interpolate": "gates",
    "linear-floor": "linear-by-action",
}
"""The models that composition/models.js computes, and which of its functions does it."""
ORDER = ("tpr-laws", "tpr-stack", "tpr-second", "tpr", "tpr-deep", "classical", "classical-roles", "resnet")
"""The models that come first, in this order."""


def data(trained: Sequence[Trained]) -> dict[str, Any] | None:
    """The worlds of trained models of the composition task, the models, and what cannot be shown and why.

    Of each model, split, interaction and number of training pairs there is one run: that with the fewest unusual
    options of its task, of these the one with the most steps, then the lowest seed. Numbers of pairs are the most and
    the one nearest to `FEW`. What does not fit in `MOST_BYTES` is left out.
    """
    worlds, tables, models, left_out = dict[str, dict[str, Any]](), _Tables(), list[dict[str, Any]](), list[str]()
    left = MOST_BYTES
    for one in _chosen(run for run in trained if run.spec.task.name == TASK):
        size = sum(array.nbytes for array in one.weights.values())
        why = _unfit(one) or ("the page would be too large" if size > left else None)
        if why is None:
            key = _world_key(one.spec)
            try:
                if key not in worlds:
                    worlds[key] = _world(one.spec, tables)
            except (SpecError, _TooLargeError) as error:
                why = str(error)
        if why is None:
            models.append({**_model(one), "world": list(worlds).index(key)})
            left -= size
        else:
            left_out.append(f"{one.label} ({_setting(one.spec)}): {why}")
    if not models:
        return None
    return {"worlds": [*worlds.values()], "tables": tables.arrays, "models": models, "left_out": left_out}


def _chosen(runs: Iterable[Trained]) -> list[Trained]:
    """The runs to be shown, the most important first: those with the most pairs, then red squares, then by model."""
    cells: dict[str, dict[int, dict[str, Trained]]] = {}
    for run in runs:
        of_cell = cells.setdefault(json.dumps(_cell(run.spec), sort_keys=True), {})
        best = of_cell.setdefault(run.spec.training.train_examples, {})
        best[run.spec.model.name] = min(best.get(run.spec.model.name, run), run, key=_preference)
    most = [of_cell[max(of_cell)] for of_cell in cells.values()]
    fewer = [of_cell[_few(of_cell)] for of_cell in cells.values() if len(of_cell) > 1]
    return [
        run for found in (most, fewer) for run in sorted((one for best in found for one in best.values()), key=_order)
    ]


def _few(sizes: Iterable[int]) -> int:
    """The number of pairs nearest to `FEW` that is not the largest."""
    return min(sorted(sizes)[:-1], key=lambda size: abs(log(size / FEW)))


def _order(run: Trained) -> tuple[Any, ...]:
    return _cell_order(run.spec), _place(run.spec.model.name)


def _preference(run: Trained) -> tuple[Any, ...]:
    spec, training = run.spec, run.spec.training
    usual = {**default_options("task", TASK), **dict(zip(("split", "interaction"), _cell(spec), strict=True))}
    unusual = sum(usual.get(name) != value for name, value in spec.task.options.items())
    return unusual, -training.steps, spec.seed, spec.digest


def _cell(spec: RunSpec) -> tuple[Any, Any]:
    return spec.task.options.get("split", "square_red"), spec.task.options.get("interaction")


def _cell_order(spec: RunSpec) -> tuple[int, str, str]:
    """Red squares first, as in the paper's main figures, and no interaction before others."""
    split, interaction = _cell(spec)
    names = [*reversed(SPLITS)]
    return names.index(split) if split in names else len(names), json.dumps(split), json.dumps(interaction or "")


def _place(name: str) -> tuple[int, str]:
    return ORDER.index(name) if name in ORDER else len(ORDER), name


def _setting(spec: RunSpec) -> str:
    split, interaction = _cell(spec)
    return f"split {_said(split)}, interaction {_said(interaction)}"


def _said(value: object) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _unfit(run: Trained) -> str | None:
    """Why a run cannot be shown; None if it can, as far as its spec and weights tell."""
    split, interaction = _cell(run.spec)
    if run.spec.model.name not in KINDS:
        return "the page does not know this model"
    if isinstance(split, str) and split not in SPLITS:
        return "its split is code of your own"
    if isinstance(interaction, Mapping):
        return "its interaction is code of your own"
    if not all(np.isfinite(array).all() for array in run.weights.values()):
        return "its weights are not finite"
    return None


def _world_key(spec: RunSpec) -> str:
    """Equal for runs of the same world: the seed decides what an interaction draws."""
    return json.dumps([spec.task.options, spec.seed if _cell(spec)[1] else None], sort_keys=True)


class _TooLargeError(ValueError):
    """A world has more combinations than fit in a page."""


class _Tables:
    """Tables of fillers in 32 bits, as tasks give them to models; equal ones are kept once."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._numbers: dict[tuple[Any, ...], int] = {}

    def add(self, table: FillerTable) -> int:
        """The number of a table."""
        if len(table.fillers) > MOST_ROWS:
            raise _TooLargeError(f"its interaction has {len(table.fillers):,} fillers, too many for a page")
        array = table.fillers.float().numpy()
        key = array.shape, array.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.arrays)
            self.arrays.append(array)
        return self._numbers[key]


def _world(spec: RunSpec, tables: _Tables) -> dict[str, Any]:
    """A task as tables: fillers, held-out combinations, conditions, floors; World in composition/task.js."""
    task = make_task(spec.task, spec.seed)
    assert isinstance(task, Composition)
    grid, encoding, pairing = task.grid, task.encoding, task.pairing
    held_out = pairing.held_out
    if held_out.table.numel() > MOST_ROWS:
        raise _TooLargeError(f"its split has {held_out.table.numel():,} combinations, too many for a page")
    split, interaction = _cell(spec)
    unusual = {
        name: value
        for name, value in spec.task.options.items()
        if name not in ("split", "interaction") and default_options("task", TASK).get(name) != value
    }
    known = np.split(task.known_rows.numpy(), encoding.starts[1:])
    return {
        "split": _said(split),
        "interaction": _said(interaction),
        "options": {name: _said(value) for name, value in unusual.items()},
        "seed": spec.seed if interaction else None,
        "columns": [{"name": one.name, "values": [*one.values], "labels": [*one.labels]} for one in grid.columns],
        "actions": [
            {"name": name, "columns": [grid.index(column) for column in columns]}
            for name, columns in grid.actions.items()
        ],
        "roles": [
            {
                "name": table.role,
                "columns": [grid.index(name) for name in table.columns],
                "table": tables.add(table),
                "guess": None if table.guess is None else table.guess.tolist(),
                "known": None if rows.all() else rows.astype(int).tolist(),
                "scored": scored,
            }
            for table, rows, scored in zip(encoding.tables, known, task.scored, strict=True)
        ],
        "held_out": {
            "columns": [grid.index(name) for name in held_out.names],
            "table": held_out.table.flatten().int().tolist(),
            "share": held_out.share,
        },
        "conditions": {
            name: [condition.reference, condition.transform, condition.target]
            for name, condition in pairing.conditions.items()
            if name != "in_distribution"
        },
        "require_change": bool(spec.task.options.get("require_change", False)),
        "noise": task.noise,
        "floors": task.floors(),
    }


def _model(run: Trained) -> dict[str, Any]:
    spec = run.spec
    weights = {
        name: array if array.dtype in (np.float16, np.float32) else array.astype(np.float32)
        for name, array in run.weights.items()
    }
    return {
        "name": spec.model.name,
        "label": run.label,
        "words": words(spec.model.name) if spec.model.name in CONTESTANTS else spec.model.name,
        "digest": spec.digest,
        "kind": KINDS[spec.model.name],
        "normalised": [*NORMALISED.get(spec.model.name, ())],
        "sharpness": SHARPNESS,
        "carries": bool(spec.model.options.get("carries", True)),
        "heads": int(spec.model.options.get("num_heads", 0)),
        "pairs": spec.training.train_examples,
        "steps": spec.training.steps,
        "seed": spec.seed,
        "bits": min(8 * array.dtype.itemsize for array in weights.values()),
        "weights": weights,
    }
