"""`tpr-attention run`: train models of the user's choice."""

import sys
from collections.abc import Sequence
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from rich.console import Console

from tpr_attention.commands.training import train_missing
from tpr_attention.console import table
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.sweep import sweep
from tpr_attention.report.style import number

__all__ = ["command"]

CONDITIONS = ("in_distribution", "ood_reference", "ood_transform", "ood_composition")


def command(changes: Sequence[str], sweep_file: str | None, store: str, workers: int | None, console: Console) -> int:
    """Train the runs and show their losses."""
    sys.path.insert(0, "")  # a model of the user's own may lie in the folder the command is called from
    specs = sweep(_described(changes, sweep_file))
    runs = Store(store, create=True)
    code = train_missing(specs, runs, workers, console)
    stored = [spec for spec in specs if spec.digest in runs]
    _show(f"{len(stored)} of {len(specs)} runs in {store}", stored, runs, console)
    console.print(f"more: tpr-attention show DIGEST --store {store}", highlight=False, markup=False)
    return code


def _described(changes: Sequence[str], sweep_file: str | None) -> dict[str, object]:
    """The file's keys, and over them those of the command line."""
    described: dict[str, object] = {}
    if sweep_file is not None:
        try:
            found = yaml.safe_load(Path(sweep_file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise SpecError(f"{sweep_file}: cannot be read: {error}") from error
        if not isinstance(found, dict):
            raise SpecError(f"{sweep_file}: expected keys and values")
        described |= found
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise SpecError(f"{change}: expected key=value")
        try:
            described[key] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise SpecError(f"{change}: not a value: {error}") from error
    return described


def _show(title: str, specs: Sequence[RunSpec], store: Store, console: Console) -> None:
    rows = []
    for spec in specs:
        curve = store.curve(spec.digest)
        last = curve.filter((curve["step"] == curve["step"].max()) & curve["action"].is_null())
        losses = dict(last.select("condition", "loss").iter_rows())
        rows.append(
            [spec.digest, spec.model, spec.split, spec.interaction or "none", str(spec.seed)]
            + [number(losses.get(condition)) for condition in CONDITIONS]
        )
    table(title, ["run", "model", "split", "interaction", "seed", *CONDITIONS], rows, console)
