"""What a figure consists of: panels of lines, and the runs behind each line."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tpr_attention.experiments.spec import RunSpec

__all__ = ["INTERACTIONS", "SPLITS", "TESTS", "Band", "Curve", "Panel", "Setup", "Study", "over_seeds", "over_sizes"]

TESTS = {"ood_reference": "Test 1", "ood_transform": "Test 2", "ood_composition": "Test 3"}
SPLITS = ("scale_pos", "square_pos", "square_red")
INTERACTIONS = {"scale_pos": "numerical interaction (scale_pos)", "shape_col": "categorical interaction (shape_col)"}


@dataclass(frozen=True)
class Band:
    """The shaded region about a mean over seeds."""

    times: int
    kind: Literal["SD", "SE"]


@dataclass(frozen=True)
class Curve:
    """One line: a contestant or a floor, over seeds."""

    label: str
    specs: tuple[RunSpec, ...]


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a task and a test.

    Args:
        sizes: If given, final losses are drawn against them; each line then has its runs size after size.
        axis: What is on the horizontal axis.
    """

    row: str
    column: str
    split: str
    interaction: str | None
    heads: int | None
    condition: str
    band: Band
    curves: tuple[Curve, ...]
    floors: tuple[Curve, ...] = ()
    sizes: tuple[float | int, ...] = ()
    axis: str = "training steps"

    @property
    def name(self) -> str:
        """The panel's task and test in a few words.

        >>> Panel("", "", "square_red", None, 4, "ood_reference", Band(2, "SD"), ()).name
        'square_red, no interaction, 4 heads, Test 1'
        """
        interaction = f"{self.interaction} interaction" if self.interaction else "no interaction"
        heads = f"{self.heads} heads, " if self.heads else ""
        return f"{self.split}, {interaction}, {heads}{TESTS[self.condition]}"


@dataclass(frozen=True)
class Study:
    """A figure: panels in rows and columns."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]

    def curves(self) -> Iterator[Curve]:
        """All lines of all panels."""
        for panel in self.panels:
            yield from (*panel.curves, *panel.floors)

    @property
    def specs(self) -> tuple[RunSpec, ...]:
        """The distinct runs the figure needs, trainings and floors."""
        return tuple(dict.fromkeys(spec for curve in self.curves() for spec in curve.specs))


@dataclass(frozen=True)
class Setup:
    """How much is done, and under which reading."""

    seeds: int = 5
    steps: int = 10_000
    reading: str = "ours"


def over_seeds(label: str, spec: RunSpec, setup: Setup) -> Curve:
    """A spec, with the steps and each of the seeds of a setup."""
    return Curve(label, tuple(replace(spec, steps=setup.steps, seed=seed) for seed in range(setup.seeds)))


def over_sizes(label: str, specs: Iterable[RunSpec], setup: Setup) -> Curve:
    """A spec for each size, with the steps and each of the seeds of a setup."""
    return Curve(label, tuple(one for spec in specs for one in over_seeds(label, spec, setup).specs))
