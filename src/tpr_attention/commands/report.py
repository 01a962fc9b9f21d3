"""`tpr-attention report`: the report of what is stored."""

import os
from pathlib import Path

from rich.console import Console

from tpr_attention.experiments.layout import Setup
from tpr_attention.experiments.store import Store
from tpr_attention.report.write import infer_setup, write_report

__all__ = ["command", "write"]


def command(store: str, report: str, console: Console) -> int:
    """Write the report of a store."""
    runs = Store(store)
    write(runs, Path(report), infer_setup(runs), console)
    return 0


def write(store: Store, folder: Path, setup: Setup, console: Console) -> None:
    """Write the report and say where it is."""
    with console.status("writing the report"):
        page = write_report(store, folder, setup, workers=os.cpu_count() or 1)
    console.print(f"report: {page}", highlight=False, markup=False)
