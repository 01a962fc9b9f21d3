"""A task to be held to the contract, and what the checks of `conformance` share."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tpr_attention.imports import load
from tpr_attention.tasks import TASKS
from tpr_attention.tasks.task import Batch, Task

COUNT = 24


class Case(NamedTuple):
    """A task to be checked.

    Args:
        name: A name of `TASKS` or an import path.
        is_held_out: Which examples have something that training must not show; None if nothing is held out.
        in_training: The conditions that have no such example; all others have no other.
        right_output: The output with a loss of zero; the target if not given.
        wrong_output: An output with a loss and a gradient; the right one with noise if not given.
        limits: The least and the largest number of an output: a likelihood is lowest at these.
    """

    name: str
    options: Mapping[str, Any] = {}
    is_held_out: Callable[[Any, Batch], Tensor] | None = None
    in_training: tuple[str, ...] = ("train", "in_distribution")
    right_output: Callable[[Batch], Tensor] = lambda batch: batch.target
    wrong_output: Callable[[Batch], Tensor] | None = None
    limits: tuple[float, float] = (-inf, inf)

    @property
    def path(self) -> str:
        return TASKS.get(self.name, self.name)

    def make(self) -> Any:
        return load(self.path)(**self.options)

    @property
    def task(self) -> Any:
        """Made once for all checks, which do not change it."""
        return _made(self.path, json.dumps(self.options))


@cache
def _made(path: str, options: str) -> Any:
    return load(path)(**json.loads(options))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def every_condition(task: Task) -> tuple[str, ...]:
    return "train", *task.conditions


def same(one: Batch, other: Batch) -> bool:
    pairs = zip(one.tensors(), other.tensors(), strict=True)
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


def rows(batch: Batch, which: slice) -> Batch:
    return batch.map(lambda tensor: tensor[which])


def loss_of(task: Task, output: Tensor, batch: Batch) -> Tensor:
    """The first metric."""
    return next(iter(task.measure(output, batch).values()))


def wrong_output(case: Case, batch: Batch) -> Tensor:
    if case.wrong_output is not None:
        return case.wrong_output(batch)
    output = case.right_output(batch)
    return output + torch.randn(output.shape, generator=generator(7), dtype=output.dtype)
