"""What a training reports: losses, one point a step and condition."""

from typing import NamedTuple

__all__ = ["ROUNDING", "Point"]

ROUNDING = 1e-10
"""Losses below this are rounding: they count as this where a logarithm is taken, and no axis goes lower."""


class Point(NamedTuple):
    """The losses of a run at one step under one condition: the mean squared error of each role.

    `action` is None for the mean over all pairs; at the end of a run there are also points for each action alone.
    """

    run: str
    step: int
    condition: str
    losses: tuple[float, ...]
    action: str | None = None
