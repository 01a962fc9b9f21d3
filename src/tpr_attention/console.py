"""Progress with the time left, and tables on a terminal; without a terminal, only the beginning and the end."""

import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import IO, Any, NamedTuple, TypeVar, cast

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tpr_attention.runner.events import Event, Failure, Waiting
from tpr_attention.runner.events import Progress as Step

__all__ = [
    "DIVERGED",
    "Estimate",
    "Followed",
    "OutputError",
    "Terminal",
    "clock",
    "counted",
    "diverged_words",
    "follow",
    "one_line",
    "table",
    "tell",
    "visible",
]

DIVERGED = 3
"""The exit code of commands if runs that were asked for diverged, and nothing else is wrong."""


UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal obeys instead of showing them, and bytes of names that are no text."""

Result = TypeVar("Result")
WIDTH = 160  # characters in a line where there is no terminal to tell
LONGEST = 1_000  # characters of an error


def visible(text: str) -> str:
    r"""A text in which nothing is a command to a terminal; lines and tabs stay.

    >>> print(visible("\x1b[31mred\r"))
    \x1b[31mred\x0d
    """
    return UNSEEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    if 0xDC80 <= number <= 0xDCFF:  # a byte of a path that is no UTF-8
        number -= 0xDC00
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def one_line(text: str) -> str:
    """A message in one line; of a very long one the beginning and the end."""
    line = visible(re.sub(r"\s*\n\s*", " ", text))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 305]} ... {line[-300:]}"


class OutputError(RuntimeError):
    """A stream cannot be written to."""

    def __init__(self, error: OSError | ValueError) -> None:
        super().__init__(error.strerror if isinstance(error, OSError) else str(error))
        self.reader_has_gone = isinstance(error, BrokenPipeError)


class _Output:
    """Standard output or error: what cannot be written raises `OutputError`, and what it cannot encode is escaped."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        return int(self._do(lambda stream: stream.write(text)))

    def flush(self) -> None:
        """Send what was written."""
        self._do(lambda stream: stream.flush())

    def _do(self, function: Callable[[Any], Result]) -> Result:
        try:
            if self.stream is None:
                raise ValueError("it is closed")
            return function(self.stream)
        except (OSError, ValueError) as error:
            raise OutputError(error) from error


class Terminal(Console):
    """A console that shows all texts as they are: names that users and files give cannot act on the terminal."""

    def __init__(self, stream: Any, **settings: Any) -> None:
        is_terminal = stream is not None and stream.isatty()
        super().__init__(file=cast(IO[str], _Output(stream)), width=None if is_terminal else WIDTH, **settings)

    def render_str(self, text: str, **how: Any) -> Text:
        """A text as it is printed, alone or in a table."""
        return super().render_str(visible(text), **how)


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def tell(message: str) -> None:
    """Say something on standard error, if it is open."""
    with suppress(OutputError):
        Terminal(sys.stderr, soft_wrap=True).print(
            one_line(message), style="red" if message.startswith("error") else None, markup=False, highlight=False
        )


class Estimate:
    """The time left: groups that have begun go on at their own speed, the others at the mean speed of those."""

    def __init__(self, runs: int, workers: int) -> None:
        self.runs, self.workers = runs, workers
        self.begun: dict[int, float] = {}
        self.last: dict[int, tuple[Step, float]] = {}

    def see(self, event: Step, now: float) -> None:
        """Take note of how far a group has come."""
        self.begun.setdefault(event.group, now)
        self.last[event.group] = event, now

    def seconds(self, now: float) -> float | None:
        """How long it may still take; None before anything can be said."""
        whole = {
            group: (seen - self.begun[group]) * event.steps / event.step
            for group, (event, seen) in self.last.items()
            if event.step
        }
        if not whole:
            return None
        usual = sum(seconds / self.last[group][0].runs for group, seconds in whole.items()) / len(whole)  # for a run
        left = (self.runs - sum(event.runs for event, _ in self.last.values())) * usual
        for group, (event, _) in self.last.items():
            if not event.finished:
                left += max(whole.get(group, usual * event.runs) - (now - self.begun[group]), 0)
        return left / max(1, min(self.workers, len(self.last)))


class Followed(NamedTuple):
    """What failed, and for each group that is stored how many of its runs were trained here."""

    failures: list[Failure]
    trained: dict[int, int]


def follow(events: Iterable[Event], runs: int, workers: int, console: Console) -> Followed:
    """Show how trainings go on until their end."""
    failures: list[Failure] = []
    trained: dict[int, int] = {}
    waits: set[Waiting] = set()
    estimate = Estimate(runs, workers)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"training {runs} runs", total=float(runs), left="preparing")
        done: dict[int, float] = {}
        for event in events:
            if isinstance(event, Failure):
                failures.append(event)
                said = f"failed: {one_line(event.reason)} ({', '.join(event.runs)})"
                console.print(said, style="red", highlight=False, markup=False)
                continue
            if isinstance(event, Waiting):
                if event not in waits:
                    console.print(f"waiting: {event.reason}", style="yellow", highlight=False, markup=False)
                waits.add(event)
                continue
            now = time.monotonic()
            trained |= {event.group: event.trained} if event.finished else {}
            estimate.see(event, now)
            done[event.group] = event.runs * event.step / event.steps
            left = estimate.seconds(now)
            compiling = any(one.step == 0 for one, _ in estimate.last.values())
            words = "compiling" if left is None and compiling else "" if left is None else f"about {clock(left)} left"
            bar.update(task, completed=sum(done.values()), left=words)
        bar.update(task, left="")
    return Followed(failures, trained)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], console: Console) -> None:
    """Print a table; texts are shown as they are."""
    shown = Table(title=escape(title), title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        shown.add_column(escape(column), overflow="fold", no_wrap=place == 0)
    for row in rows:
        shown.add_row(*map(escape, row))
    console.print(shown)


def diverged_words(divergence: tuple[int, str]) -> str:
    """How a run ended whose numbers were not finite any more.

    >>> diverged_words((7, "loss"))
    'diverged at step 7: loss is not finite'
    """
    step, tensor = divergence
    return f"diverged at step {step}: {tensor} is not finite"


def clock(seconds: float) -> str:
    """Minutes and seconds.

    >>> clock(75.4)
    '1:15'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
