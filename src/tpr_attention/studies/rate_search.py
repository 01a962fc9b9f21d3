"""Searches for learning rates: one grid and one rule for all models, judged in distribution only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log10
from statistics import fmean
from typing import Any, Literal

from tpr_attention.report.panels import Series
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.kinds import linked
from tpr_attention.studies.study import SEARCH_SEEDS
from tpr_attention.training.spec import ROUNDING, RunSpec

__all__ = ["GRID", "RateSearch", "best_rate", "score"]

GRID = (0.001, 0.003, 0.01, 0.03, 0.1)

Case = tuple[Any, ...]
Runs = Mapping[float, tuple[RunSpec, ...]]


def score(losses: list[float]) -> float:
    """The mean order of magnitude of in-distribution losses; less is better. A run that diverged counts as 10.

    >>> score([1e-4, 1e-6])
    -5.0
    """
    return fmean(log10(max(loss, ROUNDING)) if isfinite(loss) else 10.0 for loss in losses)


def best_rate(runs: Runs, loss: Callable[[RunSpec], float]) -> float:
    """The rate with the best score; of equal ones the smallest."""
    return min(sorted(runs), key=lambda rate: score([loss(spec) for spec in runs[rate]]))


@dataclass(frozen=True, eq=False)
class RateSearch:
    """A search for the rate of each of several cases, for example of a model and a number of pairs.

    Args:
        name: Of its plan and of its table.
        case: The columns that tell cases apart.
        kinds: The specs of each case as studies have them, at the rate in use.
        steps: Of each run.
        seeds: Those of each spec, at each rate.
    """

    name: str
    case: tuple[Column, ...]
    kinds: Mapping[Case, Sequence[RunSpec]]
    steps: int
    seeds: Sequence[int] = SEARCH_SEEDS
    grid: Sequence[float] = GRID

    @cached_property
    def runs(self) -> dict[Case, Runs]:
        """All runs by case and rate."""
        return {case: {rate: self._at(kinds, rate) for rate in self.grid} for case, kinds in self.kinds.items()}

    def _at(self, kinds: Sequence[RunSpec], rate: float) -> tuple[RunSpec, ...]:
        changed = [kind.changed({"training.learning_rate": rate, "training.steps": self.steps}) for kind in kinds]
        return tuple(kind.with_seed(seed) for kind in changed for seed in self.seeds)

    def specs(self) -> Iterator[RunSpec]:
        """All runs."""
        return (spec for runs in self.runs.values() for specs in runs.values() for spec in specs)

    def found(self, results: Results) -> dict[Case, float]:
        """The rate with the best score for each case whose runs are all stored."""
        complete = [
            case for case, runs in self.runs.items() if results.complete(Series("", specs) for specs in runs.values())
        ]
        return {case: best_rate(self.runs[case], lambda spec: _loss(results, spec)) for case in complete}

    def table(self, results: Results, caption: str, shown: Literal["folded", "file"] = "file") -> Table | None:
        """The scores of all rates, and whether those in use are the best; None if nothing is stored."""
        rows = []
        for case, best in self.found(results).items():
            scores = [
                linked(10 ** score([_loss(results, spec) for spec in specs]), specs[0])
                for specs in self.runs[case].values()
            ]
            used = self.kinds[case][0].training.learning_rate
            rows.append([*(part or "none" for part in case), *scores, best, used, best == used])
        if not rows:
            return None
        columns = [*self.case, *(Column(f"{rate:g}", "number") for rate in self.grid)]
        columns += [Column("best", "exact"), Column("used", "exact"), Column("is the one used", "yes_no")]
        return Table(self.name, caption, columns, rows, shown)


def _loss(results: Results, spec: RunSpec) -> float:
    return float(results.final(Series("", (spec,)), "in_distribution")[0])
