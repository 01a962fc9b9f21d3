"""Who is lowest in each cell at each number of training pairs, and by what factor."""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from math import inf, isfinite

from tpr_attention.report.drawings import SquareMap
from tpr_attention.report.drawings.squares import Category, Square
from tpr_attention.report.panels import Plan
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import geometric_mean
from tpr_attention.report.style import number
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.contestants import CONTESTANTS, KNOWABLE, SPLITS, words
from tpr_attention.studies.data.specs import SIZES, part
from tpr_attention.studies.paper.cells import heights
from tpr_attention.studies.paper.claims import SOLVED
from tpr_attention.studies.sizes import SizePoint, stored_points
from tpr_attention.training.spec import ROUNDING

__all__ = [
    "NEAR",
    "Point",
    "factor_words",
    "lowest_in_short",
    "lowest_map",
    "lowest_table",
    "lowest_words",
    "points_of",
]

TIE, NEAR, LARGE = 1.1, 1.5, 1e3
"""Factors: below the first nobody is ahead, up to the second a loss is near the lowest, above the third it is large."""
MOST_LISTED = 8
DIVERGED = "all diverged"


class Point(SizePoint):
    """A cell at one number of training pairs, with the final losses of some models."""

    @cached_property
    def is_solvable(self) -> bool | None:
        """Whether the best guess has no loss; None if that is not stored."""
        found = heights(self.results, self.panel)
        return not found[KNOWABLE] if KNOWABLE in found else None

    @cached_property
    def means(self) -> dict[str, float]:
        """Geometric means over seeds, lowest first; infinite where a seed diverged."""
        means = {name: geometric_mean(losses) for name, losses in self.losses.items()}
        return dict(sorted(means.items(), key=lambda one: one[1]))

    @property
    def lowest(self) -> str | None:
        """Who has the lowest mean; None if every model has a seed that diverged."""
        first = next(iter(self.means))
        return first if isfinite(self.means[first]) else None

    @property
    def factor(self) -> float:
        """The mean of the second as a multiple of the lowest."""
        first, second, *_ = self.means.values()
        return second / first if isfinite(first) else 1.0

    def times(self, name: str) -> float:
        """The mean of a model as a multiple of the lowest."""
        least = min(self.means.values())
        return self.means[name] / least if isfinite(self.means[name]) else inf

    def is_low(self, name: str) -> bool:
        """Whether a model is the lowest, or has solved the cell."""
        return self.means[name] < SOLVED or self.times(name) <= 1


def points_of(plans: Iterable[Plan], results: Results, models: Collection[str]) -> list[Point]:
    """Every cell and number of pairs at which all of these models are stored."""
    parts = (part(plan, models, SIZES, SPLITS) for plan in plans)
    return [Point(results, one.panel, one.place) for plan in parts for one in stored_points(plan, results)]


def lowest_map(name: str, title: str, caption: str, points: Sequence[Point]) -> SquareMap:
    """A row for each cell, a column for each number of pairs; what is not stored has neither, or stays empty."""
    rows = _cells(points)
    sizes = sorted({point.size for point in points})
    places = {(rows.index(_cell(point)), sizes.index(point.size)): point for point in points}
    models = list(points[0].losses)
    is_whole = len(places) == len(rows) * len(sizes)
    return SquareMap(
        name,
        title,
        caption,
        tuple(points[0].panel.cell),
        rows,
        "training pairs",
        [f"{size:,}" for size in sizes],
        {place: _square(point) for place, point in places.items()},
        {one: Category(f"{words(one)} ({one})", CONTESTANTS[one].look.colour) for one in models},
        "not solvable",
        "Colour and name: the model with the lowest loss, as geometric mean over seeds. Number: how many times as "
        f"large the loss of the next one is; tie, pale: less than {TIE:g}. Losses below {ROUNDING:g} count as that."
        + ("" if is_whole else " Empty: not all of these models are stored there."),
    )


def _cell(point: Point) -> tuple[str, ...]:
    return tuple(point.panel.cell.values())


