"""`tpr-attention list`: everything that has a name."""

import os

from rich.console import Console

from tpr_attention.console import table
from tpr_attention.models import MODELS
from tpr_attention.runner.store import Store
from tpr_attention.studies import STUDIES, Setup
from tpr_attention.studies.compose import infer_setup
from tpr_attention.studies.paper.readings import READINGS
from tpr_attention.tasks import TASKS
from tpr_attention.tasks.composition.interactions import INTERACTION_GROUPS
from tpr_attention.tasks.composition.splits import SPLITS
from tpr_attention.training.options import option_types
from tpr_attention.training.spec import Training

__all__ = ["command"]


def command(store: str, console: Console) -> int:
    """Studies with their runs, readings, and the names a spec may have."""
    setup, stored = Setup(), set[str]()
    if os.path.exists(store):  # noqa: PTH110 (also for what cannot be a path)
        runs = Store(store)
        setup, stored = infer_setup(runs), set(runs)
    rows = []
    for study in STUDIES.values():
        for name, plan in study.plans.items():
            specs = dict.fromkeys(plan(setup))
            count = sum(spec.digest in stored for spec in specs)
            rows.append([study.name, name, str(len(specs)), str(count)])
    title = f"studies, with {setup.seeds} seeds and {setup.steps:,} steps"
    table(title, ["study", "plan", "runs", f"stored in {store}"], rows, console)
    readings = [[name, reading.title] for name, reading in READINGS.items()]
    table("readings of the paper", ["name", "what is different"], readings, console)
    table("tasks: task=NAME, or a path", ["name", "options: task.OPTION=..."], _options("task", TASKS), console)
    table("models: model=NAME, or a path", ["name", "options: model.OPTION=..."], _options("model", MODELS), console)
    training = [[name, repr(getattr(Training(), name))] for name in Training.__struct_fields__]
    table("training: training.KEY=...", ["key", "default"], training, console)
    names = [["split", ", ".join(SPLITS)]]
    names += [[f"interaction: {words}", ", ".join(group)] for words, group in INTERACTION_GROUPS.items()]
    table("names in the options of composition", ["option", "names"], names, console)
    return 0


def _options(section: str, names: dict[str, str]) -> list[list[str]]:
    """The options of each entry with their defaults."""
    return [
        [name, ", ".join(f"{key}={value!r}" for key, value in option_types(section, name)[1].items())] for name in names
    ]
