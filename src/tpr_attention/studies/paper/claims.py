"""What the paper claims, and whether stored curves bear it out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tpr_attention.report.panels import Panel, Series
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Interval, clipped, difference, geometric_mean, nearest, ratio
from tpr_attention.report.tables import Badge
from tpr_attention.studies.contestants import BASELINES, OURS
from tpr_attention.studies.paper.figures import figure
from tpr_attention.studies.paper.readings import DEFAULT
from tpr_attention.studies.study import Setup
from tpr_attention.training.spec import RunSpec

__all__ = [
    "CLAIMS",
    "FAILS",
    "HOLDS",
    "PARTLY",
    "SOLVED",
    "SUBSTANTIAL",
    "UNKNOWN",
    "Claim",
    "Evidence",
    "Verdict",
    "badge_of",
    "final",
    "is_lower",
    "judge",
    "series_of",
]

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
    """One comparison: a number of ours with another, for one panel. Both are geometric means over seeds.

    Args:
        against: What ours is compared with; a contestant, or words.
        run: A run of the series that `theirs` is of; None where it is of none.
    """

    panel: Panel
    against: str
    ours: float
    theirs: float
    ratio: Interval
    difference: Interval
    favourable: bool
    run: RunSpec | None = None


class Verdict(NamedTuple):
    """What became of a claim; `favourable` of `cells` cells speak for it, and the runs of `stored` cells are there."""

    badge: Badge
    favourable: int
    cells: int
    stored: int
    evidence: tuple[Evidence, ...]


Judge = Callable[[Results, Panel, Sequence[Panel]], list[Evidence]]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that curves can contradict.

    Args:
        name: A short name.
        source: Where the paper says it.
        statement: What it says, in our words.
        says: The same in a few words.
        test: What must be true of a cell for it to count in favour, in words.
        figures: The figures it is about.
        main: Those of the main figures that can tell it, for judging it under other readings.
        judge: The comparisons of a cell, given all panels; a cell counts if all of its comparisons are favourable.
        is_cell: Which panels are its cells; others are what cells are compared with.
        setting: Where it says that TPR-Attention has the lower loss, in words; empty if it says something else.
    """

    name: str
    source: str
    statement: str
    says: str
    test: str
    figures: tuple[str, ...]
    main: tuple[str, ...]
    judge: Judge
    is_cell: Callable[[Panel], bool] = lambda panel: True
    setting: str = ""


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
    cells = [panel for panel in panels if claim.is_cell(panel)]
    stored = sum(results.complete(panel.series) for panel in cells)
    if not all(results.complete(panel.series) for panel in panels):
        return Verdict(UNKNOWN, 0, len(cells), stored, ())
    found = [claim.judge(results, cell, panels) for cell in cells]
    favourable = sum(all(one.favourable for one in comparisons) for comparisons in found)
    badge = badge_of(favourable, len(cells))
    return Verdict(badge, favourable, len(cells), stored, tuple(one for comparisons in found for one in comparisons))


def badge_of(favourable: int, cells: int) -> Badge:
    """Whether a claim holds for which so many of its cells speak."""
    return HOLDS if favourable == cells else PARTLY if 2 * favourable >= cells else FAILS


def is_lower(ours: np.ndarray, theirs: np.ndarray, at_least: float = 1.0) -> bool:
    """Whether the whole interval of the ratio is above what is asked; with one seed, whether the ratio is."""
    return ratio(ours, theirs).least > at_least


def final(results: Results, panel: Panel, name: str, condition: str | None = None) -> np.ndarray:
    """The final losses of a contestant or floor of a panel, one for each seed."""
    return results.final(series_of(panel, name), condition or panel.condition, panel.metric)


def series_of(panel: Panel, name: str) -> Series:
    """The runs of a contestant or floor of a panel."""
    return next(one for one in (*panel.series, *panel.floors) if one.name == name)


def _compare(panel: Panel, against: str, ours: np.ndarray, theirs: np.ndarray, at_least: float) -> Evidence:
    means = geometric_mean(ours), geometric_mean(theirs)
    favourable = is_lower(ours, theirs, at_least)
    return Evidence(panel, against, *means, ratio(ours, theirs), difference(ours, theirs), favourable)


def _lower(at_least: float) -> Judge:
    """Our loss is lower than that of each baseline, by this factor."""

    def of_cell(results: Results, panel: Panel, panels: Sequence[Panel]) -> list[Evidence]:
        ours = final(results, panel, OURS)
        found = [_compare(panel, name, ours, final(results, panel, name), at_least) for name in BASELINES]
        return [one._replace(run=series_of(panel, one.against).specs[0]) for one in found]

    return of_cell