def _cells(points: Iterable[Point]) -> list[tuple[str, ...]]:
    """The cells in the order of figures, whatever numbers of pairs they have."""
    found = dict.fromkeys(map(_cell, points))
    tasks = list(dict.fromkeys(cell[:-1] for cell in found))
    return sorted(found, key=lambda cell: tasks.index(cell[:-1]))


def _square(point: Point) -> Square:
    text = DIVERGED if point.lowest is None else f"{point.lowest} {factor_words(point.factor)}"
    return Square(point.lowest, text, point.is_solvable is False, point.factor < TIE)


def factor_words(factor: float) -> str:
    """A factor in a few letters.

    >>> [factor_words(factor) for factor in (1.05, 3.21, 9.99, 320.4, inf)]
    ['tie', 'x3.2', 'x10', 'x320', '≥1e3']
    """
    if factor < TIE:
        return "tie"
    if factor >= LARGE - 0.5:
        return "≥1e3"
    return f"x{factor:.1f}" if factor < 9.95 else f"x{factor:.0f}"


def lowest_table(points: Sequence[Point]) -> Table:
    """In how many solvable cells and sizes each model is the lowest, or near it."""
    chosen = [point for point in points if point.is_solvable]
    rows = []
    for name in points[0].losses:
        times = [_times(point, name) for point in chosen]
        near, far = sum(one <= NEAR for one in times), max(times)
        rows.append([name, len(chosen), *_counts(chosen, name), near, far if isfinite(far) else None])
    columns = [Column("model"), Column("solvable cells and sizes", "count"), Column("lowest or solved", "count")]
    columns += [Column("lowest", "count"), Column(f"solved or at most {NEAR:g} times the lowest", "count")]
    columns.append(Column("largest multiple of the lowest", "number"))
    caption = (
        "How often each model is lowest, over all solvable cells and numbers of training pairs at which all of them "
        f"are stored. Models whose mean loss is below {SOLVED:g} have solved a cell alike: their multiple counts as 1. "
        "The last column is - where a seed diverged."
    )
    return Table("data-lowest", caption, columns, rows, "open")


def _times(point: Point, name: str) -> float:
    return 1.0 if point.is_low(name) else point.times(name)


def _counts(points: Sequence[Point], name: str) -> tuple[int, int]:
    """At how many points a model is the lowest or has solved the cell, and at how many it is the lowest."""
    return sum(point.is_low(name) for point in points), sum(point.times(name) <= 1 for point in points)


def lowest_in_short(points: Sequence[Point], name: str) -> str:
    """In how many solvable cells and sizes a model is the lowest, in a sentence for the first screen."""
    chosen = [point for point in points if point.is_solvable]
    alike, _ = _counts(chosen, name)
    return (
        f"Past the paper, `{name}` has the lowest loss, or one that counts as none, in {alike} of {len(chosen)} "
        "solvable cells and numbers of pairs that were run."
    )


def lowest_words(points: Sequence[Point], name: str) -> str:
    """In how many solvable cells and sizes a model is the lowest, how far it is from it elsewhere, and where."""
    chosen = [point for point in points if point.is_solvable]
    alike, strict = _counts(chosen, name)
    models = len(points[0].losses)
    said = (
        f"Of {models} models, `{name}` is lowest in {alike} of {len(chosen)} solvable cells and sizes, where models "
        f"with a loss below {SOLVED:g} count alike ({strict} if they do not)"
    )
    far = {point: _times(point, name) for point in chosen if _times(point, name) > 1}
    exceptions = sorted((point for point in far if far[point] > NEAR), key=lambda point: -far[point])
    if far and isfinite(most := max(far.values())):
        said += f", and at most {number(most)} times the lowest elsewhere"
    if not exceptions:
        return f"{said}."
    listed = "; ".join(
        f"{point.panel.name}, {point.size:,} pairs ({_multiple(far[point])})" for point in exceptions[:MOST_LISTED]
    )
    more = f"; and {len(exceptions) - MOST_LISTED} more" if len(exceptions) > MOST_LISTED else ""
    return f"{said}. More than {NEAR:g} times the lowest in {len(exceptions)}: {listed}{more}."


def _multiple(times: float) -> str:
    return f"{number(times)} times" if isfinite(times) else "a seed diverged"
