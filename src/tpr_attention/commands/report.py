"""`tpr-attention report`: the report of what is stored."""

import os
from pathlib import Path

from rich.console import Console

from tpr_attention.console import tell
from tpr_attention.report.write import write_report
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose, infer_setup

__all__ = ["command", "write"]


def command(store: str, report: str, console: Console) -> int:
    """Write the report of a store."""
    runs = Store(store)
    write(runs, Path(report), infer_setup(runs), console)
    return 0


def write(store: Store, folder: Path, setup: Setup, console: Console) -> None:
    """Write the report and say where it is."""
    with console.status("writing the report"):
        document, results = compose(store, setup)
        page = write_report(document, folder, losses=results.final_values(), workers=os.cpu_count() or 1)
    for said in document.left_out:
        tell(f"left out: {said}")
    console.print(f"report: {page}", highlight=False, markup=False)
