"""`tpr-attention run`: train models of the user's choice."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from tpr_attention.commands.keys import of_file, of_line
from tpr_attention.commands.training import How, opened, train_missing
from tpr_attention.console import table
from tpr_attention.experiments.prepare import check
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.sweep import sweep
from tpr_attention.report.style import number

__all__ = ["command"]

CONDITIONS = ("in_distribution", "ood_reference", "ood_transform", "ood_composition")


def command(changes: Sequence[str], sweep_file: str | None, store: str, console: Console, **how: Any) -> int:
    """Train the runs and show their losses."""
    sys.path.insert(0, "")  # a model of the user's own may lie in the folder the command is called from
    specs = sweep(of_file(sweep_file) if sweep_file is not None else {}, of_line(changes))
    for spec in {replace(spec, seed=0): spec for spec in specs}.values():
        check(spec)  # before a store is made
    means = How(**how)
    with opened(store, means) as runs:
        code = train_missing(specs, runs, means, console)
        if not means.dry_run:
            stored = [spec for spec in specs if spec.digest in runs]
            _show(f"{len(stored)} of {len(specs)} runs in {store}", stored, runs, console)
            console.print(f"more: tpr-attention show DIGEST --store {store}", highlight=False, markup=False)
    return code


def _show(title: str, specs: Sequence[RunSpec], store: Store, console: Console) -> None:
    rows = []
    for spec in specs:
        curve = store.curve(spec.digest)
        last = curve.filter((curve["step"] == curve["step"].max()) & curve["action"].is_null())
        losses = dict(last.select("condition", "loss").iter_rows())
        rows.append(
            [spec.digest, spec.model, spec.place, spec.interaction or "none", str(spec.seed)]
            + [number(losses.get(condition)) for condition in CONDITIONS]
        )
    table(title, ["run", "model", "split", "interaction", "seed", *CONDITIONS], rows, console)
