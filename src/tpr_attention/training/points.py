"""What a training reports: metrics at steps, under conditions, of all examples and of groups of them."""

from typing import NamedTuple

__all__ = ["TRAIN", "Point", "group_label"]

TRAIN = "train"
"""The condition of training: its values are means over the steps since the point before."""


class Point(NamedTuple):
    """The metrics of a run at one step under one condition.

    Args:
        group: The group of examples, as `group_label` writes it; None for all of them.
        values: The first of the task's metrics, in their order.
    """

    run: str
    step: int
    condition: str
    group: str | None
    values: tuple[float, ...]


def group_label(grouping: str, name: str) -> str:
    """A group in a curve.

    >>> group_label("action", "colour")
    'action=colour'
    """
    return f"{grouping}={name}"
