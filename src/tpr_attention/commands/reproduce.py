"""`tpr-attention reproduce`: train what the paper's figures need, then write the report."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tpr_attention.commands import report as reporting
from tpr_attention.commands.training import train_missing
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.studies import READ_AGAIN, Setup, specs_of

__all__ = ["command"]

QUICK = Setup(seeds=2, steps=1_000)


def command(
    store: str,
    report: str,
    studies: Sequence[str],
    seeds: int,
    steps: int,
    quick: bool,
    workers: int | None,
    console: Console,
) -> int:
    """Train what is not stored, then write the report."""
    setup = QUICK if quick else Setup(int(seeds), int(steps))
    runs = Store(store, create=True)
    code = train_missing(specs_of(READ_AGAIN if quick else studies, setup), runs, workers, console)
    reporting.write(runs, Path(report), setup, console)
    return code
