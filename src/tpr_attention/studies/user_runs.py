"""Runs that belong to no study, of any task: one line for each kind of run, one row for each task."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tpr_attention.imports import is_path
from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Band, Panel, Plan, Series
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import mean
from tpr_attention.report.tables import Column, Table
from tpr_attention.runner.store import Store
from tpr_attention.studies.contestants import CONTESTANTS, FLOORS, TESTS, words
from tpr_attention.studies.kinds import (
    SHORT,
    cost,
    kinds_of,
    linked,
    run_words,
    shared_training,
    source_words,
    task_words,
)
from tpr_attention.training.spec import RunSpec

__all__ = ["user_opening", "user_runs", "user_section"]

MOST_LINES = 8
MOST_BEST = 3
"""Kinds of runs that are named where several are equally good."""
MOST_METRICS = 3
"""Tasks with more metrics have all but the first in a table that Markdown leaves to a file."""


def user_runs(store: Store, specs: Iterable[RunSpec]) -> Plan:
    """A figure of runs; those that differ only in their seed are one line. Floors are horizontal."""
    kinds = kinds_of(specs)
    sources, shared = source_words(kinds), shared_training(kinds)
    rows: dict[tuple[str, str], list[Series]] = {}
    for kind, alike in kinds.items():
        names = store.names(alike[0].digest)
        tests = json.dumps([names["conditions"], names["metrics"][0]])
        source = f" ({sources[kind]})" if kind in sources else ""
        rows.setdefault((task_words(kind), tests), []).append(_series(kind, alike, run_words(kind, shared) + source))
    panels = []
    titles = Counter(task for task, _ in rows)
    for (task, tests), lines in sorted(rows.items(), key=lambda row: row[0]):
        conditions, loss = json.loads(tests)
        first = lines[0].specs[0]
        # a task whose code has changed so much that it has other tests
        title = f"{task} (source {first.sources.get(first.task.name, 'unknown')[:SHORT]})" if titles[task] > 1 else task
        contestants, floors = (
            tuple(line for line in lines if (line.specs[0].model.name in FLOORS) == is_floor)
            for is_floor in (False, True)
        )
        for condition in conditions:
            column = condition if is_path(first.task.name) else TESTS.get(condition, condition)
            about = {"task": title, "test": condition}
            panel = Panel(title, column, about, condition, Band(2, "SE"), contestants or floors, metric=loss)
            panels.append(replace(panel, floors=floors) if contestants else panel)
    return Plan("user-runs", "Other runs", "Runs that belong to no study.", tuple(panels))


def _series(kind: RunSpec, specs: tuple[RunSpec, ...], name: str) -> Series:
    """A line; a floor of the package has its look and its words."""
    if kind.model.name in FLOORS:
        return Series(name, specs, words(kind.model.name), CONTESTANTS[kind.model.name].look)
    return Series(name, specs)


def user_section(results: Results, plan: Plan) -> Section:
    """The curves of a plan, and a table of final values: one row for each kind of run."""
    conditions = list(dict.fromkeys(panel.condition for panel in plan.panels))
    tables: tuple[list[list[Any]], list[list[Any]]] = [], []  # of the first metric, and of the others
    most = 1
    for panels in _by_task(plan):
        for series in (*panels[0].series, *panels[0].floors):
            metrics = results.store.names(series.specs[0].digest)["metrics"]
            most = max(most, len(metrics))
            for place, metric in enumerate(metrics):
                tables[place > 0].append(_row(results, panels, series, metric, conditions))
    columns = [Column("task"), Column("run"), Column("seeds", "count"), Column("metric")]
    columns += [Column(condition, "mean_and_error") for condition in conditions]
    columns += [Column("parameters", "count"), Column("seconds", "number")]
    explained = "arithmetic mean over seeds ± standard error, without seeds that diverged"
    blocks: list[Block] = [
        Curves(_in_brief(plan), results),
        Text(_counted(plan)),
        Table("user-runs", f"Values at the end of training: {explained}.", columns, tables[0], "open"),
    ]
    if tables[1]:
        said = f"Other metrics at the end of training: {explained}."
        blocks.append(Table("user-metrics", said, columns, tables[1], "file" if most > MOST_METRICS else "folded"))
    return Section(plan.title, blocks)


def user_opening(results: Results, plan: Plan) -> list[Block]:
    """The first screen of a report of such runs: which kind is best in each test."""
    rows: list[list[Any]] = []
    for panel in plan.panels:
        finals = {series: results.final(series, panel.condition, panel.metric) for series in panel.series}
        known = {series: values for series, values in finals.items() if np.isfinite(values).any()}
        if known:
            ranks = {series: (bool(np.isinf(values).any()), mean(values)) for series, values in known.items()}
            best = [series for series in ranks if ranks[series] == min(ranks.values())]
            value = linked(known[best[0]], best[0].specs[0])
            names = ", ".join(series.name for series in best[:MOST_BEST])
            more = f", and {len(best) - MOST_BEST} more" if len(best) > MOST_BEST else ""
            rows.append([panel.condition, names + more, value, panel.metric, len(finals), panel.row])
    if not rows:
        return []
    columns = [Column("test"), Column("lowest run"), Column("value", "mean_and_error"), Column("metric")]
    columns += [Column("kinds of runs", "count"), Column("task")]
    caption = (
        "The kind of run with the lowest value in each test: arithmetic mean over seeds ± standard error. Kinds with a "
        "seed that diverged come last; floors are not among them."
    )
    return [Table("user-best", caption, columns, rows, "open")]


def _counted(plan: Plan) -> str:
    """How many runs there are, and what all of them have in common."""
    runs, kinds, shared = len(plan.specs), len(kinds_of(plan.specs)), shared_training(plan.specs)
    said = f"{runs} run{'s' if runs != 1 else ''} of {kinds} kind{'s' if kinds != 1 else ''}"
    common = ", ".join(f"{key}={value}" for key, value in shared.items())
    return f"{said}, with `{common}`." if common else f"{said}."


def _by_task(plan: Plan) -> Iterable[list[Panel]]:
    """The panels of each row."""
    rows: dict[str, list[Panel]] = {}
    for panel in plan.panels:
        rows.setdefault(panel.row, []).append(panel)
    return rows.values()


def _row(results: Results, panels: list[Panel], series: Series, metric: str, conditions: list[str]) -> list[Any]:
    own = {panel.condition for panel in panels}
    values = [
        linked(results.final(series, condition, metric), series.specs[0]) if condition in own else None
        for condition in conditions
    ]
    return [panels[0].row, series.name, len(series.specs), metric, *values, *cost(results, series.specs)]


def _in_brief(plan: Plan) -> Plan:
    """The same with at most `MOST_LINES` lines in a panel: more cannot be told apart."""
    if all(len(panel.series) <= MOST_LINES for panel in plan.panels):
        return plan
    panels = tuple(replace(panel, series=panel.series[:MOST_LINES]) for panel in plan.panels)
    said = f"{plan.caption} Of each task only the first {MOST_LINES} kinds are drawn; the table has all."
    return replace(plan, caption=said, panels=panels)
