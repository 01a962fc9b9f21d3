"""Larger and noisier worlds: more factors, wider fillers, noise on the inputs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Band, Panel, Plan
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import geometric_mean, mean
from tpr_attention.report.style import number
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.contestants import BASELINES, LINEAR, NEW, OURS, PAPER, TESTS, contestant_series, words
from tpr_attention.studies.sizes import SizePoint, stored_points
from tpr_attention.studies.study import Chapter, Setup, Study
from tpr_attention.training.spec import RunSpec

__all__ = ["SCALING"]

TITLE = "Larger and noisier worlds"
LAWS = NEW[-1]
RATE = 0.01
MOST_STEPS = 2_000
OPTIONS: dict[str, dict[str, int]] = {
    "tpr": {"model.num_heads": 8},
    "classical": {"model.num_heads": 8, "model.head_dim": 16},
    "resnet": {"model.width": 128},
    LAWS: {},
    LINEAR: {},
}


class Growth(NamedTuple):
    """What grows, in words, through which sizes, and which models are compared."""

    words: str
    sizes: tuple[float | int, ...]
    models: tuple[str, ...] = PAPER


GROWTHS = {
    "factors": Growth("number of factors", (5, 10, 20, 40)),
    "filler_dim": Growth("size of fillers", (3, 8, 16, 32, 64)),
    "noise": Growth("noise on the inputs (SD)", (0.01, 0.03, 0.1, 0.3), (*PAPER, LAWS, LINEAR)),
}


def _spec(name: str, option: str, size: float | int) -> RunSpec:
    return RunSpec.of(
        {
            "task": "random-composition",
            f"task.{option}": size,
            "model": name,
            **OPTIONS[name],
            "training.train_examples": 20_000,
            "training.test_examples": 500,
            "training.learning_rate": RATE,
        }
    )


@cache
def _figure(option: str, setup: Setup) -> Plan:
    growth, setup = GROWTHS[option], replace(setup, steps=min(setup.steps, MOST_STEPS))
    specs = {name: [_spec(name, option, size) for size in growth.sizes] for name in growth.models}
    series = tuple(contestant_series(name, setup, *found) for name, found in specs.items())
    cells = {condition: {"what grows": growth.words, "test": condition} for condition in TESTS}
    row, band, axis = "random factors", Band(1, "SE"), growth.words
    return Plan(
        f"scaling-{option}",
        f"How losses grow with the {growth.words}",
        f"Final loss against the {growth.words}, in worlds of random factors: 5 factors with fillers of 3 numbers, "
        f"unless the axis says otherwise; {setup.steps:,} steps, learning rate {RATE:g} for all.",
        tuple(
            Panel(row, test, cells[condition], condition, band, series, sizes=growth.sizes, axis=axis)
            for condition, test in TESTS.items()
        ),
    )


def figures(setup: Setup) -> list[Plan]:
    """All figures of the study."""
    return [_figure(option, setup) for option in GROWTHS]


def _chapter(results: Results, setup: Setup) -> Chapter:
    """Losses by size, and how they grow."""
    plans = figures(setup)
    points = [list(stored_points(plan, results)) for plan in plans]
    rows = [_row(point) for found in points for point in found]
    if not rows:
        return Chapter()
    columns = [Column("what grows"), Column("size", "exact"), Column("test"), Column("the copy", "number")]
    columns += [Column(name, "mean") for name in (*PAPER, LAWS)] + [Column("best linear fit", "mean")]
    columns += [Column(f"{name}: parameters", "count") for name in PAPER]
    blocks: list[Block] = [
        Text(" ".join(_verdict(plan, found) for plan, found in zip(plans, points, strict=True) if found)),
        Text(
            "The paper has five factors with fillers of three numbers and no noise. These worlds are of the same "
            "kind, without interaction: every factor has four classes with random fillers of unit length, and one "
            "combination of the first two is held out. Noise is on the inputs only, so that a copy is wrong by its "
            "variance; targets are clean. Without noise both floors are zero at every size. How time "
            "grows is measured apart, by `benchmarks/scaling.py`."
        ),
        *(Curves(plan, results) for plan in plans if any(map(results.stored, plan.series()))),
        Table(
            "scaling",
            "Final losses by size, arithmetic mean over seeds; the copy is where training starts.",
            columns,
            rows,
        ),
    ]
    return Chapter((_in_short([point for found in points for point in found]),), (Section(TITLE, blocks),))


def _in_short(points: Sequence[SizePoint]) -> str:
    """A sentence for the first screen."""
    lowest = sum(all(mean(one.losses[OURS]) < mean(one.losses[name]) for name in BASELINES) for one in points)
    return (
        f"In larger and noisier worlds, TPR-Attention has the lowest mean loss of the paper's three models in {lowest} "
        f"of {len(points)} cells that were run."
    )


def _row(point: SizePoint) -> list[Any]:
    losses = map(point.linked.get, (*PAPER, LAWS, LINEAR))
    about = [point.panel.axis, float(point.size), point.panel.cell["test"], mean(point.start)]
    return [*about, *losses, *point.parameters(PAPER)]


def _verdict(plan: Plan, points: Sequence[SizePoint]) -> str:
    """How losses change from the smallest stored size to the largest, in all tests, and who is lowest."""
    tests, axis = len(TESTS), plan.panels[0].axis
    cells = sum(len(panel.sizes) for panel in plan.panels)
    sizes = [point.size for point in points]
    ends = {name: [mean(point.losses[name]) for point in points] for name in points[0].losses}
    stored = f"{len(ends[OURS])} cells" + (f" that are stored, of {cells}" if len(ends[OURS]) < cells else "")
    lowest = sum(all(ours < ends[name][k] for name in BASELINES) for k, ours in enumerate(ends[OURS]))
    judged = f"TPR-Attention's is the lowest of the paper's three in {lowest} of {stored}."
    if LAWS in ends:
        least = sum(all(loss < ends[name][k] for name in PAPER) for k, loss in enumerate(ends[LAWS]))
        judged += f" That of `{LAWS}` is lower than all of theirs in {least} of {stored}."
    first, last = (
        {name: number(geometric_mean(np.array(ends[name][part]))) for name in ends if name != LINEAR}
        for part in (slice(tests), slice(-tests, None))
    )
    if min(sizes) == max(sizes):
        said = ", ".join(f"{words(name)}'s is {loss}" for name, loss in last.items())
        return f"Losses at the {axis} {max(sizes):g} (geometric mean of the tests): {said}; {judged}"
    said = ", ".join(f"{words(name)}'s from {first[name]} to {last[name]}" for name in first)
    return (
        f"From the smallest {axis} ({min(sizes):g}) to the largest ({max(sizes):g}) the loss (geometric mean of the "
        f"tests) goes: {said}; {judged}"
    )


SCALING = Study(
    "scaling",
    "more factors, wider fillers, noise on the inputs",
    {"scaling": lambda setup: (spec for plan in figures(setup) for spec in plan.specs)},
    _chapter,
    is_scaled=True,
)
