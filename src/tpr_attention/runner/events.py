"""Events of a training in progress."""

from typing import NamedTuple

__all__ = ["Event", "Failure", "Progress", "Waiting"]


class Progress(NamedTuple):
    """A group of runs has reached a step; it is stored if `finished`.

    Args:
        trained: How many of its runs were trained now, when it is finished; others had been stored meanwhile.
    """

    group: int
    runs: int
    step: int
    steps: int
    finished: bool = False
    trained: int = 0


class Waiting(NamedTuple):
    """A group of runs cannot go on now and is tried again later: it is held by another process, or its process died."""

    group: int
    runs: tuple[str, ...]
    reason: str


class Failure(NamedTuple):
    """A group of runs could not be trained."""

    group: int
    runs: tuple[str, ...]
    reason: str


Event = Progress | Waiting | Failure
