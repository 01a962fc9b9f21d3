"""What the parts of the study share: contestants with their options, their series, and the table of a contest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tpr_attention.report.panels import Band, Look, Panel, Plan, Series
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import mean
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.kinds import cost, linked
from tpr_attention.studies.recall.state_sizes import state_size
from tpr_attention.studies.study import Setup, over_seeds
from tpr_attention.training.spec import RunSpec

__all__ = ["Contest", "Entrant", "contest_plan", "contest_table", "final_means"]

EXPLAINED = (
    "Arithmetic mean over seeds ± standard error. State: the numbers that are kept of a sequence as long as those of "
    "training."
)


@dataclass(frozen=True)
class Entrant:
    """A contestant.

    Args:
        words: What legends and tables call it.
        keys: Its model, the options of it, and what else differs in its training.
        steps: How long it is trained; as long as the others if not given.
    """

    words: str
    look: Look
    keys: Mapping[str, object]
    steps: int | None = None


@dataclass(frozen=True)
class Contest:
    """Contestants on one task.

    Args:
        keys: The task with its options, and the training.
        steps: How long contestants are trained that do not say otherwise.
    """

    keys: Mapping[str, object]
    steps: int
    entrants: Mapping[str, Entrant] = field(default_factory=dict)

    def series(self, name: str, setup: Setup, changes: Mapping[str, object] | None = None) -> Series:
        """The runs of a contestant, with the seeds of a setup and at most its steps."""
        entrant = self.entrants[name]
        spec = RunSpec.of({**self.keys, **entrant.keys, **(changes or {})})
        own = replace(setup, steps=min(setup.steps, entrant.steps or self.steps))
        return over_seeds(name, spec, own, entrant.words, entrant.look)

    def every(self, setup: Setup) -> tuple[Series, ...]:
        """The runs of all contestants."""
        return tuple(self.series(name, setup) for name in self.entrants)

    def stored(self, results: Results, setup: Setup) -> dict[str, Series]:
        """The contestants all of whose runs are stored, by name."""
        return {series.name: series for series in self.every(setup) if results.complete([series])}


def contest_table(
    name: str,
    caption: str,
    results: Results,
    rows: Iterable[tuple[Sequence[Any], Series]],
    first: Sequence[Column],
    conditions: Mapping[str, str],
    metric: str,
) -> Table:
    """A row for each series: what it is about, a metric in each test, and what it costs.

    Args:
        rows: The first cells, and the series.
        first: The columns of the first cells.
        conditions: Condition to the title of its column.
    """
    made = []
    for about, series in rows:
        found = [linked(results.final(series, condition, metric), series.specs[0]) for condition in conditions]
        made.append([*about, series.label, *found, state_size(series.specs[0]), *cost(results, series.specs)])
    columns = [*first, Column("contestant"), *(Column(title, "mean_and_error") for title in conditions.values())]
    columns += [Column("state", "count"), Column("parameters", "count"), Column("seconds", "number")]
    return Table(name, f"{caption} {EXPLAINED}", columns, made)


def contest_plan(plan: Plan, contest: Contest, tests: Mapping[str, tuple[str, str]], metric: str, setup: Setup) -> Plan:
    """A figure of all contestants over training, with a panel for each test.

    Args:
        plan: Its name, title and caption.
        tests: Condition to the titles of its row and column.
    """
    scale: Literal["log", "linear"] = "linear" if metric == "accuracy" else "log"
    series = contest.every(setup)
    panels = tuple(
        Panel(row, column, {"test": condition}, condition, Band(1, "SE"), series, metric=metric, scale=scale)
        for condition, (row, column) in tests.items()
    )
    return replace(plan, panels=panels)


def final_means(results: Results, series: Mapping[str, Series], condition: str, metric: str) -> dict[str, float]:
    """The mean of a metric at the end of training, by contestant."""
    return {name: mean(results.final(one, condition, metric)) for name, one in series.items()}
