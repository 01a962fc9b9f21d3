"""What the paper claims, and whether stored curves bear it out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tpr_attention.report.panels import Panel
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Interval, clipped, difference, nearest, ratio
from tpr_attention.report.tables import Badge
from tpr_attention.studies.contestants import BASELINES, OURS
from tpr_attention.studies.paper.figures import figure
from tpr_attention.studies.paper.readings import DEFAULT
from tpr_attention.studies.study import Setup

__all__ = ["CLAIMS", "FAILS", "HOLDS", "PARTLY", "SOLVED", "UNKNOWN", "Claim", "Evidence", "Verdict", "final", "judge"]

HOLDS = Badge("holds", "good")
PARTLY = Badge("holds in part", "fair")
FAILS = Badge("does not hold", "bad")
UNKNOWN = Badge("not run", "none")
SUBSTANTIAL = 2.0
"""A loss at least this many times smaller is "substantially" better."""
SOLVED = 1e-6
"""A loss below this counts as solved: answers are off by a thousandth of a filler's length."""
NEAR = 2.0
"""Who generalises has a test loss of at most this many times the loss in distribution."""


class Evidence(NamedTuple):
    """One comparison: a number of ours with another, for one panel."""

    panel: Panel
    against: str
    ours: float
    theirs: float
    ratio: Interval
    difference: Interval
    favourable: bool


class Verdict(NamedTuple):
    """What became of a claim; `favourable` of `cells` cells speak for it."""

    badge: Badge
    favourable: int
    cells: int
    evidence: tuple[Evidence, ...]


