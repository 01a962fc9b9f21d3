"""How a model is made from its name for a task."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from tpr_attention.generators import named_generator
from tpr_attention.imports import ImportPathError, is_path, load, nearest, parameters
from tpr_attention.models import MODELS
from tpr_attention.models.contract import ContractError, Sizes, foreign

__all__ = ["build"]


def build(
    name: str, task: Sizes, seed: int = 0, *, device: torch.device | str | None = None, **options: object
) -> nn.Module:
    """Make a model for a task.

    Args:
        name: One of `MODELS`, or `package.module:Class` for a class of your own. Its constructor is given those of the
            task's `sizes` that it asks for by name, and `best_answer` if the task knows it; with `**`, all sizes.
        seed: Decides the initial parameters; torch's global state is neither used nor changed.
        device: Where the parameters are; they are drawn on the CPU, so that they are the same everywhere.
        options: Further arguments of the constructor.

    >>> from tpr_attention.tasks.composition.task import dsprites_composition
    >>> build("tpr", dsprites_composition(), num_heads=2).num_roles
    5
    """
    if not is_path(name) and name not in MODELS:
        raise ContractError(f"model: expected one of {list(MODELS)} or a path, got {name!r}{nearest(name, MODELS)}")
    try:
        make = load(MODELS.get(name, name))
        takes = parameters(MODELS.get(name, name))
    except ImportPathError as error:
        raise ContractError(f"model: {error}") from error
    offered, is_open = dict(task.sizes), takes.open and not _has_no_constructor(make)
    own = [key for key in takes.types if key not in offered and key != "best_answer"]
    for option in options:
        if option in offered or (option not in own and not is_open):
            raise ContractError(f"model.{option}: expected one of the options of {name!r}: {own}{nearest(option, own)}")
    given: dict[str, object] = {key: size for key, size in offered.items() if key in takes.types or is_open}
    if "best_answer" in takes.types:
        given["best_answer"] = getattr(task, "best_answer", None)
    with torch.random.fork_rng(devices=[]):
        drawn = torch.randint(2**62, (), generator=named_generator(seed, "init"), device="cpu")
        torch.default_generator.manual_seed(int(drawn))
        model = _made(name, make, given, options)
    return model if device is None else model.to(device)


def _has_no_constructor(make: Callable[..., Any]) -> bool:
    """Whether a class has none of its own: that of `nn.Module` seems to take anything, and takes nothing."""
    return isinstance(make, type) and make.__init__ is nn.Module.__init__  # type: ignore[misc]


def _made(name: str, make: Callable[..., Any], given: Mapping[str, object], options: Mapping[str, object]) -> nn.Module:
    """Call a constructor that may refuse its options, or do anything if it is a user's."""
    try:
        with foreign():
            model = make(**given, **options)
    except Exception as error:
        if str(error).partition(":")[0] in options:
            raise ContractError(f"model.{error}") from error
        said = f" with {dict(options)}" if options else ""
        raise ContractError(f"model: {name!r} cannot be made{said}: {type(error).__name__}: {error}") from error
    if not isinstance(model, nn.Module):
        raise ContractError(f"model: expected {name!r} to make a torch.nn.Module, got {type(model).__name__}")
    if not hasattr(model, "_modules"):
        raise ContractError(f"model: expected the constructor of {name!r} to call super().__init__() first")
    return model
