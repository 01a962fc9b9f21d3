"""Searches for learning rates: one grid and one rule for all models, judged in distribution only."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, log10
from statistics import fmean

from tpr_attention.report.panels import Series
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.kinds import linked
from tpr_attention.training.spec import ROUNDING, RunSpec

__all__ = ["GRID", "RateSearch", "Rates", "best_rate", "score"]

GRID = (0.001, 0.003, 0.01, 0.03, 0.1)

Runs = Mapping[float, tuple[RunSpec, ...]]
Rates = Mapping[str, Mapping[int, float]]
"""Model to size to learning rate."""


def score(losses: list[float]) -> float:
    """The mean order of magnitude of in-distribution losses; less is better. A run that diverged counts as 10.

    >>> score([1e-4, 1e-6])
    -5.0
    """
    return fmean(log10(max(loss, ROUNDING)) if isfinite(loss) else 10.0 for loss in losses)


def best_rate(runs: Runs, loss: Callable[[RunSpec], float]) -> float:
    """The rate with the best score; of equal ones the smallest."""
    return min(sorted(runs), key=lambda rate: score([loss(spec) for spec in runs[rate]]))


@dataclass(frozen=True)
class RateSearch:
    """The runs of a search for the rate of each model at each size.

    Args:
        name: Of its plan and of its table.
        size: What sizes are called.
        runs: By model, size and rate.
        used: The rates that are in use.
    """

    name: str
    size: str
    runs: Mapping[str, Mapping[int, Runs]]
    used: Rates

    def specs(self) -> Iterator[RunSpec]:
        """All runs."""
        every = (runs for sizes in self.runs.values() for runs in sizes.values())
        return (spec for runs in every for specs in runs.values() for spec in specs)

    def found(self, results: Results) -> dict[str, dict[int, float]]:
        """The rates with the best scores, as far as the search is stored; it has the form of `used`."""
        found: dict[str, dict[int, float]] = {}
        for name, size, runs in self._stored(results):
            found.setdefault(name, {})[size] = best_rate(runs, lambda spec: _loss(results, spec))
        return found

    def table(self, results: Results, caption: str) -> Table | None:
        """The scores of all rates, and whether those in use are the best; None if nothing is stored."""
        best, rows = self.found(results), []
        for name, size, runs in self._stored(results):
            scores = [linked(10 ** score([_loss(results, one) for one in specs]), specs[0]) for specs in runs.values()]
            used = self.used[name][size]
            rows.append([name, size, *scores, best[name][size], used, best[name][size] == used])
        if not rows:
            return None
        grid = next(iter(next(iter(self.runs.values())).values()))
        columns = [Column("model"), Column(self.size, "count"), *(Column(f"{rate:g}", "number") for rate in grid)]
        columns += [Column("best", "exact"), Column("used", "exact"), Column("is the one used", "yes_no")]
        return Table(self.name, caption, columns, rows, folded=True)

    def _stored(self, results: Results) -> Iterator[tuple[str, int, Runs]]:
        for name, sizes in self.runs.items():
            for size, runs in sizes.items():
                if results.complete([Series("", specs) for specs in runs.values()]):
                    yield name, size, runs


def _loss(results: Results, spec: RunSpec) -> float:
    return float(results.final(Series("", (spec,)), "in_distribution")[0])
