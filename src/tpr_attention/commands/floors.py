"""`tpr-attention floors`: how low a loss can be, from the task alone."""

import sys
from collections.abc import Mapping, Sequence

from rich.console import Console

from tpr_attention.commands.keys import parse_line
from tpr_attention.console import table
from tpr_attention.report.style import number
from tpr_attention.tasks.composition.interactions import INTERACTIONS
from tpr_attention.tasks.composition.splits import SPLITS
from tpr_attention.training.spec import RunSpec, SpecError, full_key
from tpr_attention.training.sweep import sweep

__all__ = ["command"]

CELLS: dict[str, object] = {"task.interaction": [None, *INTERACTIONS], "task.split": [*SPLITS]}
"""What is shown if nothing is asked for: the paper's tasks."""


def command(changes: Sequence[str], console: Console) -> int:
    """Show the floors of each task, in training and in each test, and which tests cannot be solved."""
    sys.path.insert(0, "")  # what the user brings may lie in the folder the command is called from
    asked = parse_line(changes)
    name = asked.get("task", "composition")
    if not isinstance(name, str):
        raise SpecError(f"task: expected one name, got {name!r}")
    keys = {key if key in ("task", "seed") else full_key(key, name, "oracle"): value for key, value in asked.items()}
    for key, full in zip(asked, keys, strict=True):
        if full.partition(".")[0] not in ("task", "seed"):
            raise SpecError(f"{key}: floors depend on the task alone; expected keys of task {name!r}")
    given = {key: ".".join(key.split(".")[:2]) for key in keys}  # task.interaction.law is part of task.interaction
    cells = {key: value for key, value in CELLS.items() if name == "composition" and key not in given.values()}
    specs = sweep({**cells, "model": "oracle"}, keys)
    shown = [
        key for key in dict.fromkeys([*(CELLS if name == "composition" else ()), *given.values()]) if key != "task"
    ]
    rows, kinds = [], list[str]()
    for spec in specs:
        values = spec.keys()
        for condition, floors in _floors(spec).items():
            kinds = list(floors)
            is_solvable = floors[kinds[-1]] == 0
            losses = [number(floors[kind]) for kind in kinds]
            rows.append([*(_word(values[key]) for key in shown), condition, *losses, "yes" if is_solvable else "no"])
    columns = [key.removeprefix("task.") for key in shown]
    table("floors", [*columns, "condition", *kinds, "solvable"], rows, console)
    return 0


def _floors(spec: RunSpec) -> Mapping[str, Mapping[str, float]]:
    from tpr_attention.tasks.task import Floors  # only now: a wrong key is told before torch is loaded
    from tpr_attention.training.prepare import make_task

    task = make_task(spec.task, spec.seed)
    if not isinstance(task, Floors):
        raise SpecError(f"task: {spec.task.name!r} does not know how low a loss can be")
    floors = task.floors()
    return {condition: floors[condition] for condition in ("train", *task.conditions) if condition in floors}


def _word(value: object) -> str:
    return "none" if value is None else str(value)
