"""From a spec to its task, its model and its data: everything random comes from a stream of the spec's seed."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.data import Batch, Composition, dsprites_composition, stream
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.models import ContractError, build, check_contract, parameter_count

__all__ = ["Prepared", "check", "eval_steps", "prepare"]

TASK_FIELDS = (
    "split",
    "interaction",
    "mixing",
    "position_range",
    "scale_angles",
    "azimuth",
    "interaction_action",
    "target_of_tests",
    "require_change",
    "balance_actions",
    "seed",
)


class Prepared(NamedTuple):
    """A run that can begin."""

    spec: RunSpec
    task: Composition
    model: nn.Module
    pool: Batch
    evaluation: dict[str, Batch]
    role_weights: Float[Tensor, "r"]


def check(spec: RunSpec) -> int:
    """Refuse what cannot be run, before anything is drawn or written; the number of its parameters."""
    try:
        _, model = _begin(spec)
    except (ValueError, TypeError, ContractError) as error:
        raise SpecError(str(error)) from error
    return parameter_count(model)


def prepare(spec: RunSpec, dtype: torch.dtype = torch.float32) -> Prepared:
    """Draw what the run needs, and refuse what cannot be run before anything is written."""
    task, model = _begin(spec)
    model = model.to(dtype)
    pool = _pool(spec, task, dtype)
    fit = None if getattr(model, "needs_training", True) else getattr(model, "fit", None)
    if fit is not None:  # solved, not trained
        fit([Batch(*(tensor.flatten(0, 1) for tensor in pool))])
    check_contract(model, *task.draw("train", 16, stream(spec.seed, "contract"), dtype))
    evaluation = {
        condition: task.draw(condition, spec.eval_pairs, stream(spec.seed, f"eval/{condition}"), dtype)
        for condition in task.pairing.conditions
        if condition != "train"
    }
    return Prepared(spec, task, model, pool, evaluation, _role_weights(spec, task).to(dtype))


def eval_steps(steps: int) -> list[int]:
    """When losses are taken: at the start, at powers of two, evenly spaced in long runs, and at the end.

    >>> eval_steps(100)
    [0, 1, 2, 4, 8, 16, 32, 64, 100]
    """
    early = {2**k for k in range(64) if 2**k <= steps}
    late = {round(steps * k / 20) for k in range(1, 21)} if steps >= 1000 else {steps}
    return sorted({0} | early | late)


def _begin(spec: RunSpec) -> tuple[Composition, nn.Module]:
    """The task and the untrained model."""
    task = dsprites_composition(**{name: getattr(spec, name) for name in TASK_FIELDS})
    if set(task.pairing.actions("train")) != set(task.grid.actions):
        raise SpecError(f"split: {spec.split!r} leaves some action without pairs in training")
    if spec.batch < task.num_actions:
        raise SpecError(f"batch: expected at least one pair for each of {task.num_actions} actions, got {spec.batch}")
    initial, options = stream(spec.seed, "init"), spec.options
    return task, build(spec.model, task, initial, options=options, start_at_copy=spec.start_at_copy)


def _pool(spec: RunSpec, task: Composition, dtype: torch.dtype) -> Batch:
    """All training pairs, [batch, pair, ...]; if actions are balanced, those of a batch are sorted by action."""
    batches = spec.train_pairs // spec.batch
    generator = stream(spec.seed, "train")
    if not spec.balance_actions:
        drawn = task.draw("train", batches * spec.batch, generator, dtype)
        return Batch(*(tensor.reshape(batches, spec.batch, *tensor.shape[1:]) for tensor in drawn))
    each, actions = spec.batch // task.num_actions, task.num_actions
    drawn = task.encode(task.pairing.draw_each("train", batches * each, generator), dtype)
    return Batch(
        *(
            tensor.reshape(actions, batches, each, *tensor.shape[1:]).transpose(0, 1).flatten(1, 2).contiguous()
            for tensor in drawn
        )
    )


def _role_weights(spec: RunSpec, task: Composition) -> Float[Tensor, "r"]:
    """How much each role counts in the loss: the mean over roles, or over those of the factors only."""
    counted = torch.ones(task.num_roles)
    if spec.loss_roles == "factors" and spec.interaction is not None:
        counted[-1] = 0
    return counted / counted.sum()
