"""The room "Sequences": recall tasks of pairs of keys and values, and the trained memories that answer in them."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tpr_attention.explorer.trained import Trained
from tpr_attention.generators import named_generator
from tpr_attention.studies.recall.looks import LOOKS
from tpr_attention.studies.recall.state_sizes import state_size
from tpr_attention.tasks.recall.capacity import Capacity
from tpr_attention.tasks.recall.compositional import DENSITY, Compositional
from tpr_attention.tasks.recall.sar import Sar
from tpr_attention.training.options import default_options
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import RunSpec, SpecError

__all__ = ["MODELS", "data"]

TASKS = ("recall-compositional", "recall-capacity", "recall-sar")
"""Tasks whose examples are pairs and queries, in the order in which they are shown."""
RECALL = "recall-"
"""How the names of all recall tasks begin."""
MODELS = ("recall-tpr", "recall-softmax", "recall-linear", "recall-dpfp", "recall-delta")
"""The models that sequences/models.js computes."""
PREFERRED = ("tpr", "softmax", "linear", "delta", "tpr-delta", "tpr-softmax", "dpfp")
"""The contestants that come first, in this order."""
MOST_KEYS = 600
"""Keys of a part, or values, that can be chosen in a page."""
MANY_NUMBERS = 20_000
"""Weights of larger models are rounded to 16 bits."""
MOST_BYTES = 800_000
"""Bytes of all weights of the room before they are compressed."""

Pairs = Compositional | Capacity | Sar


def data(trained: Sequence[Trained]) -> dict[str, Any] | None:
    """The tasks of trained memories of pairs, the memories, and what cannot be shown and why.

    Of runs that differ only in their training or seed the one with the most steps is shown, then the lowest seed.
    """
    runs = [run for run in trained if run.spec.task.name.startswith(RECALL)]
    tasks, left_out, space = dict[str, dict[str, Any]](), list[str](), MOST_BYTES
    for run in _chosen(runs):
        why = _unfit(run)
        model = _model(run) if why is None else {}
        size = sum(array.nbytes for array in model.get("weights", {}).values())
        if size > space:
            why = "the models before it fill the page"
        if why is not None:
            left_out.append(f"{run.label} ({run.spec.task.name}): {why}")
            continue
        space -= size
        key = _task_key(run.spec)
        if key not in tasks:
            tasks[key] = _task(run.spec)
        tasks[key]["models"].append(model)
    if not tasks:
        return None
    for task in tasks.values():
        _distinguish(task["models"])
    return {"tasks": [*tasks.values()], "left_out": left_out}


def _chosen(runs: Sequence[Trained]) -> list[Trained]:
    """One run for each model and task, in the order in which they are shown."""
    best: dict[str, Trained] = {}
    for run in runs:
        key = json.dumps([_task_key(run.spec), run.spec.model.name, run.spec.model.options], sort_keys=True)
        best[key] = min(best.get(key, run), run, key=lambda one: (-one.spec.training.steps, one.spec.seed))
    often = Counter(_task_key(run.spec) for run in best.values())
    return sorted(best.values(), key=lambda run: _place(run, often))


def _place(run: Trained, often: Mapping[str, int]) -> tuple[Any, ...]:
    """Tasks in their order, of each those with the most runs first; of a task the main contestants first."""
    name, look, key = run.spec.task.name, _look(run.spec), _task_key(run.spec)
    task = TASKS.index(name) if name in TASKS else len(TASKS)
    model = PREFERRED.index(look) if look in PREFERRED else len(PREFERRED)
    return task, -often[key], key, model, run.label


def _task_key(spec: RunSpec) -> str:
    return json.dumps([spec.task.name, spec.task.options], sort_keys=True)


def _unfit(run: Trained) -> str | None:
    """Why a run cannot be shown; None if it can."""
    if run.spec.task.name not in TASKS:
        return "its examples are not pairs of keys and values"
    if run.spec.model.name not in MODELS:
        return "the page does not know this model"
    if set(run.spec.model.options) != set(default_options("model", run.spec.model.name)):
        return "its options are those of another version"
    try:
        if max(_pairs_task(run.spec).sizes.values()) > MOST_KEYS:
            return "it has too many keys or values to choose from"
    except SpecError as error:
        return str(error)
    if not all(np.isfinite(array).all() for array in run.weights.values()):
        return "its weights are not finite"
    return None


def _pairs_task(spec: RunSpec) -> Pairs:
    task = make_task(spec.task, spec.seed)
    assert isinstance(task, Pairs)
    return task


def _task(spec: RunSpec) -> dict[str, Any]:
    """A task as the page needs it: `PairTask` in sequences/tasks.js."""
    task = _pairs_task(spec)
    lengths, trained_length = _lengths(task)
    condition = "ood" if "ood" in task.conditions else "in_distribution"
    example = task.draw(condition, 1, named_generator(spec.seed, "explorer"), torch.float32)
    return {
        "name": spec.task.name,
        "title": _title(task),
        "fields": task.sizes["key_fields"],
        "keys": task.sizes["num_keys"],
        "values": task.sizes["num_values"],
        "lengths": lengths,
        "trained_length": trained_length,
        "drawn": _drawn(task),
        "density": DENSITY,
        "are_probabilities": not isinstance(task, Capacity),
        "held_out": _held_out(task),
        "example": example.inputs[0][0].tolist(),
        "query": example.inputs[1][0, 0].tolist(),
        "models": [],
    }


def _title(task: Pairs) -> str:
    match task:
        case Compositional():
            return f"Keys of two parts, new pairings ({task.num_keys} x {task.num_keys} keys)"
        case Sar():
            return f"New kinds of pairs ({2 * task.each} keys)"
        case _:
            again = "written again" if task.setting == "replacement" else "each once"
            return f"Keys {again} ({task.num_pairs} keys)"


def _drawn(task: Pairs) -> str:
    """How sequences of a task are drawn: the name of a function in sequences/tasks.js."""
    match task:
        case Compositional():
            return "pairings"
        case Sar():
            return "kinds"
        case _:
            return task.setting


def _lengths(task: Pairs) -> tuple[list[int], int]:
    """The lengths of all sequences of a task, sorted, and that of training."""
    match task:
        case Compositional():
            return sorted({task.pairs * times for times in task.lengths.values()}), task.pairs
        case Sar():
            return sorted({task.pairs, task.test_pairs}), task.pairs
        case Capacity(setting="replacement"):
            return sorted({task.num_pairs * times for times in task.draws.values()}), 2 * task.num_pairs
        case _:
            return [task.num_pairs], task.num_pairs


def _held_out(task: Pairs) -> dict[str, Any] | None:
    """Which two columns of a pair training never shows together; None if it shows everything."""
    match task:
        case Compositional():
            every = torch.cartesian_prod(*(torch.arange(task.num_keys),) * 2)
            table = task.is_held_out(every).reshape(task.num_keys, task.num_keys)
            return {"columns": [0, 1], "table": table.numpy().astype(np.uint8)}
        case Sar():
            kind = np.arange(2 * task.each) >= task.each
            return {"columns": [0, 1], "table": (kind[:, None] == kind[None, :]).astype(np.uint8)}
        case _:
            return None


def _model(run: Trained) -> dict[str, Any]:
    spec = run.spec
    named = _folded({name: array.astype(np.float64) for name, array in run.weights.items()})
    dtype = np.float16 if sum(array.size for array in named.values()) > MANY_NUMBERS else np.float32
    first, second = (state_size(spec, length) for length in (1, 2))
    return {
        "name": spec.model.name,
        "words": _words(spec),
        "label": run.label,
        "digest": spec.digest,
        "colour": LOOKS[_look(spec)].colour,
        "options": {name: value for name, value in spec.model.options.items() if not isinstance(value, list | dict)},
        "state": {"constant": 2 * first - second, "each": second - first},
        "steps": spec.training.steps,
        "seed": spec.seed,
        "is_rounded": dtype == np.float16,
        "weights": {name: array.astype(dtype) for name, array in named.items()},
    }


def _folded(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights by the names of sequences/models.js; products of two tables are made here, since they are smaller."""
    names = dict(weights)
    for prefix in ("objects.", "encoder.objects."):
        if f"{prefix}wide" in names:
            names[f"{prefix}key_fillers"] = names.pop(f"{prefix}wide") @ names[f"{prefix}key_fillers"]
    if "encoder.table" in names:
        table = names.pop("encoder.table")
        names["encoder.key"], names["encoder.query"] = table @ names["encoder.key"], table @ names["encoder.query"]
    return names


