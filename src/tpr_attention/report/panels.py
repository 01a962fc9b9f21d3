"""What a figure of curves consists of: panels of series, and the runs behind each series."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tpr_attention.training.spec import RunSpec

__all__ = ["Band", "Known", "Look", "Panel", "Plan", "Series"]


@dataclass(frozen=True)
class Look:
    """How a line is drawn.

    Args:
        colour: As `#rrggbb`.
        dashes: Lengths of ink and gap in turn, in line widths; none for a solid line.
        marker: A matplotlib marker for the end of the line; empty for a line without an end.
    """

    colour: str
    dashes: tuple[float | int, ...] = ()
    marker: str = ""
    width: float = 1.8


@dataclass(frozen=True)
class Band:
    """The shaded region about a mean over seeds.

    >>> str(Band(2, "SD"))
    'mean ± 2 SD'
    """

    times: int
    kind: Literal["SD", "SE"]

    def __str__(self) -> str:
        return f"mean ± {self.times} {self.kind}"


@dataclass(frozen=True)
class Series:
    """One line: runs that differ in their seeds, or in a size and their seeds.

    Args:
        name: A short name, the same in all panels of a figure.
        words: What the legend says; the name if empty.
        look: How it is drawn; one of some spare looks if not given.
    """

    name: str
    specs: tuple[RunSpec, ...]
    words: str = ""
    look: Look | None = None

    @property
    def label(self) -> str:
        """What the legend says."""
        return self.words or self.name


@dataclass(frozen=True)
class Known:
    """Values that are known from elsewhere, such as published ones: points at some of a panel's sizes.

    Args:
        name: A short name that no series has.
        label: What the legend says.
    """

    name: str
    values: Mapping[float | int, float]
    label: str
    look: Look


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a metric under one condition.

    Args:
        row, column: Titles; panels with equal titles share a row or a column.
        cell: What the panel is about, by name, as tables show it; for example a task's options and the test.
        series: The lines.
        floors: Horizontal lines: series whose last value does not depend on training.
        sizes: If given, final values are drawn against them; each series has its runs size after size.
        known: Points to compare with, in a panel with sizes.
        axis: What is on the horizontal axis.
        axis_scale: Of the horizontal axis; that of sizes is logarithmic.
        lengths: How much of the horizontal axis the whole training of a series takes, by name of the series; for an
            axis that has no steps. Series without a length are left out.
        further: How much of it what comes after training takes, for those with a length that have it; other lines end
            with training.
        metric: What is on the vertical axis.
        scale: Of the vertical axis. Losses are told apart on a logarithmic one, accuracies on a linear one.
        mark: What is written into the panel, from the heights of the floors that are stored, by name.
    """

    row: str
    column: str
    cell: Mapping[str, str]
    condition: str
    band: Band
    series: tuple[Series, ...]
    floors: tuple[Series, ...] = ()
    sizes: tuple[float | int, ...] = ()
    axis: str = "training steps"
    axis_scale: Literal["log", "linear"] = "linear"
    lengths: Mapping[str, float] = field(default_factory=dict)
    further: Mapping[str, float] = field(default_factory=dict)
    metric: str = "loss"
    scale: Literal["log", "linear"] = "log"
    mark: Callable[[Mapping[str, float]], str] | None = field(default=None, compare=False)
    known: tuple[Known, ...] = ()

    @property
    def name(self) -> str:
        """The panel in a few words.

        >>> Panel("", "", {"size": "8", "test": "long"}, "long_sequences", Band(2, "SD"), ()).name
        'size 8, test long'
        """
        return ", ".join(f"{key} {value}" for key, value in self.cell.items())


@dataclass(frozen=True)
class Plan:
    """A figure before its runs are read: panels in rows and columns.

    Args:
        name: The stem of its files.
        note: What a reader must know of the marks in the panels.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    note: str = ""

    def series(self) -> Iterator[Series]:
        """All lines of all panels."""
        for panel in self.panels:
            yield from (*panel.series, *panel.floors)

    @property
    def specs(self) -> tuple[RunSpec, ...]:
        """The distinct runs the figure needs."""
        return tuple(dict.fromkeys(spec for series in self.series() for spec in series.specs))
