"""The points of a run as a table."""

from collections.abc import Iterable, Sequence

import polars as pl

from tpr_attention.training.points import Point

__all__ = ["CURVE", "curve"]

CURVE = {
    "step": pl.Int64(),
    "condition": pl.String(),
    "metric": pl.String(),
    "group": pl.String(),
    "value": pl.Float64(),
}
"""The columns of a curve, one row a number; `group` is null for all examples."""


def curve(points: Iterable[Point], metrics: Sequence[str]) -> pl.DataFrame:
    """The points of one run as a long table.

    >>> curve([Point("9f", 0, "test", None, (0.5, 1.0))], ["loss", "accuracy"])["value"].to_list()
    [0.5, 1.0]
    """
    rows = [
        (point.step, point.condition, metric, point.group, value)
        for point in points
        for metric, value in zip(metrics, point.values, strict=False)
    ]
    return pl.DataFrame(rows, schema=CURVE, orient="row")
