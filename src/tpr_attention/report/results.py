"""The losses of stored runs, by line of a figure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from jaxtyping import Float

from tpr_attention.experiments.layout import Curve
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store

__all__ = ["Course", "Results"]


class Course(NamedTuple):
    """How losses went: one row a seed."""

    steps: Float[np.ndarray, "s"]
    losses: Float[np.ndarray, "n s"]


def _batches(digests: Iterable[str]) -> Iterator[list[str]]:
    """So many that their curves fit in memory."""
    digests = list(digests)
    return (digests[start : start + 500] for start in range(0, len(digests), 500))


class Results:
    """What a store has of some runs. Runs that are not stored are left out."""

    def __init__(self, store: Store, specs: Iterable[RunSpec]) -> None:
        self.store = store
        self.specs = {spec.digest: spec for spec in specs if spec.digest in store}
        self._courses: dict[tuple[object, ...], tuple[np.ndarray, np.ndarray]] = {}
        last = [
            pl.DataFrame(schema={"run": pl.String, "condition": pl.String, "action": pl.String, "loss": pl.Float64})
        ]
        for digests in _batches(self.specs):
            rows = store.curves(digests).sort("step", maintain_order=True)
            whole = rows.filter(pl.col("action").is_null())
            for key, course in whole.partition_by("run", "condition", as_dict=True).items():
                self._courses[key] = course["step"].to_numpy().copy(), course["loss"].to_numpy().copy()
            last.append(rows.filter(pl.col("step") == pl.col("step").max().over("run")))
        self.last = pl.concat(last, how="diagonal_relaxed")
        self._diverged = {digest for digest in self.specs if store.diverged_at(digest) is not None}

    def stored(self, curve: Curve) -> list[RunSpec]:
        """The runs of a line that are stored."""
        return [spec for spec in curve.specs if spec.digest in self.specs]

    def complete(self, curves: Iterable[Curve]) -> bool:
        """Whether all runs of these lines are stored."""
        return all(spec.digest in self.specs for curve in curves for spec in curve.specs)

    def diverged(self, curve: Curve) -> list[RunSpec]:
        """The runs of a line that stopped because of what was not finite."""
        return [spec for spec in self.stored(curve) if spec.digest in self._diverged]

    def course(self, curve: Curve, condition: str) -> Course | None:
        """The losses of a line over its steps, without runs that diverged; None if there is nothing else."""
        lived = [spec.digest for spec in self.stored(curve) if spec.digest not in self._diverged]
        found = [self._courses[digest, condition] for digest in lived]
        return Course(found[0][0], np.stack([losses for _, losses in found])) if found else None

    def final(self, curve: Curve, condition: str) -> Float[np.ndarray, "n"]:
        """The last loss of each seed: NaN for runs that are not stored, infinity for those that diverged."""
        return np.array([self._last_loss(spec.digest, condition) for spec in curve.specs])

    def _last_loss(self, digest: str, condition: str) -> float:
        if digest not in self.specs:
            return float("nan")
        last = float(self._courses[digest, condition][1][-1])
        return last if np.isfinite(last) and digest not in self._diverged else float("inf")

    def by_role(self, curve: Curve, condition: str) -> dict[str, float]:
        """The last loss of each role, mean over seeds."""
        rows = self._last(curve, condition).filter(pl.col("action").is_null())
        means = rows.select(cs.starts_with("role_")).mean()
        found = means.row(0, named=True) if len(means) else {}
        return {name.removeprefix("role_"): loss for name, loss in found.items() if loss is not None}

    def by_action(self, curve: Curve, condition: str) -> dict[str, float]:
        """The last loss of each action the condition has, mean over seeds."""
        rows = self._last(curve, condition).filter(pl.col("action").is_not_null())
        found = rows.group_by("action", maintain_order=True).agg(pl.col("loss").mean())
        return dict(found.select("action", "loss").iter_rows())

    def _last(self, curve: Curve, condition: str) -> pl.DataFrame:
        runs = [spec.digest for spec in self.stored(curve) if spec.digest not in self._diverged]
        return self.last.filter(pl.col("run").is_in(runs), pl.col("condition") == condition)

    def provenance(self) -> list[Mapping[str, object]]:
        """Where each run comes from."""
        return [self.store.provenance(digest) for digest in self.specs]
