"""`tpr-attention floors`: how low a loss can be, from the task alone."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer

from rich.console import Console

from tpr_attention.commands.keys import parse_line
from tpr_attention.console import table, tell
from tpr_attention.report.style import number
from tpr_attention.tasks.composition.interactions import INTERACTIONS
from tpr_attention.tasks.composition.splits import SPLITS
from tpr_attention.training.spec import RunSpec, SpecError, full_key
from tpr_attention.training.sweep import sweep

__all__ = ["command"]

SILENT_SECONDS = 3.0

CELLS: dict[str, object] = {"task.interaction": [None, *INTERACTIONS], "task.split": [*SPLITS]}
"""What is shown if nothing is asked for: the paper's tasks."""


def command(changes: Sequence[str], console: Console) -> int:
    """Show the floors of each task, in training and in each test, and which tests cannot be solved."""
    sys.path.insert(0, "")  # what the user brings may lie in the folder the command is called from
    asked = parse_line(changes)
    name = asked.get("task", "composition")
    if not isinstance(name, str):
        raise SpecError(f"task: expected one name, got {name!r}")
    keys = {key: key if key in ("task", "seed") else full_key(key, name, "oracle") for key in asked}
    for key, full in keys.items():
        if full.partition(".")[0] not in ("task", "seed"):
            raise SpecError(f"{key}: floors depend on the task alone; expected keys of task {name!r}")
    given = [".".join(key.split(".")[:2]) for key in keys.values()]  # task.interaction.law is part of task.interaction
    cells = {key: value for key, value in CELLS.items() if name == "composition" and key not in given}
    specs = sweep({**cells, "model": "oracle"}, asked)
    shown = [key for key in dict.fromkeys([*(CELLS if name == "composition" else ()), *given]) if key != "task"]
    rows, kinds = [], list[str]()
    late = Timer(SILENT_SECONDS, tell, ["computing floors ..."])
    late.daemon = True
    if not console.is_terminal:  # where no progress is shown
        late.start()
    with console.status("floors") as status, _cancelled(late):
        for place, spec in enumerate(specs, start=1):
            status.update(f"floors of task {place} of {len(specs)}")
            values = spec.keys()
            for condition, floors in _floors(spec).items():
                kinds = list(floors)
                losses = [number(floors[kind]) for kind in kinds]
                is_solvable = "yes" if floors[kinds[-1]] == 0 else "no"
                rows.append([*(_word(values[key]) for key in shown), condition, *losses, is_solvable])
    columns = [key.removeprefix("task.") for key in shown]
    table("floors", [*columns, "condition", *kinds, "solvable"], rows, console)
    return 0


@contextmanager
def _cancelled(timer: Timer) -> Iterator[None]:
    try:
        yield
    finally:
        timer.cancel()


def _floors(spec: RunSpec) -> Mapping[str, Mapping[str, float]]:
    from tpr_attention.models.contract import foreign  # only now: a wrong key is told before torch is loaded
    from tpr_attention.tasks.task import Floors
    from tpr_attention.training.prepare import make_task

    task = make_task(spec.task, spec.seed)
    if not isinstance(task, Floors):
        raise SpecError(f"task: {spec.task.name!r} does not know how low a loss can be")
    try:
        with foreign():
            floors = task.floors()
            found = {condition: floors[condition] for condition in ("train", *task.conditions) if condition in floors}
            if not found or not all(isinstance(loss, float) for losses in found.values() for loss in losses.values()):
                raise ValueError(f"expected losses by name for each condition, got {floors!r}")
    except Exception as error:  # a user's may do anything
        raise SpecError(f"task: {spec.task.name!r} cannot tell how low a loss can be: {error}") from error
    return found


def _word(value: object) -> str:
    return "none" if value is None else str(value)
