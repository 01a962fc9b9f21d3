"""The table of contestants, and how one is made from its name."""

import inspect
from collections.abc import Callable, Mapping

import torch
from torch import nn

from tpr_attention.functional.signature import choose, nearest
from tpr_attention.models.classical import Classical
from tpr_attention.models.classical_roles import ClassicalRoles
from tpr_attention.models.contract import ContractError, Task, from_path
from tpr_attention.models.copy_and_update import CopyAndUpdate
from tpr_attention.models.deep import classical_deep, resnet_deep, tpr_deep
from tpr_attention.models.linear_floor import LinearFloor
from tpr_attention.models.matched import classical_matched, classical_roles_matched, resnet_matched
from tpr_attention.models.montero import Interpolate, Linear
from tpr_attention.models.oracle import Oracle
from tpr_attention.models.resnet import ResNet
from tpr_attention.models.tpr import TPR
from tpr_attention.models.tpr_stack import tpr_second, tpr_stack

__all__ = ["MODELS", "build", "option_types"]

MODELS: dict[str, Callable[..., nn.Module]] = {
    "tpr": TPR,
    "classical": Classical,
    "resnet": ResNet,
    "classical-roles": ClassicalRoles,
    "classical-matched": classical_matched,
    "classical-roles-matched": classical_roles_matched,
    "resnet-matched": resnet_matched,
    "tpr-second": tpr_second,
    "tpr-stack": tpr_stack,
    "tpr-deep": tpr_deep,
    "classical-deep": classical_deep,
    "resnet-deep": resnet_deep,
    "linear": Linear,
    "interpolate": Interpolate,
    "linear-floor": LinearFloor,
    "oracle": Oracle,
}
"""The only place where a model's name is read. What a constructor asks for and the task has, it is given."""

SIZES = ("num_actions", "num_roles", "filler_dim")
FROM_TASK = (*SIZES, "best_answer")


def build(
    name: str,
    task: Task,
    generator: torch.Generator,
    *,
    options: Mapping[str, object] | None = None,
    start_at_copy: bool = True,
) -> nn.Module:
    """Make a model for a task.

    Args:
        name: One of `MODELS`, or `package.module:Class` for a class of your own. Its constructor is given those of
            `num_actions`, `num_roles`, `filler_dim` and `best_answer` that it asks for by name; with `**`, all sizes.
        generator: Draws the seed of the initial parameters; torch's global state is neither used nor changed.
        options: Further arguments of the constructor.
        start_at_copy: Whether the output map starts at zero where a model has one (decision 0012).
    """
    if not isinstance(name, str) or not isinstance(generator, torch.Generator):
        raise TypeError(f"expected a name and a torch.Generator, got {name!r} and {type(generator).__name__}")
    make, options = _constructor(name), options or {}
    given = _arguments(name, make, task, options)
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = _made(name, make, given, options)
    if start_at_copy and isinstance(model, CopyAndUpdate):
        model.start_at_copy()
    return model


def option_types(name: str) -> dict[str, object]:
    """The types that a model states for its options; nothing where they cannot be found out.

    >>> option_types("tpr")
    {'num_heads': <class 'int'>, 'learn_ids': <class 'bool'>}
    """
    make = _constructor(name)
    try:
        parameters = inspect.signature(make, eval_str=True).parameters
    except Exception:  # for example names that only a type checker imports
        return {}
    stated = {key: parameter.annotation for key, parameter in parameters.items() if key not in FROM_TASK}
    return {key: hint for key, hint in stated.items() if hint is not inspect.Parameter.empty}


def _constructor(name: str) -> Callable[..., nn.Module]:
    return from_path(name) if ":" in name else choose("model", name, MODELS)


def _made(
    name: str, make: Callable[..., nn.Module], given: Mapping[str, object], options: Mapping[str, object]
) -> nn.Module:
    """Made by a class that may refuse its options, or do anything if it is a user's."""
    try:
        model = make(**given)
    except Exception as error:
        if str(error).partition(":")[0] in options:
            raise ContractError(f"options.{error}") from error
        said = f" with {dict(options)}" if options else ""
        raise ContractError(f"model: {name!r} cannot be made{said}: {type(error).__name__}: {error}") from error
    if not isinstance(model, nn.Module):
        raise ContractError(f"model: expected {name!r} to make a torch.nn.Module, got {type(model).__name__}")
    return model


def _arguments(
    name: str, make: Callable[..., nn.Module], task: Task, options: Mapping[str, object]
) -> dict[str, object]:
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError) as error:
        raise ContractError(f"model: cannot tell what {name!r} takes: {error}") from error
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    own = [name for name in parameters if name not in FROM_TASK]
    for option in options:
        if option in FROM_TASK or (option not in own and not takes_any):
            raise ValueError(f"options.{option}: expected one of the options of {name!r}: {own}{nearest(option, own)}")
    asked = [key for key in FROM_TASK if key in parameters or (takes_any and key in SIZES)]
    return {key: getattr(task, key) for key in asked} | dict(options)
