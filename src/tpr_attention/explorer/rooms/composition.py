"""The room "Composition": worlds of the composition task as tables, and the trained models that answer in them."""

import json
from collections.abc import Iterable, Mapping, Sequence
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
"""The models that composition_models.js computes, and which of its functions does it."""
ORDER = ("tpr-laws", "tpr-stack", "tpr-second", "tpr", "tpr-deep", "classical", "classical-roles", "resnet")
"""The models that come first, in this order."""


def data(trained: Sequence[Trained]) -> dict[str, Any] | None:
    """The worlds of trained models of the composition task, the models, and what cannot be shown and why.

    For each model, split and interaction there is one run: that with the fewest unusual options of its task, of these
    the one with the most training pairs, then steps, then the lowest seed.
    """
    worlds, tables, models, left_out = dict[str, dict[str, Any]](), _Tables(), list[dict[str, Any]](), list[str]()
    for one in _chosen(run for run in trained if run.spec.task.name == TASK):
        why = _unfit(one)
        if why is None:
            key = _world_key(one.spec)
            try:
                if key not in worlds:
                    worlds[key] = _world(one.spec, tables)
            except (SpecError, _TooLargeError) as error:
                why = str(error)
        if why is None:
            models.append({**_model(one), "world": list(worlds).index(key)})
        else:
            left_out.append(f"{one.label} ({_setting(one.spec)}): {why}")
    if not models:
        return None
    return {"worlds": [*worlds.values()], "tables": tables.arrays, "models": models, "left_out": left_out}


def _chosen(runs: Iterable[Trained]) -> list[Trained]:
    """One run for each model, split and interaction, the models in the order in which they are shown."""
    best: dict[str, Trained] = {}
    for run in runs:
        key = json.dumps([run.spec.model.name, *_cell(run.spec)], sort_keys=True)
        best[key] = min(best.get(key, run), run, key=_preference)
    return sorted(best.values(), key=lambda run: (_cell_order(run.spec), _place(run.spec.model.name)))


def _preference(run: Trained) -> tuple[Any, ...]:
    spec, training = run.spec, run.spec.training
    usual = {**default_options("task", TASK), **dict(zip(("split", "interaction"), _cell(spec), strict=True))}
    unusual = sum(usual.get(name) != value for name, value in spec.task.options.items())
    return unusual, -training.train_examples, -training.steps, spec.seed, spec.digest


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
    """A task as tables: fillers, held-out combinations, conditions, floors; World in composition_task.js."""
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
        "weights": weights,
    }