def _solves(results: Results, panel: Panel, panels: Sequence[Panel]) -> list[Evidence]:
    """Our loss is nothing worth mentioning, for every seed."""
    ours = final(results, panel, OURS)
    found = _compare(panel, f"a loss of {SOLVED:g}", ours, np.full_like(ours, SOLVED), 1.0)
    return [found._replace(favourable=bool((ours < SOLVED).all()))]


def _generalises(results: Results, panel: Panel, panels: Sequence[Panel]) -> list[Evidence]:
    """Our loss in a test is near that in distribution, or nothing worth mentioning."""
    ours, inside = (final(results, panel, OURS, condition) for condition in (panel.condition, "in_distribution"))
    found = _compare(panel, "itself in distribution", ours, inside, 1 / NEAR)
    run = series_of(panel, OURS).specs[0]
    return [found._replace(favourable=found.favourable or bool((ours < SOLVED).all()), run=run)]


def _larger_with_interaction(results: Results, panel: Panel, panels: Sequence[Panel]) -> list[Evidence]:
    """Our advantage over the better baseline is larger than without interaction, for the same split and test."""
    (without,) = (
        one
        for one in panels
        if (one.cell["interaction"], one.cell["heads"]) == ("none", "8")
        and (one.cell["split"], one.condition) == (panel.cell["split"], panel.condition)
    )
    here, there = _advantage(results, panel), _advantage(results, without)
    found = _compare(panel, "its advantage without interaction", there, here, 1.0)
    return [found._replace(ours=found.theirs, theirs=found.ours, run=series_of(without, OURS).specs[0])]


def _advantage(results: Results, panel: Panel) -> np.ndarray:
    """The loss of the baseline with the lower geometric mean, as a multiple of ours, for each seed."""
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
        "lower loss than both baselines",
        LOWER,
        ("main-noninteracting",),
        ("main-noninteracting",),
        _lower(1.0),
        setting="without interaction",
    ),
    Claim(
        "main figure, interactions",
        "section 4, second results figure, and section 5",
        "When factors interact (red squares held out), TPR-Attention does substantially better than both baselines.",
        "substantially lower loss",
        MUCH_LOWER,
        ("main-interacting",),
        ("main-interacting",),
        _lower(SUBSTANTIAL),
        setting="where factors interact",
    ),
    Claim(
        "no interaction, everywhere",
        "appendix F.1",
        "Without interaction TPR-Attention has lower loss than both baselines on all splits, with 4 and 8 heads.",
        "lower loss than both baselines",
        LOWER,
        ("noninteracting",),
        (),
        _lower(1.0),
        setting="without interaction",
    ),
    Claim(
        "numerical interaction, everywhere",
        "appendix F.2 and section 5",
        "With the scale_pos interaction TPR-Attention has substantially lower loss than both baselines on all splits.",
        "substantially lower loss",
        MUCH_LOWER,
        ("numerical",),
        (),
        _lower(SUBSTANTIAL),
        setting="with the numerical interaction",
    ),
    Claim(
        "categorical interaction, everywhere",
        "appendix F.3 and section 5",
        "With the shape_col interaction TPR-Attention has substantially lower loss than both baselines on all splits.",
        "substantially lower loss",
        MUCH_LOWER,
        ("categorical",),
        (),
        _lower(SUBSTANTIAL),
        setting="with the categorical interaction",
    ),
    Claim(
        "substitution is learned",
        "appendix D",
        "Without interaction TPR-Attention learns the substitution itself: its loss vanishes in all tests.",
        "the loss vanishes",
        f"the loss of every seed is below {SOLVED:g}",
        ("noninteracting",),
        ("main-noninteracting",),
        _solves,
    ),
    Claim(
        "generalises under interaction",
        "section 5",
        "With interacting factors TPR-Attention generalises compositionally out of distribution.",
        "loss near that in distribution",
        f"the loss is at most {NEAR:g} times that of the model in distribution (95 % interval), or below {SOLVED:g}",
        ("numerical", "categorical"),
        ("main-interacting",),
        _generalises,
    ),
    Claim(
        "particularly when factors interact",
        "section 1",
        "The advantage is particularly large in the difficult setting, where factors interact.",
        "a larger advantage than without interaction",
        "with 8 heads, the loss of the better baseline (that with the lower geometric mean over seeds) divided by ours "
        "is larger with the interaction than without",
        ("noninteracting", "numerical", "categorical"),
        (),
        _larger_with_interaction,
        lambda panel: panel.cell["interaction"] != "none",
    ),
)
"""In the order of the paper's results."""