def _look(spec: RunSpec) -> str:
    """The contestant whose colour a model has."""
    options = spec.model.options
    if spec.model.name == "recall-tpr":
        kinds = {"sum": "tpr", "delta": "tpr-delta", "replace": "tpr-small"}
        return "tpr-softmax" if options.get("match") == "softmax" else kinds[options.get("write", "sum")]
    kind = spec.model.name.removeprefix(RECALL)
    name = f"{kind}-roles" if "roles" in str(options.get("encoder")) else kind
    return name if name in LOOKS else "tpr-one"


def _words(spec: RunSpec) -> str:
    """What people call a model."""
    options = spec.model.options
    if spec.model.name == "recall-tpr":
        kinds = {"sum": "sum", "delta": "delta rule", "replace": "replace"}
        kind = "softmax match" if options["match"] == "softmax" else kinds[options["write"]]
        return f"TPR-Attention, {kind}"
    names: dict[str, Callable[[], str]] = {
        "recall-softmax": lambda: "Softmax attention",
        "recall-linear": lambda: "Linear attention",
        "recall-dpfp": lambda: f"Linear attention, DPFP-{options['nu']}",
        "recall-delta": lambda: "Delta rule",
    }
    same = ", encoder of TPR-Attention" if "roles" in str(options["encoder"]) else ""
    return names[spec.model.name]() + same


def _distinguish(models: list[dict[str, Any]]) -> None:
    """Name models by their options as well where names are alike."""
    often = Counter(model["words"] for model in models)
    for model in models:
        if often[model["words"]] > 1:
            model["words"] = f"{model['words']} ({model['label']})"
