"""`tpr-attention run`: train models of the user's choice on tasks of the user's choice."""

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from tpr_attention.commands.keys import parse_file, parse_line
from tpr_attention.console import DIVERGED, diverged_words, table
from tpr_attention.report.style import number
from tpr_attention.runner.store import Store
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.sweep import sweep

__all__ = ["command"]


def command(changes: Sequence[str], sweep_file: str | None, store: str, console: Console, **settings: Any) -> int:
    """Train the runs and show their losses."""
    sys.path.insert(0, "")  # what the user brings may lie in the folder the command is called from
    specs = sweep(parse_file(sweep_file) if sweep_file is not None else {}, parse_line(changes))
    # only now: a wrong key is told before torch is loaded
    from tpr_attention.commands.training import TrainingSettings, open_store, train_missing
    from tpr_attention.training.prepare import check

    for spec in {spec.with_seed(0): spec for spec in specs}.values():
        check(spec)  # before a store is made
    training = TrainingSettings(**settings)
    with open_store(store, training) as runs:
        code = train_missing(specs, runs, training, console)
        if not training.dry_run:
            stored = [spec for spec in specs if spec.digest in runs]
            if stored:
                _show(f"{len(stored)} of {len(specs)} runs in {store}", stored, runs, console)
                console.print(f"more: tpr-attention show DIGEST --store {store}", highlight=False, markup=False)
            diverged = sum(runs.divergence(spec.digest) is not None for spec in stored)
            if diverged:
                console.print(f"{diverged} of {len(stored)} runs diverged", style="red", highlight=False)
                return code or DIVERGED
    return code


def _show(title: str, specs: Sequence[RunSpec], store: Store, console: Console) -> None:
    """The first metric of every run at its end, under each condition of its task."""
    names = {spec.digest: store.names(spec.digest) for spec in specs}
    conditions = list(dict.fromkeys(condition for found in names.values() for condition in found["conditions"]))
    changing = _changing(specs)
    rows = []
    for spec in specs:
        values = spec.keys()
        rows.append([spec.digest, *(str(values.get(key, "-")) for key in changing)])
        divergence = store.divergence(spec.digest)
        if divergence is not None:
            rows[-1] += [diverged_words(divergence), *("" for _ in conditions[1:])]
            continue
        curve = store.curve(spec.digest)
        last = curve.filter(
            (curve["step"] == curve["step"].max())
            & curve["group"].is_null()
            & (curve["metric"] == names[spec.digest]["metrics"][0])
        )
        losses = dict(last.select("condition", "value").iter_rows())
        rows[-1] += [number(losses.get(condition)) for condition in conditions]
    table(title, ["run", *changing, *conditions], rows, console)


def _changing(specs: Sequence[RunSpec]) -> list[str]:
    """Task, model, seed, and the keys that are not the same in all runs."""
    rows = [spec.keys() for spec in specs]
    keys = dict.fromkeys(key for row in rows for key in row)
    several = [key for key in keys if len({str(row.get(key)) for row in rows if key in row}) > 1]
    return ["task", "model", *(key for key in several if key not in ("task", "model", "seed")), "seed"]
