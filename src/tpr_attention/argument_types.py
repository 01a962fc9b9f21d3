"""What the values of arguments may be, with errors and help in words."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress
from math import isfinite
from typing import Any

__all__ = ["ArgumentType", "count", "part", "seconds"]

MOST_PARTS = 100_000


class ArgumentType:
    """A function that reads the text of an argument, and what help calls its values."""

    def __init__(self, words: str, read: Callable[[Any], Any]) -> None:
        self.words, self.read = words, read

    def __call__(self, text: Any) -> Any:
        return self.read(text)

    def __repr__(self) -> str:
        return self.words


def count(most: int = 2**63 - 1, why: str = "") -> ArgumentType:
    """A whole number of at least 1; like the types below, it may be given what it has made."""

    def read(text: str | int) -> int:
        if not re.fullmatch("[0-9]{1,19}", str(text)) or not 1 <= int(text) <= most:
            limit = f"from 1 to {most:,}{why}" if most < 2**63 - 1 else "of at least 1"
            raise ArgumentTypeError(f"expected a whole number {limit}, got {text!r}")
        return int(text)

    return ArgumentType("whole number", read)


def _read_seconds(text: str | float) -> float:
    with suppress(ValueError):
        if float(text) >= 0 and isfinite(float(text)):
            return float(text)
    raise ArgumentTypeError(f"expected a number of seconds of at least 0, got {text!r}")


def _read_part(text: str) -> str:
    """A part of the whole: `commands.training.TrainingSettings.part` reads it."""
    found = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]) <= MOST_PARTS:
        raise ArgumentTypeError(f"expected a part of the whole such as 2/8, of at most {MOST_PARTS:,}, got {text!r}")
    return text


seconds = ArgumentType("number", _read_seconds)
part = ArgumentType("I/N", _read_part)
