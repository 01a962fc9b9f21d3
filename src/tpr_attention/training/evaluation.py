"""Metrics of many runs, summed over examples and over groups of them."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["Evaluation", "group_sums"]


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
