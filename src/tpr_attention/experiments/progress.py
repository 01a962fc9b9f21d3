"""What happens while runs are trained."""

from typing import NamedTuple

__all__ = ["Event", "Failure", "Progress", "Waiting"]


class Progress(NamedTuple):
    """A group of runs has come to a step; it is in the store when `finished`."""

    group: int
    runs: int
    step: int
    steps: int
    finished: bool = False


class Waiting(NamedTuple):
    """A group of runs cannot go on now, and will be tried again: another process trains some of it, or one died."""

    group: int
    runs: tuple[str, ...]
    reason: str


class Failure(NamedTuple):
    """A group of runs could not be trained."""

    group: int
    runs: tuple[str, ...]
    reason: str


Event = Progress | Waiting | Failure
