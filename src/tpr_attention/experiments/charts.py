"""Figures of final losses against a size: what each point is the mean of, and how they are laid out."""

from collections.abc import Iterator
from dataclasses import dataclass

from tpr_attention.experiments.layout import Curve
from tpr_attention.experiments.spec import RunSpec

__all__ = ["Chart", "Series", "View"]


@dataclass(frozen=True)
class Series:
    """One line: for each size, the runs of a contestant over seeds."""

    label: str
    points: tuple[tuple[float, Curve], ...]


@dataclass(frozen=True)
class View:
    """One pair of axes: a test, as it changes with one size."""

    row: str
    column: str
    size: str
    condition: str
    lines: tuple[Series, ...]
    floors: tuple[Series, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A figure: views in rows and columns.

    Args:
        relative: Whether losses are divided by that of the copy, with which every training starts.
    """

    name: str
    title: str
    caption: str
    views: tuple[View, ...]
    relative: bool = False

    def curves(self) -> Iterator[Curve]:
        """The runs of all points."""
        for view in self.views:
            for series in (*view.lines, *view.floors):
                yield from (curve for _, curve in series.points)

    @property
    def specs(self) -> tuple[RunSpec, ...]:
        """The distinct runs the figure needs."""
        return tuple(dict.fromkeys(spec for curve in self.curves() for spec in curve.specs))
