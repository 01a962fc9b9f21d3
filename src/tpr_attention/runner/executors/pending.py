"""Groups that wait to be started, now or later."""

import time
from collections import Counter
from collections.abc import Sequence

from tpr_attention.runner.events import Event, Waiting
from tpr_attention.runner.store import Store
from tpr_attention.runner.work import Work, record_failure

__all__ = ["RETRY_SECONDS", "Pending"]

RETRY_SECONDS = 1.0
"""The delay after which a group that another process holds is tried again."""


class Pending:
    """The groups that are to be started, and how often the process of each has died."""

    def __init__(self, work: Sequence[Work], store: Store, attempts: int) -> None:
        self.store, self.attempts = store, attempts
        self._waiting = [(0.0, item) for item in work]
        self._deaths: Counter[int] = Counter()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def ready(self) -> list[Work]:
        """The groups that can be started now."""
        now = time.monotonic()
        return [item for due, item in self._waiting if due <= now]

    def take(self, work: Work) -> None:
        """Remove a group that is started."""
        self._waiting = [(due, item) for due, item in self._waiting if item.number != work.number]

    def retry(self, work: Work, delay: float = RETRY_SECONDS) -> None:
        """Start a group again after a delay."""
        self._waiting.append((time.monotonic() + delay, work))

    def after_death(self, work: Work, reason: str) -> Event:
        """Start a group again whose process died; if that was its last attempt, it has failed."""
        self._deaths[work.number] += 1
        if self._deaths[work.number] < self.attempts:
            self.retry(work, delay=0.0)
            return Waiting(work.number, work.runs, f"{reason}; it is started again")
        return record_failure(work, f"{reason}, {self.attempts} times", self.store)
