"""`tpr-attention list`: everything that has a name."""

import os

from rich.console import Console

from tpr_attention.console import table
from tpr_attention.data.fillers import INTERACTIONS, MIXINGS
from tpr_attention.data.splits import SPLITS
from tpr_attention.experiments.layout import Setup
from tpr_attention.experiments.readings import READINGS
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.studies import PLANS
from tpr_attention.models import MODELS
from tpr_attention.report.write import infer_setup

__all__ = ["command"]


def command(store: str, console: Console) -> int:
    """Studies with their runs, readings, and the names a spec may have."""
    setup, stored = Setup(), set[str]()
    if os.path.exists(store):  # noqa: PTH110 (also for what cannot be a path)
        runs = Store(store)
        setup, stored = infer_setup(runs), set(runs)
    rows = []
    for name, plan in PLANS.items():
        specs = dict.fromkeys(plan(setup))
        rows.append([name, str(len(specs)), str(sum(spec.digest in stored for spec in specs))])
    title = f"studies, with {setup.seeds} seeds and {setup.steps:,} steps"
    table(title, ["name", "runs", f"stored in {store}"], rows, console)
    table("readings of the paper", ["name", "what is different"], [[n, r.title] for n, r in READINGS.items()], console)
    names = {"model": [*MODELS], "split": [*SPLITS], "interaction": [*INTERACTIONS], "mixing": [*MIXINGS]}
    table("names in a spec", ["key", "values"], [[key, ", ".join(known)] for key, known in names.items()], console)
    return 0
