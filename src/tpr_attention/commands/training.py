"""Training on the command line: what is stored is skipped, the rest is shown as it goes on."""

import os
from collections.abc import Sequence

from rich.console import Console

from tpr_attention.console import follow
from tpr_attention.experiments.program import can_compile
from tpr_attention.experiments.run import missing, run
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.train import is_worth_compiling

__all__ = ["train_missing"]


def train_missing(specs: Sequence[RunSpec], store: Store, workers: int | None, console: Console) -> int:
    """Train the runs that are not stored; the exit code."""
    left = missing(specs, store)
    console.print(
        f"{len(specs)} runs, {len(specs) - len(left)} of them stored in {store.path}", highlight=False, markup=False
    )
    if not left:
        return 0
    workers = workers or os.cpu_count() or 1
    if not can_compile() and is_worth_compiling(left):
        console.print("no C++ compiler (g++ or clang++) found: steps are not compiled, and two to three times slower")
    failures = follow(run(left, store, workers=workers), len(left), workers, console)
    store.write_table()
    lost = sum(len(failure.runs) for failure in failures)
    console.print(f"{len(left) - lost} runs trained" + (f", {lost} failed" if lost else ""), highlight=False)
    return 1 if lost else 0
