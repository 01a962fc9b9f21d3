"""Metrics of many runs, summed over examples and over groups of them."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import vmap

from tpr_attention.tasks.task import Batch

__all__ = ["Evaluation", "Measure", "group_sums", "measure_one_by_one", "measure_stacked"]

Measure = Callable[[Tensor, Batch], dict[str, Tensor]]
"""Output and batch to metrics by name."""


class Evaluation(NamedTuple):
    """Sums of metrics over examples, for all of them (None) and for each grouping, and how many examples there were."""

    sums: dict[str | None, Float[Tensor, "n g k"]]
    counts: dict[str | None, Tensor]

    def means(self) -> Float[Tensor, "n k"]:
        """The mean of every metric for every run."""
        return (self.sums[None] / self.counts[None].unsqueeze(-1))[:, 0]

    def by_group(self, run: int) -> Iterator[tuple[str, int, tuple[float, ...]]]:
        """For every group that has examples: the grouping, the group's number, and the means."""
        for grouping, sums in self.sums.items():
            if grouping is not None:
                count = self.counts[grouping][run]
                for group in count.nonzero().flatten().tolist():
                    yield grouping, group, tuple((sums[run, group] / count[group]).tolist())


def group_sums(values: Float[Tensor, "b k"], members: Bool[Tensor, "b g"]) -> Float[Tensor, "g k"]:
    """Sums over the members of each group, whatever the other values are."""
    return torch.where(members.unsqueeze(-1), values.unsqueeze(1), 0).sum(0)


def measure_stacked(measure_run: Measure) -> Measure:
    """Measure many runs at once, by a function that measures one."""

    def measure(output: Tensor, batch: Batch) -> dict[str, Tensor]:
        together = vmap(lambda output, *tensors: measure_run(output, batch.with_tensors(tensors)))
        found: dict[str, Tensor] = together(output, *batch.tensors())
        return found

    return measure


def measure_one_by_one(measure_run: Measure) -> Measure:
    """Measure one run after the other."""

    def measure(output: Tensor, batch: Batch) -> dict[str, Tensor]:
        runs = [
            measure_run(output[run], batch.map(lambda tensor, run=run: tensor[run]))  # type: ignore[misc]
            for run in range(len(output))
        ]
        return {name: torch.stack([one[name] for one in runs]) for name in runs[0]}

    return measure
