"""What happens while runs are trained."""

from typing import NamedTuple

__all__ = ["Event", "Failure", "Progress"]


class Progress(NamedTuple):
    """A group of runs has come to a step; it is in the store when `finished`."""

    group: int
    runs: int
    step: int
    steps: int
    finished: bool = False


class Failure(NamedTuple):
    """A group of runs could not be trained."""

    group: int
    runs: tuple[str, ...]
    reason: str


Event = Progress | Failure
