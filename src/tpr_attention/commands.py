"""What each command does, with a console to say it on."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from rich.console import Console

from tpr_attention.console import follow, table
from tpr_attention.data.fillers import INTERACTIONS, MIXINGS
from tpr_attention.data.splits import SPLITS
from tpr_attention.experiments.program import can_compile
from tpr_attention.experiments.readings import READINGS
from tpr_attention.experiments.run import missing, run
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.studies import PLANS, READ_AGAIN, Setup, specs_of
from tpr_attention.experiments.sweep import sweep
from tpr_attention.experiments.train import WORTH_COMPILING, groups
from tpr_attention.models import MODELS
from tpr_attention.report.style import number
from tpr_attention.report.write import infer_setup, write_report

__all__ = ["QUICK", "QUICK_STUDIES", "RequestError", "list_names", "report", "reproduce", "run_specs", "show"]

QUICK = Setup(seeds=2, steps=1_000)
QUICK_STUDIES = READ_AGAIN


class RequestError(ValueError):
    """A request that cannot be met as it is."""


def reproduce(
    path: Path, folder: Path, studies: Sequence[str], setup: Setup, workers: int | None, console: Console
) -> int:
    """Train what is not stored, then write the report."""
    store = Store(path, create=True)
    code = _train(specs_of(studies, setup), store, workers, console)
    _write(store, folder, setup, console)
    return code


def report(path: Path, folder: Path, console: Console) -> int:
    """Write the report of a store."""
    store = Store(path)
    _write(store, folder, infer_setup(store), console)
    return 0


def run_specs(changes: Sequence[str], file: Path | None, path: Path, workers: int | None, console: Console) -> int:
    """Train runs of the user's choice and show their losses."""
    specs = sweep(_described(changes, file))
    store = Store(path, create=True)
    code = _train(specs, store, workers, console)
    stored = [spec for spec in specs if spec.digest in store]
    _losses(f"{len(stored)} of {len(specs)} runs in {path}", stored, store, console)
    console.print(f"more: tpr-attention show DIGEST --store {path}", highlight=False)
    return code


def list_names(path: Path, console: Console) -> int:
    """Everything that has a name."""
    setup, stored = Setup(), set[str]()
    if (path / "store.json").exists():
        store = Store(path)
        setup, stored = infer_setup(store), set(store)
    rows = []
    for name, plan in PLANS.items():
        specs = dict.fromkeys(plan(setup))
        rows.append([name, str(len(specs)), str(sum(spec.digest in stored for spec in specs))])
    title = f"studies ({setup.seeds} seeds, {setup.steps:,} steps)"
    table(title, ["name", "runs", f"stored in {path}"], rows, console)
    table("readings of the paper", ["name", "what is different"], [[n, r.title] for n, r in READINGS.items()], console)
    names: dict[str, Iterable[str]] = {
        "models": MODELS,
        "splits": SPLITS,
        "interactions": INTERACTIONS,
        "mixings": MIXINGS,
    }
    table(
        "values of a spec's keys", ["key", "values"], [[key, ", ".join(known)] for key, known in names.items()], console
    )
    return 0


def show(digest: str, path: Path, console: Console) -> int:
    """One run."""
    store = Store(path)
    digest = store.find(digest)
    spec, curve, origin = store.spec(digest), store.curve(digest), store.provenance(digest)
    default = RunSpec()
    rows = [
        [key.name, str(getattr(spec, key.name)), "" if getattr(spec, key.name) == getattr(default, key.name) else "*"]
        for key in fields(spec)
    ]
    table(f"run {digest}", ["key", "value", "not the default"], rows, console)
    last = curve.filter(curve["step"] == curve["step"].max())
    roles = [name for name in curve.columns if name.startswith("role_")]
    losses = [
        [row["condition"], row["action"] or "all", number(row["loss"]), *(number(row[role]) for role in roles)]
        for row in last.iter_rows(named=True)
    ]
    names = [role.removeprefix("role_") for role in roles]
    table("losses at the end", ["condition", "action", "loss", *names], losses, console)
    table("provenance", ["what", "which"], [[key, str(value)] for key, value in origin.items()], console)
    return 0


def _train(specs: Sequence[RunSpec], store: Store, workers: int | None, console: Console) -> int:
    left = missing(specs, store)
    console.print(f"{len(specs)} runs, {len(specs) - len(left)} of them stored in {store.path}", highlight=False)
    if not left:
        return 0
    workers = workers or os.cpu_count() or 1
    if not can_compile() and any(len(group) * group[0].steps >= WORTH_COMPILING for group in groups(left)):
        console.print("no C++ compiler (g++ or clang++) found: training without compiled steps, several times slower")
    failures = follow(run(left, store, workers=workers), len(left), workers, console)
    store.write_table()
    lost = sum(len(failure.runs) for failure in failures)
    console.print(f"{len(left) - lost} runs trained" + (f", {lost} failed" if lost else ""), highlight=False)
    return 1 if lost else 0


def _write(store: Store, folder: Path, setup: Setup, console: Console) -> None:
    with console.status("writing the report"):
        page = write_report(store, folder, setup)
    console.print(f"report: {page}", highlight=False)


def _described(changes: Sequence[str], file: Path | None) -> dict[str, object]:
    """The file's keys, and over them those of the command line."""
    described: dict[str, object] = {}
    if file is not None:
        try:
            found = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise RequestError(f"{file}: cannot be read: {error}") from error
        if not isinstance(found, dict):
            raise RequestError(f"{file}: expected keys and values")
        described |= found
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise RequestError(f"{change}: expected key=value")
        try:
            described[key] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise RequestError(f"{change}: not a value: {error}") from error
    return described


def _losses(title: str, specs: Sequence[RunSpec], store: Store, console: Console) -> None:
    conditions = ("in_distribution", "ood_reference", "ood_transform", "ood_composition")
    rows = []
    for spec in specs:
        curve = store.curve(spec.digest)
        last = curve.filter((curve["step"] == curve["step"].max()) & curve["action"].is_null())
        losses = dict(last.select("condition", "loss").iter_rows())
        rows.append(
            [spec.digest, spec.model, spec.split, spec.interaction or "none", str(spec.seed)]
            + [number(losses.get(condition)) for condition in conditions]
        )
    columns = ["run", "model", "split", "interaction", "seed", *conditions]
    table(title, columns, rows, console)
