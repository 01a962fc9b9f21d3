"""A figure of runs that belong to no study: one line for each kind of run, one row for each task."""

from collections.abc import Iterable
from dataclasses import fields, replace

from tpr_attention.experiments.layout import TESTS, Band, Curve, Panel, Study
from tpr_attention.experiments.spec import RunSpec

__all__ = ["in_brief", "own_runs"]

TASK = ("split", "interaction", "factors", "filler_dim", "noise")
MOST_LINES = 8


def own_runs(specs: Iterable[RunSpec]) -> Study:
    """Runs that differ only in their seed are one line.

    >>> study = own_runs([RunSpec(seed=0), RunSpec(seed=1), RunSpec(model="resnet", learning_rate=0.1)])
    >>> [curve.label for curve in study.panels[0].curves]
    ['resnet, learning_rate=0.1', 'tpr']
    """
    kinds: dict[RunSpec, list[RunSpec]] = {}
    for spec in specs:
        kinds.setdefault(replace(spec, seed=0), []).append(spec)
    tasks: dict[tuple[str, str | None], list[Curve]] = {}
    for kind, alike in sorted(kinds.items(), key=lambda item: _label(item[0])):
        curve = Curve(_label(kind), tuple(sorted(alike, key=lambda spec: spec.seed)))
        tasks.setdefault((kind.place, kind.interaction), []).append(curve)
    panels = [
        Panel(
            _task(split, interaction),
            test,
            split,
            interaction,
            None,
            condition,
            Band(2, "SE"),
            tuple(curves),
        )
        for (split, interaction), curves in sorted(tasks.items(), key=str)
        for condition, test in TESTS.items()
    ]
    return Study("own-runs", "Other runs", "Runs that belong to no figure of the paper.", tuple(panels))


def in_brief(study: Study) -> Study:
    """The same with at most `MOST_LINES` lines in a panel: more cannot be told apart."""
    if all(len(panel.curves) <= MOST_LINES for panel in study.panels):
        return study
    panels = tuple(replace(panel, curves=panel.curves[:MOST_LINES]) for panel in study.panels)
    said = f"{study.caption} Of each task only the first {MOST_LINES} kinds are drawn; the table has all."
    return replace(study, caption=said, panels=panels)


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
