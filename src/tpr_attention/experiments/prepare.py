"""From a spec to its task, its model and its data: everything random comes from a stream of the spec's seed."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.data import Batch, Composition, dsprites_composition, random_composition, stream
from tpr_attention.experiments.footprint import expect_memory
from tpr_attention.experiments.spec import RunSpec, SpecError, check_option
from tpr_attention.models import MODELS, ContractError, build, check_contract, option_types, parameter_count

__all__ = ["TASK_KEYS", "WORLD_KEYS", "Prepared", "check", "eval_steps", "prepare", "task_of"]

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
    "noise",
    "seed",
)
OF_DSPRITES = TASK_FIELDS[:-2]
WORLD_KEYS = ("factors", "filler_dim")
TASK_KEYS = (*TASK_FIELDS, *WORLD_KEYS)
"""The fields of a spec that decide the task."""


class Prepared(NamedTuple):
    """A run that can begin."""

    spec: RunSpec
    task: Composition
    model: nn.Module
    pool: Batch
    evaluation: dict[str, Batch]
    role_weights: Float[Tensor, "r"]


def check(spec: RunSpec) -> int:
    """Refuse what cannot be run, before anything is written; the number of its parameters."""
    try:
        task, model = _begin(spec)
        if spec.model not in MODELS:  # ours keep the contract
            few = _few(spec, task)
            _solve_and_try(spec, model, [few], few)
    except (ValueError, TypeError, ContractError) as error:
        raise SpecError(str(error)) from error
    return parameter_count(model)


def prepare(spec: RunSpec, dtype: torch.dtype = torch.float32) -> Prepared:
    """Draw what the run needs, and refuse what cannot be run before anything is written."""
    task, model = _begin(spec, dtype)
    pool = _pool(spec, task, dtype)
    _solve_and_try(spec, model, [Batch(*(tensor.flatten(0, 1) for tensor in pool))], _few(spec, task, dtype))
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


def _begin(spec: RunSpec, dtype: torch.dtype = torch.float32) -> tuple[Composition, nn.Module]:
    """The task and the untrained model."""
    task = task_of(spec)
    if set(task.pairing.actions("train")) != set(task.grid.actions):
        raise SpecError(f"split: {spec.split!r} leaves some action without pairs in training")
    if spec.batch < task.num_actions:
        raise SpecError(f"batch: expected at least one pair for each of {task.num_actions} actions, got {spec.batch}")
    if not task.encoding.stacked.to(dtype).isfinite().all():
        raise SpecError(f"position_range: expected positions that are finite as {dtype}, got {spec.position_range}")
    types = option_types(spec.model)
    for name, value in spec.options.items():
        check_option(name, value, types.get(name))
    expect_memory(spec, task)
    initial, options = stream(spec.seed, "init"), spec.options
    model = build(spec.model, task, initial, options=options, start_at_copy=spec.start_at_copy)
    return task, model.to(dtype)


def task_of(spec: RunSpec) -> Composition:
    """The paper's world, or one of random fillers if a number of factors or fillers is given."""
    if spec.world is None:
        return dsprites_composition(**{name: getattr(spec, name) for name in TASK_FIELDS})
    usual = RunSpec()
    for name in OF_DSPRITES:
        if getattr(spec, name) != getattr(usual, name):
            raise SpecError(f"{name}: expected the default in a world of random factors, got {getattr(spec, name)!r}")
    return random_composition(*spec.world, noise=spec.noise, seed=spec.seed)


def _few(spec: RunSpec, task: Composition, dtype: torch.dtype = torch.float32) -> Batch:
    """The pairs that a model is tried with."""
    return task.draw("train", 16, stream(spec.seed, "contract"), dtype)


def _solve_and_try(spec: RunSpec, model: nn.Module, batches: Iterable[Batch], few: Batch) -> None:
    """Fit a model that is solved and not trained, and refuse one that breaks the contract."""
    fit = None if getattr(model, "needs_training", True) else getattr(model, "fit", None)
    try:
        if fit is not None:
            fit(batches)
    except Exception as error:
        raise ContractError(f"model: {spec.model!r} cannot be fitted: {type(error).__name__}: {error}") from error
    try:
        check_contract(model, *few)
    except ContractError as error:
        raise ContractError(f"model: {spec.model!r} breaks the contract: {error}") from error


def _pool(spec: RunSpec, task: Composition, dtype: torch.dtype) -> Batch:
    """All training pairs, [batch, pair, ...]; if actions are balanced, those of a batch are sorted by action."""
    batches = spec.train_pairs // spec.batch
    generator = stream(spec.seed, "train")
    if not spec.balance_actions:
        drawn = task.draw("train", batches * spec.batch, generator, dtype)
        return Batch(*(tensor.reshape(batches, spec.batch, *tensor.shape[1:]) for tensor in drawn))
    each, actions = spec.batch // task.num_actions, task.num_actions
    drawn = task.observe(task.pairing.draw_each("train", batches * each, generator), generator, dtype)
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
