"""Progress with the time left, and tables on a terminal; without a terminal, only the beginning and the end."""

import time
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tpr_attention.runner.events import Event, Failure, Waiting
from tpr_attention.runner.events import Progress as Step

__all__ = ["Estimate", "clock", "follow", "table"]


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


def follow(events: Iterable[Event], runs: int, workers: int, console: Console) -> list[Failure]:
    """Show how trainings go on; those that failed."""
    failures: list[Failure] = []
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
                said = f"failed: {event.reason} ({', '.join(event.runs)})"
                console.print(said, style="red", highlight=False, markup=False)
                continue
            if isinstance(event, Waiting):
                if event not in waits:
                    console.print(f"waiting: {event.reason}", style="yellow", highlight=False, markup=False)
                waits.add(event)
                continue
            now = time.monotonic()
            estimate.see(event, now)
            done[event.group] = event.runs * event.step / event.steps
            left = estimate.seconds(now)
            compiling = any(one.step == 0 for one, _ in estimate.last.values())
            words = "compiling" if left is None and compiling else "" if left is None else f"about {clock(left)} left"
            bar.update(task, completed=sum(done.values()), left=words)
        bar.update(task, left="")
    return failures


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], console: Console) -> None:
    """Print a table; texts are shown as they are."""
    shown = Table(title=escape(title), title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        shown.add_column(escape(column), overflow="fold", no_wrap=place == 0)
    for row in rows:
        shown.add_row(*map(escape, row))
    console.print(shown)


def clock(seconds: float) -> str:
    """Minutes and seconds.

    >>> clock(75.4)
    '1:15'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
