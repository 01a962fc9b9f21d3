"""`tpr-attention floors`: how low a loss can be, from the task alone."""

from collections.abc import Sequence

from rich.console import Console

from tpr_attention.commands.keys import of_line
from tpr_attention.console import table
from tpr_attention.data import INTERACTIONS, SPLITS, Floors, floors
from tpr_attention.experiments.layout import TESTS
from tpr_attention.experiments.prepare import TASK_KEYS, WORLD_KEYS, task_of
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.sweep import sweep
from tpr_attention.report.style import number

__all__ = ["command"]

CELLS: dict[str, object] = {"interaction": [None, *INTERACTIONS], "split": [*SPLITS]}


def command(changes: Sequence[str], console: Console) -> int:
    """Show both floors of each task, in training and in each test, and which tests cannot be solved."""
    asked = of_line(changes)
    cells = {} if {*asked} & {*WORLD_KEYS} else CELLS
    specs = sweep(cells, asked)
    for key in asked:
        if key not in TASK_KEYS:
            raise SpecError(f"{key}: floors depend on the task alone; expected one of {', '.join(TASK_KEYS)}")
    keys = list(dict.fromkeys([*cells, *asked]))
    shown = {"train": "training", **TESTS}
    columns = [*keys, *(f"{words}: {kind}" for words in shown.values() for kind in Floors._fields), "not solvable"]
    rows = []
    for spec in specs:
        found = _floors(spec)
        losses = [number(loss) for name in shown for loss in found[name]]
        missing = [words for name, words in TESTS.items() if not found[name].solvable]
        rows.append([*(_word(getattr(spec, key)) for key in keys), *losses, ", ".join(missing) or "-"])
    table("floors", columns, rows, console)
    return 0


def _floors(spec: RunSpec) -> dict[str, Floors]:
    try:
        return floors(task_of(spec))
    except (ValueError, TypeError) as error:
        raise SpecError(str(error)) from error


def _word(value: object) -> str:
    return "none" if value is None else str(value)
