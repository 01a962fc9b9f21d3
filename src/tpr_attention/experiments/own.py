"""A figure of runs that belong to no study: one line for each kind of run, one row for each task."""

from collections.abc import Iterable
from dataclasses import fields, replace

from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.studies import TESTS, Band, Curve, Panel, Study

__all__ = ["own_runs"]

TASK = ("split", "interaction")
MOST_LINES = 12


def own_runs(specs: Iterable[RunSpec]) -> Study:
    """Runs that differ only in their seed are one line.

    >>> study = own_runs([RunSpec(seed=0), RunSpec(seed=1), RunSpec(model="resnet", learning_rate=0.1)])
    >>> [curve.label for curve in study.panels[0].curves]
    ['tpr', 'resnet, learning_rate=0.1']
    """
    kinds: dict[RunSpec, list[RunSpec]] = {}
    for spec in specs:
        kinds.setdefault(replace(spec, seed=0), []).append(spec)
    tasks: dict[tuple[str, str | None], list[Curve]] = {}
    for kind, alike in kinds.items():
        curve = Curve(_label(kind), tuple(sorted(alike, key=lambda spec: spec.seed)))
        tasks.setdefault((kind.split, kind.interaction), []).append(curve)
    panels = [
        Panel(
            _task(split, interaction),
            test,
            split,
            interaction,
            None,
            condition,
            Band(2, "SE"),
            tuple(curves[:MOST_LINES]),
        )
        for (split, interaction), curves in sorted(tasks.items(), key=str)
        for condition, test in TESTS.items()
    ]
    caption = f"Runs that belong to no figure of the paper, at most {MOST_LINES} kinds for each task."
    return Study("own-runs", "Other runs", caption, tuple(panels))


def _label(kind: RunSpec) -> str:
    """The model, and what is not as usual."""
    usual = RunSpec()
    changes = [
        f"{key.name}={getattr(kind, key.name)}"
        for key in fields(kind)
        if key.name not in ("model", "options", "seed", *TASK) and getattr(kind, key.name) != getattr(usual, key.name)
    ]
    return ", ".join([kind.model, *(f"{name}={value}" for name, value in kind.options.items()), *changes])


def _task(split: str, interaction: str | None) -> str:
    return f"{split}, {interaction} interaction" if interaction else split
