"""The examples of runs: drawn as whole batches, or in a compact form from which batches are made when needed."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tpr_attention.tasks.task import Batch, CompactExamples

__all__ = ["Compact", "Examples", "Pool"]


class Compact(NamedTuple):
    """Batches of one run in a compact form, and the task that makes them."""

    task: CompactExamples
    rows: Sequence[Tensor]
    dtype: torch.dtype

    def batch(self, number: int) -> Batch:
        """Make one of the batches."""
        return self.task.batch(self.rows[number], self.dtype)


Examples = Batch | Compact
"""The batches of one run under one condition; a `Batch` has them along a further first axis."""


class Pool:
    """The batches of several runs under one condition, with a leading axis for the runs."""

    def __init__(self, of_runs: Sequence[Examples], device: torch.device) -> None:
        self.device = device
        self.compact = [one for one in of_runs if isinstance(one, Compact)]
        if self.compact:
            self.count, self.structure = len(self.compact[0].rows), self.compact[0].batch(0)
        else:
            self.whole = _stacked([one for one in of_runs if isinstance(one, Batch)], 1).to(device)
            self.count, self.structure = len(self.whole.target), self.whole

    def batch(self, number: int) -> Batch:
        """One batch of every run; after the last comes the first again."""
        number %= self.count
        if not self.compact:
            return self.whole.map(lambda tensor: tensor[number])
        return _stacked([one.batch(number) for one in self.compact], 0).to(self.device)

    def batches(self, run: int) -> Iterator[Batch]:
        """The batches of one run, again and again."""
        for number in itertools.cycle(range(self.count)):
            if self.compact:
                yield self.compact[run].batch(number).to(self.device)
            else:
                yield self.whole.map(lambda tensor, number=number: tensor[number, run])  # type: ignore[misc]


def _stacked(batches: Sequence[Batch], axis: int) -> Batch:
    tensors = zip(*(batch.tensors() for batch in batches), strict=True)
    return batches[0].with_tensors([torch.stack(same, axis) for same in tensors])
