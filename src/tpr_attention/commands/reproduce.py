"""`tpr-attention reproduce`: train what the paper's figures need, then write the report."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from tpr_attention.commands import report as reporting
from tpr_attention.commands.training import How, opened, train_missing
from tpr_attention.experiments.layout import Setup
from tpr_attention.experiments.studies import READ_AGAIN, specs_of

__all__ = ["command"]

QUICK = Setup(seeds=2, steps=1_000)


def command(
    store: str,
    report: str,
    studies: Sequence[str],
    seeds: int,
    steps: int,
    quick: bool,
    console: Console,
    **how: Any,
) -> int:
    """Train what is not stored, then write the report."""
    setup = QUICK if quick else Setup(int(seeds), int(steps))
    means = How(**how)
    with opened(store, means) as runs:
        code = train_missing(specs_of(READ_AGAIN if quick else studies, setup), runs, means, console)
        if means.is_part:
            console.print("when all parts are done: tpr-attention report", highlight=False)
        elif not means.dry_run:
            reporting.write(runs, Path(report), setup, console)
    return code
