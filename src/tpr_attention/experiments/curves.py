"""The points of a run as a table."""

from collections.abc import Iterable, Mapping
from operator import mul

import polars as pl

from tpr_attention.experiments.points import Point

__all__ = ["curve"]


def curve(points: Iterable[Point], role_weights: Mapping[str, float]) -> pl.DataFrame:
    """The points of one run as a table: a row a point, a column for each role, and their weighted mean as `loss`.

    >>> points = [Point("9f", 0, "train", (0.5, 0.25)), Point("9f", 8, "train", (0.25, 0.0), "shape")]
    >>> curve(points, {"shape": 0.5, "colour": 0.5})["loss"].to_list()
    [0.375, 0.125]
    """
    points, weights = list(points), tuple(role_weights.values())
    by_role = list(zip(*(point.losses for point in points), strict=True)) if points else [()] * len(weights)
    of_roles = {f"role_{role}": losses for role, losses in zip(role_weights, by_role, strict=True)}
    return pl.DataFrame(
        {
            "step": [point.step for point in points],
            "condition": [point.condition for point in points],
            "action": [point.action for point in points],
            "loss": [sum(map(mul, weights, point.losses)) for point in points],
            **{name: list(losses) for name, losses in of_roles.items()},
        },
        schema={
            "step": pl.Int64,
            "condition": pl.String,
            "action": pl.String,
            "loss": pl.Float64,
            **dict.fromkeys(of_roles, pl.Float64),
        },
    )
