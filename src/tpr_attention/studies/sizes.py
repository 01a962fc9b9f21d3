"""Final losses against a size: how studies of growth read their runs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tpr_attention.report.panels import Panel, Plan, Series
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Losses
from tpr_attention.report.tables import Linked
from tpr_attention.studies.kinds import linked

__all__ = ["SizePoint", "series_at", "stored_points"]


def series_at(panel: Panel, series: Series, place: int) -> Series:
    """The runs of a series at one of its sizes."""
    each = len(series.specs) // len(panel.sizes)
    return Series(series.name, series.specs[place * each : (place + 1) * each])


@dataclass(frozen=True, eq=False)
class SizePoint:
    """The stored runs of a panel at one of its sizes."""

    results: Results
    panel: Panel
    place: int

    @property
    def size(self) -> float | int:
        return self.panel.sizes[self.place]

    @cached_property
    def series(self) -> dict[str, Series]:
        """The runs of each series, by name."""
        return {series.name: series_at(self.panel, series, self.place) for series in self.panel.series}

    @cached_property
    def losses(self) -> dict[str, Losses]:
        """The final losses of each series."""
        condition, metric = self.panel.condition, self.panel.metric
        return {name: self.results.final(series, condition, metric) for name, series in self.series.items()}

    @property
    def linked(self) -> dict[str, Linked]:
        """The final losses with links to their runs."""
        return {name: linked(losses, self.series[name].specs[0]) for name, losses in self.losses.items()}

    @property
    def start(self) -> Losses:
        """The losses of the first series at the start of training."""
        first = next(iter(self.series.values()))
        course = self.results.course(first, self.panel.condition, self.panel.metric)
        return course.values[:, 0] if course is not None else np.array([np.nan])

    def parameters(self, names: Iterable[str]) -> list[int]:
        """How many numbers each model of these names learns."""
        runs = [self.series[name].specs[0].digest for name in names]
        return [int(str(self.results.store.provenance(run)["parameters"])) for run in runs]


def stored_points(plan: Plan, results: Results) -> Iterator[SizePoint]:
    """Every panel and size whose runs are all stored; size after size, so that tests are side by side."""
    for row in dict.fromkeys(panel.row for panel in plan.panels):
        panels = [panel for panel in plan.panels if panel.row == row]
        for place in range(len(panels[0].sizes)):
            points = (SizePoint(results, panel, place) for panel in panels)
            yield from (point for point in points if results.complete(point.series.values()))
