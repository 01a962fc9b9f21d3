"""Laws of interaction on which no option was chosen: who is lowest, with few pairs and with many."""

from collections.abc import Iterator, Sequence
from functools import cache
from math import isfinite
from statistics import median
from typing import Any

from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Plan
from tpr_attention.report.results import Results
from tpr_attention.report.style import number
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.contestants import PAPER, figure_of
from tpr_attention.studies.data.lowest import NEAR, Point, lowest_map, points_of
from tpr_attention.studies.data.specs import FIRST_SEED, data_panels, data_setup
from tpr_attention.studies.paper.cells import FLOOR_COLUMNS, floor_cells
from tpr_attention.studies.paper.claims import SOLVED
from tpr_attention.studies.study import Chapter, Setup, Study
from tpr_attention.tasks.composition.interactions import HELD_OUT_INTERACTIONS

__all__ = ["LAWS"]

PAIRS = (1_000, 50_000)
SPLITS = ("square_red", "scale_pos")
JUDGED = "tpr-laws"
COMPARED = (*PAPER, "tpr-stack", JUDGED)


@cache
def _figure(split: str, setup: Setup) -> Plan:
    setup = data_setup(setup)
    panels = (data_panels(law.replace("_", " "), split, law, COMPARED, PAIRS, setup) for law in HELD_OUT_INTERACTIONS)
    return figure_of(
        f"laws-{split}",
        f"Laws nobody tuned on: split {split}",
        f"Final loss against the number of training pairs, for interactions on which no option was chosen; split "
        f"`{split}`, {setup.steps:,} steps, seeds from {FIRST_SEED} on.",
        (panel for of_law in panels for panel in of_law),
    )


def figures(setup: Setup) -> list[Plan]:
    """All figures of the study."""
    return [_figure(split, setup) for split in SPLITS]


def _chapter(results: Results, setup: Setup) -> Chapter:
    plans = figures(setup)
    points = [one for one in points_of(plans, results, COMPARED) if results.complete(one.panel.floors)]
    if not points:
        return Chapter()
    said = _verdict(points, sum(len(panel.sizes) for plan in plans for panel in plan.panels))
    caption = "Which model is lowest for laws on which no option was chosen, and by what factor."
    blocks: list[Block] = [
        Text(" ".join(said)),
        Text(
            "The interactions have other formulas than those on which options and learning rates were chosen, and "
            f"seeds from {FIRST_SEED} on, which no choice used. All models have the same pairs and steps. "
            "A cell is a law, a split, a test and a number of training pairs. It is solvable if training, or an "
            "input, tells all that its answers need."
        ),
        lowest_map("laws-lowest", "Laws nobody tuned on: who is lowest", caption, points),
        *(Curves(plan, results) for plan in plans),
        _table(results, points),
    ]
    return Chapter(tuple(_in_short(points)), (Section("Laws nobody tuned on", blocks),))


def _in_short(points: Sequence[Point]) -> Iterator[str]:
    """A sentence for the first screen; none if no cell can be solved."""
    solvable = [one for one in points if one.is_solvable]
    if solvable:
        low = sum(one.is_low(JUDGED) for one in solvable)
        yield (
            f"For laws of interaction that nobody tuned on, `{JUDGED}` has the lowest loss, or one that counts as "
            f"none, in {low} of {len(solvable)} solvable cells that were run."
        )


def _verdict(points: Sequence[Point], planned: int) -> list[str]:
    """In how many stored cells the judged model is lowest, by what factor, and where it is not."""
    judged = [one for one in points if one.is_solvable]
    stored = f" that are stored, of {planned}" if len(points) < planned else ""
    if not judged:
        return [f"None of {len(points)} cells{stored}{',' * bool(stored)} is solvable."]
    low = [one for one in judged if one.is_low(JUDGED)]
    said = [
        f"`{JUDGED}` is the lowest in {len(low)} of {len(judged)} solvable cells{stored}, where models with a loss "
        f"below {SOLVED:g} count alike."
    ]
    by_size = {pairs: [one for one in judged if one.size == pairs] for pairs in PAIRS}
    if all(by_size.values()):
        said += [
            f"With {pairs:,} pairs it is the lowest in {sum(one.is_low(JUDGED) for one in found)} of {len(found)}."
            for pairs, found in by_size.items()
        ]
    leads = [one.factor for one in judged if one.lowest == JUDGED and isfinite(one.factor)]
    if leads:
        said.append(f"Where no other is as low, the next model is {number(median(leads))} times as high (median).")
    behind = [one for one in judged if not one.is_low(JUDGED)]
    if behind:
        near = sum(one.times(JUDGED) <= NEAR for one in behind)
        said.append(f"Elsewhere it is at most {NEAR:g} times the lowest in {near} of {len(behind)}.")
        said.append(f"It is not the lowest with {'; '.join(_behind(behind, judged))}.")
    return said


def _behind(behind: Sequence[Point], judged: Sequence[Point]) -> Iterator[str]:
    """In how many cells of each law the judged model is not the lowest, and how far it is from the lowest."""
    for law in dict.fromkeys(map(_law, behind)):
        times = [one.times(JUDGED) for one in behind if _law(one) == law]
        finite = [one for one in times if isfinite(one)]
        far = [f"up to {number(max(finite))} times the lowest"] if finite else []
        lost = len(times) - len(finite)
        far += [f"{lost} with a seed that diverged"] if lost else []
        yield f"`{law}` ({len(times)} of {sum(_law(one) == law for one in judged)} cells, {', '.join(far)})"


def _law(point: Point) -> str:
    return point.panel.cell["interaction"]


def _table(results: Results, points: Sequence[Point]) -> Table:
    rows: list[list[Any]] = []
    for one in points:
        losses, times = one.linked, one.times(JUDGED)
        about = [*one.panel.cell.values(), one.size, *map(losses.get, COMPARED)]
        rows.append([*about, *floor_cells(results, one.panel), one.lowest, times if isfinite(times) else None])
    columns = [Column("interaction"), Column("split"), Column("test"), Column("pairs", "count")]
    columns += [*(Column(name, "mean") for name in COMPARED), *FLOOR_COLUMNS]
    columns += [Column("lowest model"), Column(f"{JUDGED} / lowest", "number")]
    caption = (
        "Every law, split, test and number of training pairs: arithmetic means of final losses over seeds. Who is the "
        "lowest, and by what factor, is told by geometric means."
    )
    return Table("laws", caption, columns, rows)


LAWS = Study(
    "laws",
    "laws of interaction on which no option was chosen",
    {"laws": lambda setup: (spec for plan in figures(setup) for spec in plan.specs)},
    _chapter,
    is_scaled=True,
    first_seed=FIRST_SEED,
)
