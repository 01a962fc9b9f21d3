"""What was wanted of the image study, and what is reached."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from tpr_attention.report.panels import Series
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Badge, Column, Table
from tpr_attention.studies.images.values import after_training, by_fillers, conditions_of, finished
from tpr_attention.studies.kinds import finishing_seconds, training_seconds
from tpr_attention.studies.study import Setup

__all__ = ["Goal", "goals", "goals_table"]

Values = Callable[[Results, Series, str, str], Float[np.ndarray, "n"]]
"""The values of a metric under a condition, one a seed, at some moment of each run."""

DIGITS = 4
CAPTION = (
    "What was wanted, and what is reached in the worst seed and the worst test that a row is about. By fillers: codes "
    "have taught, and answers are not rounded to codes. Finished: no codes are found for published splits, so that "
    "nothing is cleaned up there, but images are looked at again. Processor seconds are those of steps and of what "
    "comes after, or of the steps alone, which end where training alone does; without tests, in the mean over seeds."
)


class Goal(NamedTuple):
    """A number that was wanted, and the one that is reached.

    Args:
        at_least: Whether more is better.
    """

    words: str
    wanted: float
    reached: float
    seeds: int
    at_least: bool = True

    @property
    def badge(self) -> Badge:
        """Whether it is met, or by how much it is missed."""
        missed = (self.wanted - self.reached) * (1 if self.at_least else -1)
        return Badge("missed", "bad", f"by {missed:.{DIGITS}f}") if missed > 0 else Badge("met", "good")


def goals_table(results: Results, setup: Setup) -> Iterator[Table]:
    """All goals of which something is stored."""
    rows = [[one.words, one.wanted, round(one.reached, DIGITS), one.badge, one.seeds] for one in goals(results, setup)]
    columns = [Column("goal"), Column("wanted", "exact"), Column("reached", "exact"), Column("verdict", "badge")]
    if rows:
        yield Table("images-goals", CAPTION, [*columns, Column("seeds", "count")], rows)


def goals(results: Results, setup: Setup) -> Iterator[Goal]:
    """What was wanted of the main model, of the spectrum decoder, and on published splits."""
    main, others = finished("main", results, setup), finished("others", results, setup)
    union = {split: series for split, series in main.items() if split == "union"}
    apart = {split: series for split, series in main.items() if split != "union"}
    for words, by_split in (("union of the splits", union), ("splits apart", apart)):
        yield from _of_main(words, by_split, results)
    for series in union.values():
        steps, after = training_seconds(results, series.specs), finishing_seconds(results, series.specs)
        if steps and after:
            seeds = len(series.specs)
            words = "union of the splits: processor seconds of"
            yield Goal(f"{words} a training", 600, steps + after, seeds, at_least=False)
            yield Goal(f"{words} its steps", 180, steps, seeds, at_least=False)
    for name in ("spectrum", "spectrum-longer"):
        if name in others:
            yield _worst(f"{others[name].label}: IoU", 0.98, results, {"union": others[name]}, after_training, "iou")
    published = finished("published", results, setup)
    for split, metric, words, wanted in (
        ("sqr2tx", "nll", "summed loss", 10.0),
        ("r2r-1", "sse", "squared error", 1.0),
    ):
        if split in published:
            yield from _of_published(split, metric, words, wanted, results, published[split])


def _of_main(words: str, by_split: dict[str, Series], results: Results) -> Iterator[Goal]:
    if by_split:
        yield _worst(
            f"{words}: exactly right in distribution", 0.99, results, by_split, _final, "exact", "in_distribution"
        )
        yield _worst(f"{words}: exactly right", 0.98, results, by_split, _final, "exact")
        yield _worst(f"{words}: all factors right", 1.0, results, by_split, _final, "factors")
        yield _worst(f"{words}: IoU by fillers", 0.99, results, by_split, by_fillers, "iou")
        early = f"{words}: IoU after training alone"
        yield _worst(f"{early} in distribution", 0.98, results, by_split, after_training, "iou", "in_distribution")
        yield _worst(early, 0.98, results, by_split, after_training, "iou")


def _of_published(
    split: str, metric: str, words: str, wanted: float, results: Results, series: Series
) -> Iterator[Goal]:
    moments: dict[str, Values] = {"finished": _final, "after training alone": after_training}
    for moment, values in moments.items():
        known, held_out = (values(results, series, test, metric) for test in ("in_distribution", "ood"))
        name, seeds = f"{split}, {moment}", len(series.specs)
        yield Goal(f"{name}: {words} held out", wanted, float(held_out.max()), seeds, at_least=False)
        if metric == "nll":
            ratio = float((held_out / known).max())
            yield Goal(f"{name}: {words} held out / in distribution", 1.1, ratio, seeds, at_least=False)


def _worst(
    words: str,
    wanted: float,
    results: Results,
    by_split: dict[str, Series],
    values: Values,
    metric: str,
    only: str | None = None,
) -> Goal:
    """The lowest value of any split, test and seed."""
    found = [
        values(results, series, test, metric)
        for split, series in by_split.items()
        for test in ([only] if only else conditions_of(split))
    ]
    return Goal(words, wanted, float(np.min(np.concatenate(found))), _count(by_split.values()))


def _count(series: Iterable[Series]) -> int:
    return sum(len(one.specs) for one in series)


def _final(results: Results, series: Series, condition: str, metric: str) -> Float[np.ndarray, "n"]:
    return results.final(series, condition, metric)
