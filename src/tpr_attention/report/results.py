"""The stored values of runs, by line of a figure."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float

from tpr_attention.report.panels import Series
from tpr_attention.runner.store import Store
from tpr_attention.runner.tables import curves_of, specs_of
from tpr_attention.training.curves import CURVE
from tpr_attention.training.points import group_label
from tpr_attention.training.spec import RunSpec

__all__ = ["Course", "Results"]

AT_ONCE = 500
"""Runs whose curves are in memory at the same time."""


class Course(NamedTuple):
    """A metric over training: one row a seed."""

    steps: Float[np.ndarray, "s"]
    values: Float[np.ndarray, "n s"]


class Results:
    """What a store has of some runs. Runs that are not stored are left out.

    Last values are read at once, in batches; courses when they are asked for.
    """

    def __init__(self, store: Store, specs: Iterable[RunSpec]) -> None:
        self.store = store
        self.specs = {spec.digest: spec for spec in specs if spec.digest in store}
        self._diverged = {digest for digest in self.specs if store.divergence(digest) is not None}
        digests = list(self.specs)
        parts = [pl.DataFrame(schema={"run": pl.String(), **CURVE})]
        for start in range(0, len(digests), AT_ONCE):
            rows = curves_of(store, digests[start : start + AT_ONCE])
            parts.append(rows.filter(pl.col("step") == pl.col("step").max().over("run", "condition")))
        self.last = pl.concat(parts)
        """The rows of the last step of every run and condition: `run` and the columns of a curve."""
        self._final: dict[tuple[str, str], dict[tuple[str | None, str], float]] = {}
        columns = self.last.select("run", "condition", "group", "metric", "value")
        for run, condition, group, metric, value in columns.iter_rows():
            self._final.setdefault((run, condition), {})[group, metric] = value
        self._curve = lru_cache(AT_ONCE)(store.curve)

    def stored(self, series: Series) -> list[RunSpec]:
        """The runs of a series that are stored."""
        return [spec for spec in series.specs if spec.digest in self.specs]

    def complete(self, series: Iterable[Series]) -> bool:
        """Whether all runs of these series are stored."""
        return all(spec.digest in self.specs for one in series for spec in one.specs)

    def diverged(self, series: Series) -> list[RunSpec]:
        """The stored runs of a series that stopped at a value that was not finite."""
        return [spec for spec in self.stored(series) if spec.digest in self._diverged]

    def final(self, series: Series, condition: str, metric: str = "loss") -> Float[np.ndarray, "n"]:
        """The last value of each run: NaN for runs that are not stored, infinity for those that diverged."""
        return np.array([self._last_value(spec.digest, condition, metric) for spec in series.specs])

    def course(self, series: Series, condition: str, metric: str = "loss") -> Course | None:
        """A metric over the steps, without runs that diverged; None if there is no other run."""
        curves = [
            self._curve(digest)
            .filter(pl.col("group").is_null(), pl.col("condition") == condition, pl.col("metric") == metric)
            .sort("step")
            for digest in self._finished(series)
        ]
        if not curves:
            return None
        steps, values = curves[0]["step"].to_numpy(), [curve["value"].to_numpy() for curve in curves]
        return Course(steps, np.stack(values))

    def by_metric(self, series: Series, condition: str) -> dict[str, float]:
        """The last value of every metric, mean over the seeds that did not diverge."""
        return {metric: mean for (group, metric), mean in self._means(series, condition).items() if group is None}

    def by_group(self, series: Series, condition: str, grouping: str, metric: str = "loss") -> dict[str, float]:
        """The last value of a metric in every group the condition has examples of, mean over the seeds.

        Args:
            grouping: What examples are grouped by, a key of the `groups` of `Store.names`.
        """
        finished = self._finished(series)
        names = self.store.names(finished[0])["groups"].get(grouping, ()) if finished else ()
        found = self._means(series, condition)
        keys = {name: (group_label(grouping, name), metric) for name in names}
        return {name: found[key] for name, key in keys.items() if key in found}

    def final_values(self) -> pl.DataFrame:
        """The last values of all runs with their specs, one row a number."""
        return specs_of(self.store, self.specs).join(self.last, on="run", how="left", maintain_order="left_right")

    def provenance(self) -> list[Mapping[str, object]]:
        """Where each run comes from."""
        return [self.store.provenance(digest) for digest in self.specs]

    def _finished(self, series: Series) -> list[str]:
        return [spec.digest for spec in self.stored(series) if spec.digest not in self._diverged]

    def _last_value(self, digest: str, condition: str, metric: str) -> float:
        if digest not in self.specs:
            return float("nan")
        if digest in self._diverged:
            return float("inf")
        value = self._final.get((digest, condition), {}).get((None, metric))
        if value is None:
            raise KeyError(f"run {digest} has no metric {metric!r} under condition {condition!r}")
        return value if np.isfinite(value) else float("inf")

    def _means(self, series: Series, condition: str) -> dict[tuple[str | None, str], float]:
        """The mean over seeds for each group and metric, in the order of the curve."""
        found: dict[tuple[str | None, str], list[float]] = {}
        for digest in self._finished(series):
            for key, value in self._final.get((digest, condition), {}).items():
                found.setdefault(key, []).append(value)
        return {key: float(np.mean(values)) for key, values in found.items()}
