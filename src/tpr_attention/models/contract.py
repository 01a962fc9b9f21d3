"""What the benchmark asks of a model, and a check with one batch that says which part of it a model breaks."""

import copy
import importlib
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.signature import nearest
from tpr_attention.models.copy_and_update import CopyAndUpdate

__all__ = ["ContractError", "Task", "check_contract", "from_path"]


@runtime_checkable
class Task(Protocol):
    """What a model may know of its task when it is made."""

    num_actions: int
    num_roles: int
    filler_dim: int

    def best_answer(
        self, reference: Float[Tensor, "n r f"], transform: Float[Tensor, "n r f"], action: Float[Tensor, "n a"]
    ) -> Float[Tensor, "n r f"]:
        """The best answer that training allows."""
        ...


SMALL = 0.1  # weights that make an update, and do not blow up rounding in several layers


class ContractError(ValueError):
    """A model that cannot take part, and why."""


def from_path(path: str) -> Callable[..., nn.Module]:
    """The class that `package.module:Class` names.

    >>> from_path("torch.nn:Identity")
    <class 'torch.nn.modules.linear.Identity'>
    """
    module_name, colon, name = path.partition(":")
    if not (module_name and colon and name):
        raise ContractError(f"model: expected a path like 'package.module:Class', got {path!r}")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a script may end where it should only define
        raise ContractError(f"model: cannot import {module_name!r}: {type(error).__name__}: {error}") from error
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ContractError(
            f"model: expected a class or function {name!r} in {module_name!r}, got {found!r}"
            + nearest(name, vars(module))
        )
    made: Callable[..., nn.Module] = found
    return made


def check_contract(
    model: nn.Module,
    reference: Float[Tensor, "n r f"],
    transform: Float[Tensor, "n r f"],
    action: Float[Tensor, "n a"],
    target: Float[Tensor, "n r f"],
) -> None:
    """Try a copy of the model with a copy of one batch; raise `ContractError` if it cannot take part.

    A model is called as `model(reference, transform, action)` and returns an object for each row: a finite tensor of
    the reference's shape and dtype. It leaves its inputs as they are, has parameters that the loss reaches, and in
    evaluation mode answers each row by itself and always the same.
    """
    if not isinstance(model, nn.Module):
        raise ContractError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
    try:
        model = copy.deepcopy(model)
    except Exception as error:
        raise ContractError(f"model: expected one that can be copied: {type(error).__name__}: {error}") from error
    inputs = reference.detach().clone(), transform.detach().clone(), action.detach().clone()
    if len(reference) < 2 or target.shape != reference.shape or not all(map(_finite, (*inputs, target))):
        raise ValueError("batch: expected at least two pairs of finite numbers, with targets of the reference's shape")
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        _check_training(model.train(), inputs, target)
        _check_evaluation(model.eval(), inputs)
        if isinstance(model, CopyAndUpdate):  # at the copy, an update of zero hides what is wrong with it
            torch.default_generator.manual_seed(0)
            with torch.no_grad():
                for parameter in model.output_map():
                    parameter.normal_(std=SMALL)
            _check_training(model.train(), inputs, target)
            _check_evaluation(model.eval(), inputs)


def _check_training(model: nn.Module, inputs: tuple[Tensor, Tensor, Tensor], target: Tensor) -> None:
    output = _called(model, inputs)
    if not getattr(model, "needs_training", True):
        return
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        raise ContractError("parameters: expected at least one that asks for gradients, got none")
    if not output.requires_grad:
        raise ContractError("forward: the output does not depend on any parameter, or was detached")
    try:
        gradients = torch.autograd.grad((output - target).square().mean(), trained, allow_unused=True)
    except Exception as error:
        raise ContractError(f"backward: {error}") from error
    for name, gradient in zip(names, gradients, strict=True):
        if gradient is not None and not _finite(gradient):
            raise ContractError(f"backward: expected finite gradients, got others for the parameter {name!r}")
    if all(gradient is None for gradient in gradients):
        raise ContractError("backward: the loss reaches no parameter")


@torch.no_grad()
def _check_evaluation(model: nn.Module, inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    training = [name or type(model).__name__ for name, module in model.named_modules() if module.training]
    if training:
        raise ContractError(f"eval: expected evaluation mode everywhere after model.eval(), not in {training[0]!r}")
    output = _called(model, inputs)
    if not torch.equal(output, _called(model, inputs)):
        raise ContractError("eval: expected the same output for the same inputs, got two different ones")
    reference, transform, action = (tensor.flip(0) for tensor in inputs)
    backwards = _called(model, (reference, transform, action)).flip(0)
    alone = _called(model, (reference[:1], transform[:1], action[:1]))
    if not _close(output, backwards) or not _close(output[-1:], alone):
        raise ContractError("eval: expected an output that depends on its own row only, not on the rest of the batch")


def _called(model: nn.Module, inputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    before = [tensor.clone() for tensor in inputs]
    try:
        output = model(*inputs)
    except Exception as error:
        raise ContractError(f"forward: raised {type(error).__name__}: {error}") from error
    for name, tensor, copied in zip(("reference", "transform", "action"), inputs, before, strict=True):
        if not torch.equal(tensor, copied):
            raise ContractError(f"forward: expected inputs to be left as they are, but {name} was changed")
    if not isinstance(output, Tensor):
        raise ContractError(f"forward: expected a tensor, got {type(output).__name__}")
    reference = inputs[0]
    if output.shape != reference.shape:
        raise ContractError(
            f"forward: expected the shape of the reference, {list(reference.shape)}, got {list(output.shape)}"
        )
    if output.dtype != reference.dtype:
        raise ContractError(f"forward: expected the dtype of the reference, {reference.dtype}, got {output.dtype}")
    if not _finite(output):
        raise ContractError("forward: expected finite numbers, got NaN or infinity")
    return output


def _finite(tensor: Tensor) -> bool:
    return bool(tensor.detach().to_dense().isfinite().all())


def _close(first: Tensor, second: Tensor) -> bool:
    precision = torch.finfo(first.dtype).eps  # sums in another order differ by a few of it
    return torch.allclose(first, second, rtol=max(1e-3, 10 * precision), atol=max(1e-5, precision))
