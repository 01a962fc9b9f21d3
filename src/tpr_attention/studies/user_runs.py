"""Runs that belong to no study, of any task: one line for each kind of run, one row for each task."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from tpr_attention.report.document import Block, Section
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Band, Panel, Plan, Series
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import standard_error
from tpr_attention.report.tables import Column, Table
from tpr_attention.runner.store import Store
from tpr_attention.training.spec import RunSpec, Training, default_options

__all__ = ["user_runs", "user_section"]

MOST_LINES = 8


def user_runs(store: Store, specs: Iterable[RunSpec]) -> Plan:
    """A figure of runs; those that differ only in their seed are one line."""
    kinds: dict[RunSpec, list[RunSpec]] = {}
    for spec in specs:
        kinds.setdefault(spec.with_seed(0), []).append(spec)
    rows: dict[tuple[str, str], list[Series]] = {}
    for kind, alike in sorted(kinds.items(), key=lambda item: _run_words(item[0])):
        names = store.names(alike[0].digest)
        tests = json.dumps([names["conditions"], names["metrics"][0]])
        series = Series(_run_words(kind), tuple(sorted(alike, key=lambda spec: spec.seed)))
        rows.setdefault((_task_words(kind), tests), []).append(series)
    panels = []
    for (task, tests), lines in sorted(rows.items(), key=lambda row: row[0]):
        conditions, loss = json.loads(tests)
        for condition in conditions:
            about = {"task": task, "test": condition}
            panels.append(Panel(task, condition, about, condition, Band(2, "SE"), tuple(lines), metric=loss))
    return Plan("user-runs", "Other runs", "Runs that belong to no study.", tuple(panels))


def user_section(results: Results, plan: Plan) -> Section:
    """The curves and the final values of runs that belong to no study."""
    columns = [Column("task"), Column("test"), Column("run"), Column("seeds", "count"), Column("metric")]
    columns += [Column("mean", "mean"), Column("SE", "number")]
    losses: list[list[Any]] = []
    others: list[list[Any]] = []
    for panel in plan.panels:
        for series in panel.series:
            for metric in results.store.names(series.specs[0].digest)["metrics"]:
                values = results.final(series, panel.condition, metric)
                row = [panel.row, panel.column, series.name, len(values), metric, values, standard_error(values)]
                (losses if metric == panel.metric else others).append(row)
    drawn = _in_brief(plan)
    blocks: list[Block] = [
        Curves(drawn, results),
        Table("user-runs", "Final losses of these runs.", columns, losses),
    ]
    if others:
        blocks.append(Table("user-metrics", "Their other metrics.", columns, others, folded=True))
    return Section("Other runs", blocks)


def _in_brief(plan: Plan) -> Plan:
    """The same with at most `MOST_LINES` lines in a panel: more cannot be told apart."""
    if all(len(panel.series) <= MOST_LINES for panel in plan.panels):
        return plan
    panels = tuple(replace(panel, series=panel.series[:MOST_LINES]) for panel in plan.panels)
    said = f"{plan.caption} Of each task only the first {MOST_LINES} kinds are drawn; the table has all."
    return replace(plan, caption=said, panels=panels)


def _run_words(kind: RunSpec) -> str:
    """The model, and what is not as usual."""
    usual, training = msgspec.to_builtins(Training()), msgspec.to_builtins(kind.training)
    changed = {key: value for key, value in training.items() if value != usual[key] and key != "device"}
    return _words(kind.model.name, {**_unusual("model", kind.model.name, kind.model.options), **changed})


def _task_words(kind: RunSpec) -> str:
    return _words(kind.task.name, _unusual("task", kind.task.name, kind.task.options))


def _unusual(section: str, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not the defaults of a task or model of this package; all of a user's own."""
    usual = default_options(section, name)
    return {key: value for key, value in options.items() if key not in usual or value != usual[key]}


def _words(name: str, options: Mapping[str, Any]) -> str:
    return ", ".join([name, *(f"{key}={value}" for key, value in options.items())])
