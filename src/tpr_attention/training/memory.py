"""How much memory a run needs at least, so that one that cannot fit is refused and not killed.

Counted are its examples, once as they are drawn and once as they are stacked; the weights of its model with their
gradients and two moments; and what a model of this package keeps for its gradient when it is called with a batch or a
test, twice, since about as much again is there for a moment. The last two are found with a model on the meta device,
which has shapes and no numbers.
"""

import os
from contextlib import suppress
from math import inf, prod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from tpr_attention.imports import is_path
from tpr_attention.models.build import build
from tpr_attention.models.contract import Folds
from tpr_attention.tasks.task import Batch, CompactExamples, EvenGroups, Task
from tpr_attention.training.spec import RunSpec, SpecError

__all__ = ["expect_memory"]

WEIGHT_COPIES = 4  # the weights, their gradient and two moments
FLOAT_BYTES = 4
NEVER_LARGE = 3 * 10**8  # with a smaller product of sizes no model of ours needs gigabytes; to look closer takes long


class Need(NamedTuple):
    """The keys that decide how many bytes are needed, and for what."""

    keys: str
    bytes: int
    what: str


def expect_memory(spec: RunSpec, task: Task, few: Batch) -> None:
    """Refuse a run that needs more memory than this machine has.

    Args:
        few: Some examples, whose size is that of the others.
    """
    needs = [*_of_examples(spec, task, few), *_of_model(spec, task, few)]
    most, total, available = max(needs, key=lambda need: need.bytes), sum(need.bytes for need in needs), _memory()
    if total > available:
        raise SpecError(
            f"{most.keys}: expected a run that fits into this machine's {available / 1e9:,.1f} GB of memory, got one "
            f"that needs at least {total / 1e9:,.1f} GB, {most.bytes / 1e9:,.1f} GB of it for {most.what}"
        )


def _memory() -> float:
    """The machine's memory in bytes; infinite where the system does not tell."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else inf


def _of_examples(spec: RunSpec, task: Task, few: Batch) -> list[Need]:
    each = 2 * sum(tensor[0].numel() * tensor.element_size() for tensor in few.tensors())
    training, tests = spec.training, len(task.conditions)
    if isinstance(task, CompactExamples):
        return [Need("training.batch_size", each * training.batch_size, f"a batch of {training.batch_size}")]
    return [
        Need("training.train_examples", each * training.train_examples, f"{training.train_examples} examples"),
        Need(
            "training.test_examples",
            each * training.test_examples * tests,
            f"{tests} tests of {training.test_examples} examples",
        ),
    ]


def _of_model(spec: RunSpec, task: Task, few: Batch) -> list[Need]:
    """As far as a model can be made and called without numbers."""
    needs: list[Need] = []
    name, options, training = spec.model.name, spec.model.options, spec.training
    sizes = {f"model.{key}": value for key, value in options.items() if type(value) is int}
    count, key = max((training.batch_size, "training.batch_size"), (training.test_examples, "training.test_examples"))
    width = max(tensor[0].numel() for tensor in few.inputs)
    if count * prod(max(1, size) for size in sizes.values()) * width**2 < NEVER_LARGE:
        return needs
    described = f"{name!r} with {options}" if options else repr(name)
    with torch.device("meta"), suppress(Exception):
        model = build(name, task, spec.seed, **options)
        weights = sum(parameter.numel() for parameter in model.parameters())
        keys = ", ".join(sizes) or "model"
        needs.append(Need(keys, WEIGHT_COPIES * FLOAT_BYTES * weights, f"the weights of {described}"))
        if not is_path(name):  # a user's may remember what it made here, and fail with it later
            kept = _kept(model, task, few, count)
            needs.append(Need(", ".join([*sizes, key]), 2 * kept, f"{count} examples in {described}"))
    return needs


def _kept(model: nn.Module, task: Task, few: Batch, count: int) -> int:
    """The bytes that a model keeps for its gradient, if it is called as in training."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage.nbytes()
        return tensor

    even = task.even_group if isinstance(task, EvenGroups) else None
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        if isinstance(model, Folds) and model.folds and even is not None:
            groups = len(task.group_names[even])
            _ = model.by_group(*(_empty(tensor, groups, -(-count // groups)) for tensor in few.inputs))
        else:
            _ = model(*(_empty(tensor, count) for tensor in few.inputs))
    return sum(kept.values())


def _empty(example: Tensor, *leading: int) -> Tensor:
    return torch.empty(*leading, *example.shape[1:], dtype=example.dtype, device="meta")
