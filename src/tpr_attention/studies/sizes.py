"""Final losses against a size: how studies of growth read their runs."""

from collections.abc import Iterator

import numpy as np

from tpr_attention.report.panels import Panel, Plan, Series
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Losses

__all__ = ["final_at", "parameters_at", "series_at", "start_at", "stored_points"]


def stored_points(plan: Plan, results: Results) -> Iterator[tuple[Panel, int, float]]:
    """Every panel and size whose runs are all stored; size after size, so that tests are side by side."""
    for row in dict.fromkeys(panel.row for panel in plan.panels):
        panels = [panel for panel in plan.panels if panel.row == row]
        for place, size in enumerate(panels[0].sizes):
            for panel in panels:
                if results.complete(series_at(panel, series, place) for series in panel.series):
                    yield panel, place, float(size)


def series_at(panel: Panel, series: Series, place: int) -> Series:
    """The runs of a series at one of its sizes."""
    each = len(series.specs) // len(panel.sizes)
    return Series(series.name, series.specs[place * each : (place + 1) * each])


def final_at(results: Results, panel: Panel, place: int) -> dict[str, Losses]:
    """The final losses of every series at one of its sizes, by name."""
    return {
        series.name: results.final(series_at(panel, series, place), panel.condition, panel.metric)
        for series in panel.series
    }


def start_at(results: Results, panel: Panel, place: int) -> Losses:
    """The losses at the start of training, of the first series at one of its sizes."""
    course = results.course(series_at(panel, panel.series[0], place), panel.condition, panel.metric)
    return course.values[:, 0] if course is not None else np.array([np.nan])


def parameters_at(results: Results, panel: Panel, place: int, names: tuple[str, ...]) -> list[int]:
    """How many numbers each model of these names learns at one of its sizes."""
    runs = {series.name: series_at(panel, series, place).specs[0].digest for series in panel.series}
    return [int(str(results.store.provenance(runs[name])["parameters"])) for name in names]
