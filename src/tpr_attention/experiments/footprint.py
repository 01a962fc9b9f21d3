"""What a run needs of memory at the least, so that one that cannot fit is refused and not killed.

Counted are its pairs, once as they are drawn and once as they are stacked; the weights of its model with their
gradients and the two moments of Adam; and what a model of ours keeps for its gradient when it is asked for a batch or a
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

from tpr_attention.data import Composition, stream
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.models import MODELS, CopyAndUpdate, build

__all__ = ["expect_memory"]

FLOAT = 4  # bytes
SMALL = 3 * 10**8  # with sizes of a smaller product no model of ours needs gigabytes; to look closer takes seconds


class Need(NamedTuple):
    """The keys that decide how many bytes are needed, and for what."""

    keys: str
    bytes: int
    what: str


def expect_memory(spec: RunSpec, task: Composition) -> None:
    """Refuse a run that needs more memory than this machine has."""
    needs = [*_of_pairs(spec, task), *_of_model(spec, task)]
    most, total, there_is = max(needs, key=lambda need: need.bytes), sum(need.bytes for need in needs), _memory()
    if total > there_is:
        raise SpecError(
            f"{most.keys}: expected a run that fits into this machine's {there_is / 1e9:,.1f} GB of memory, got one "
            f"that needs at least {total / 1e9:,.1f} GB, {most.bytes / 1e9:,.1f} GB of it for {most.what}"
        )


def _memory() -> float:
    """In bytes; without end where the system does not tell."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else inf


def _of_pairs(spec: RunSpec, task: Composition) -> list[Need]:
    each = 2 * FLOAT * (3 * task.num_roles * task.filler_dim + task.num_actions)
    tests = len(task.pairing.conditions) - 1
    return [
        Need("train_pairs", each * spec.train_pairs, f"{spec.train_pairs} pairs"),
        Need("eval_pairs", each * spec.eval_pairs * tests, f"{tests} tests of {spec.eval_pairs} pairs"),
    ]


def _of_model(spec: RunSpec, task: Composition) -> list[Need]:
    """As far as a model can be made and asked without numbers."""
    needs: list[Need] = []
    sizes = {f"options.{name}": value for name, value in spec.options.items() if type(value) is int}
    pairs, key = max((spec.batch, "batch"), (spec.eval_pairs, "eval_pairs"))
    if pairs * prod(max(1, size) for size in sizes.values()) * (task.num_roles * task.filler_dim) ** 2 < SMALL:
        return needs
    described = f"{spec.model!r} with {dict(spec.options)}" if spec.options else repr(spec.model)
    with torch.device("meta"), suppress(Exception):
        model = build(spec.model, task, stream(spec.seed, "init"), options=spec.options)
        weights = sum(parameter.numel() for parameter in model.parameters())
        needs.append(Need(", ".join(sizes) or "model", 4 * FLOAT * weights, f"the weights of {described}"))
        if spec.model in MODELS:  # a user's may remember what it made here, and fail with it later
            kept = _kept(model, task, pairs, spec.balance_actions)
            needs.append(Need(", ".join([*sizes, key]), 2 * kept, f"{pairs} pairs in {described}"))
    return needs


def _kept(model: nn.Module, task: Composition, pairs: int, balanced: bool) -> int:
    """The bytes that a model keeps for its gradient, if it is asked as in training."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage.nbytes()
        return tensor

    object_shape = task.num_roles, task.filler_dim
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        if isinstance(model, CopyAndUpdate) and model.folds and balanced:
            objects = torch.empty(task.num_actions, -(-pairs // task.num_actions), *object_shape)
            _ = model.by_action(objects, objects)
        else:
            objects = torch.empty(pairs, *object_shape)
            _ = model(objects, objects, torch.empty(pairs, task.num_actions))
    return sum(kept.values())
