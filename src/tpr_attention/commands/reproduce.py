"""`tpr-attention reproduce`: train what studies need, then write the report."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from tpr_attention.commands import report as reporting
from tpr_attention.commands.training import TrainingSettings, open_store, train_missing
from tpr_attention.imports import nearest
from tpr_attention.studies import STUDIES, Setup
from tpr_attention.studies.compose import infer_setup
from tpr_attention.studies.paper.figures import MAIN
from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.sweep import expect_count

__all__ = ["command"]

QUICK = Setup(seeds=2, steps=1_000)


def command(
    store: str,
    report: str,
    studies: Sequence[str] | None,
    seeds: int,
    steps: int,
    quick: bool,
    console: Console,
    **settings: Any,
) -> int:
    """Train what is not stored, then write the report."""
    training = TrainingSettings(**settings)
    default = [name for study in STUDIES.values() for name in study.by_default]
    names, setup = _quick(studies) if quick else (studies or default, Setup(int(seeds), int(steps)))
    expect_count(len(_specs(names, Setup(1, setup.steps))) * setup.seeds)  # before they are listed
    specs = _specs(names, setup)
    with open_store(store, training) as runs:
        code = train_missing(specs, runs, training, console)
        if training.is_part:
            console.print("when all parts are done: tpr-attention report", highlight=False)
        elif not training.dry_run:
            reporting.write(runs, Path(report), setup, console)
            if quick and infer_setup(runs) != setup:
                console.print(
                    "it is about the quick runs; of all that is stored: tpr-attention report", highlight=False
                )
    return code


def _quick(studies: Sequence[str] | None) -> tuple[Sequence[str], Setup]:
    """What `--quick` trains: the paper's main figures, or a part of another study."""
    if not studies:
        return MAIN, QUICK
    known = {name: study.quick for name, study in STUDIES.items() if study.quick is not None}
    if len(studies) != 1 or studies[0] not in known:
        raise SpecError(f"--quick: expected no study or one of {', '.join(known)}, got {', '.join(studies)}")
    plan, setup = known[studies[0]]
    return [plan], setup


def _specs(names: Sequence[str], setup: Setup) -> list[RunSpec]:
    """The distinct runs of studies and plans by name."""
    plans = {name: plan for study in STUDIES.values() for name, plan in study.plans.items()}
    known = {name: study.specs for name, study in STUDIES.items()} | plans
    for name in names:
        if name not in known:
            raise SpecError(f"--studies: expected some of {', '.join(known)}, got {name!r}{nearest(name, known)}")
    return list(dict.fromkeys(spec for name in names for spec in known[name](setup)))