Judge = Callable[[Results, Sequence[Panel]], list[list[Evidence]]]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that curves can contradict.

    Args:
        name: A short name.
        source: Where the paper says it.
        statement: What it says, in our words.
        test: What must be true of a cell for it to count in favour, in words.
        figures: The figures it is about.
        main: Those of the main figures that can tell it, for judging it under other readings.
        judge: The comparisons of each cell; a cell counts if all of its comparisons are favourable.
    """

    name: str
    source: str
    statement: str
    test: str
    figures: tuple[str, ...]
    main: tuple[str, ...]
    judge: Judge


def judge(
    claim: Claim, results: Results, setup: Setup, figures: Sequence[str] | None = None, reading: str = DEFAULT
) -> Verdict:
    """Hold a claim against stored curves: it holds if all cells speak for it, in part if at least half do.

    It is not judged before all of its runs are stored.

    Args:
        figures: The figures to look at, if not all of the claim's.
        reading: The reading of the paper under which they were trained.
    """
    panels = [panel for name in (figures or claim.figures) for panel in figure(name, setup, reading).panels]
    if not all(results.complete(panel.series) for panel in panels):
        return Verdict(UNKNOWN, 0, len(panels), ())
    cells = claim.judge(results, panels)
    favourable = sum(all(one.favourable for one in cell) for cell in cells)
    badge = HOLDS if favourable == len(cells) else PARTLY if 2 * favourable >= len(cells) else FAILS
    return Verdict(badge, favourable, len(cells), tuple(one for cell in cells for one in cell))


def final(results: Results, panel: Panel, name: str, condition: str | None = None) -> np.ndarray:
    """The final losses of a contestant or floor of a panel, one for each seed."""
    series = next(one for one in (*panel.series, *panel.floors) if one.name == name)
    return results.final(series, condition or panel.condition, panel.metric)


def _compare(panel: Panel, against: str, ours: np.ndarray, theirs: np.ndarray, at_least: float) -> Evidence:
    """In favour if the whole interval of the ratio is above what is asked; with one seed, if the ratio is."""
    found = ratio(ours, theirs)
    low = found.value if found.low is None else found.low
    return Evidence(
        panel, against, float(ours.mean()), float(theirs.mean()), found, difference(ours, theirs), low > at_least
    )


def _lower(at_least: float) -> Judge:
    """Our loss is lower than that of each baseline, by this factor."""

    def of_cell(results: Results, panel: Panel) -> list[Evidence]:
        ours = final(results, panel, OURS)
        return [_compare(panel, name, ours, final(results, panel, name), at_least) for name in BASELINES]

    return lambda results, panels: [of_cell(results, panel) for panel in panels]


def _solves(results: Results, panels: Sequence[Panel]) -> list[list[Evidence]]:
    """Our loss is nothing worth mentioning, for every seed."""
    cells = []
    for panel in panels:
        ours = final(results, panel, OURS)
        found = _compare(panel, f"a loss of {SOLVED:g}", ours, np.full_like(ours, SOLVED), 1.0)
        cells.append([found._replace(favourable=bool((ours < SOLVED).all()))])
    return cells


def _generalises(results: Results, panels: Sequence[Panel]) -> list[list[Evidence]]:
    """Our loss in a test is near that in distribution, or nothing worth mentioning."""
    cells = []
    for panel in panels:
        ours, inside = (final(results, panel, OURS, condition) for condition in (panel.condition, "in_distribution"))
        found = _compare(panel, "itself in distribution", ours, inside, 1 / NEAR)
        cells.append([found._replace(favourable=found.favourable or bool((ours < SOLVED).all()))])
    return cells


def _larger_with_interaction(results: Results, panels: Sequence[Panel]) -> list[list[Evidence]]:
    """For each split and test: our advantage over the better baseline is larger with an interaction than without."""
    without = {
        (panel.cell["split"], panel.condition): panel
        for panel in panels
        if (panel.cell["interaction"], panel.cell["heads"]) == ("none", "8")
    }
    cells = []
    for panel in panels:
        if panel.cell["interaction"] != "none":
            there = _advantage(results, without[panel.cell["split"], panel.condition])
            found = _compare(panel, "its advantage without interaction", there, _advantage(results, panel), 1.0)
            cells.append([found._replace(ours=found.theirs, theirs=found.ours)])
    return cells


def _advantage(results: Results, panel: Panel) -> np.ndarray:
    """The loss of the better baseline as a multiple of ours, for each seed."""
    others = {name: final(results, panel, name) for name in BASELINES}
    advantage: np.ndarray = clipped(others[nearest(others)]) / clipped(final(results, panel, OURS))
    return advantage


LOWER = "the loss is lower than that of both baselines: the 95 % interval of each ratio is above 1"
MUCH_LOWER = (
    f"the loss is at least {SUBSTANTIAL:g} times lower than that of both baselines: the 95 % interval of each ratio is "
    f"above {SUBSTANTIAL:g}"
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "main figure, no interaction",
        "section 4, first results figure",
        "With red squares held out and 4 heads, TPR-Attention has lower loss than both baselines in all tests.",
        LOWER,
        ("main-noninteracting",),
        ("main-noninteracting",),
        _lower(1.0),
    ),
    Claim(
        "main figure, interactions",
        "section 4, second results figure, and section 5",
        "When factors interact (red squares held out), TPR-Attention does substantially better than both baselines.",
        MUCH_LOWER,
        ("main-interacting",),
        ("main-interacting",),
        _lower(SUBSTANTIAL),
    ),
    Claim(
        "no interaction, everywhere",
        "appendix F.1",
        "Without interaction TPR-Attention has lower loss than both baselines on all splits, with 4 and 8 heads.",
        LOWER,
        ("noninteracting",),
        (),
        _lower(1.0),
    ),
    Claim(
        "numerical interaction, everywhere",
        "appendix F.2 and section 5",
        "With the scale_pos interaction TPR-Attention has substantially lower loss than both baselines on all splits.",
        MUCH_LOWER,
        ("numerical",),
        (),
        _lower(SUBSTANTIAL),
    ),
    Claim(
        "categorical interaction, everywhere",
        "appendix F.3 and section 5",
        "With the shape_col interaction TPR-Attention has substantially lower loss than both baselines on all splits.",
        MUCH_LOWER,
        ("categorical",),
        (),
        _lower(SUBSTANTIAL),
    ),
    Claim(
        "substitution is learned",
        "appendix D",
        "Without interaction TPR-Attention learns the substitution itself: its loss vanishes in all tests.",
        f"the loss of every seed is below {SOLVED:g}",
        ("noninteracting",),
        ("main-noninteracting",),
        _solves,
    ),
    Claim(
        "generalises under interaction",
        "section 5",
        "With interacting factors TPR-Attention generalises compositionally out of distribution.",
        f"the loss is at most {NEAR:g} times that of the model in distribution (95 % interval), or below {SOLVED:g}",
        ("numerical", "categorical"),
        ("main-interacting",),
        _generalises,
    ),
    Claim(
        "particularly when factors interact",
        "section 1",
        "The advantage is particularly large in the difficult setting, where factors interact.",
        "with 8 heads, the loss of the better baseline divided by ours is larger with the interaction than without",
        ("noninteracting", "numerical", "categorical"),
        (),
        _larger_with_interaction,
    ),
)
"""In the order of the paper's results."""
