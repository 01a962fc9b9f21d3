"""What training asks of a model, and a check with one batch that says which part of it a model breaks."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

__all__ = [
    "ContractError",
    "Examples",
    "Finishes",
    "Folds",
    "Measure",
    "Penalised",
    "Sizes",
    "StartsAtCopy",
    "check_contract",
    "foreign",
    "parameter_count",
]

SMALL_WEIGHTS = 0.1  # weights that make an update, and do not blow up rounding in several layers


class ContractError(ValueError):
    """A model that cannot take part, and why."""


@runtime_checkable
class Sizes(Protocol):
    """What a model may know of its task when it is made."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Numbers by name."""


@runtime_checkable
class Examples(Protocol):
    """A batch: what a model is called with, and what it should answer."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The model's arguments."""

    @property
    def target(self) -> Tensor:
        """What it should answer."""

    def map(self, function: Callable[[Tensor], Tensor]) -> "Examples":
        """The same batch with a function applied to each of its tensors."""


Measure = Callable[[Tensor, Examples], Mapping[str, Float[Tensor, "n"]]]
"""Output and batch to metrics, of which the first is the loss."""


@runtime_checkable
class Folds(Protocol):
    """A model that is cheaper for examples sorted by group, as many of each, and takes stacked parameters itself.

    It draws nothing at random: draws would be those of the whole stack and not of its run.
    """

    @property
    def folds(self) -> bool:
        """Whether this one is."""

    def by_group(self, *inputs: Tensor) -> Tensor:
        """Answer examples `[*n, group, example, ...]`; parameters may have the same leading axes n."""


@runtime_checkable
class Penalised(Protocol):
    """A model that is trained on more than the loss of its answers.

    One that folds also has `by_group_with_penalty`, which takes what `by_group` takes, and gives a penalty for each of
    the leading axes n.
    """

    def with_penalty(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The answers, and a number that is added to their mean loss in training."""


@runtime_checkable
class Finishes(Protocol):
    """A model that changes once more after training, such as by a clean-up that it finds in what it has learned.

    Tests are measured before, and after each stage; the last points of its curve are those of the finished model.
    """

    @property
    def finishing_steps(self) -> Sequence[int]:
        """The steps of each stage; none for a model that is finished when it is trained."""

    def finish(self, stage: int, batches: Iterable[Examples], generator: torch.Generator) -> Iterator[None]:
        """Change parameters and buffers in place, given training batches without end. Yields every now and then.

        Stages come in order, on the same model.
        """


@runtime_checkable
class StartsAtCopy(Protocol):
    """A model whose update is zero at the start, which hides what is wrong with it."""

    def output_map(self) -> tuple[Tensor, ...]:
        """The parameters that make the update zero when they are zero."""


class EndedError(RuntimeError):
    """Code of a user tried to end the process."""


@contextmanager
def foreign() -> Iterator[None]:
    """Call code of a user: what it raises to end the process, such as `sys.exit`, is an error like any other.

    A KeyboardInterrupt may be Ctrl-C, and stays one.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        said = f"sys.exit({error.code!r}) was called" if isinstance(error, SystemExit) else repr(error)
        raise EndedError(said) from error


def parameter_count(model: nn.Module) -> int:
    """How many numbers training may change.

    >>> parameter_count(nn.Linear(3, 2))
    8
    """
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def check_contract(model: nn.Module, batch: Examples, measure: Measure) -> None:
    """Try a copy of the model with a copy of one batch; raise `ContractError` if it cannot take part.

    A model is called as `model(*inputs)` and returns a finite tensor that the task can measure. It leaves its inputs as
    they are, has parameters that the loss reaches, and in evaluation mode answers each example by itself and always
    the same.
    """
    if not isinstance(model, nn.Module):
        raise ContractError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
    _check_tensors(model)
    try:
        with foreign():
            model = copy.deepcopy(model)
    except Exception as error:
        raise ContractError(f"model: expected one that can be copied: {type(error).__name__}: {error}") from error
    batch = batch.map(lambda tensor: tensor.detach().clone())
    if len(batch.target) < 2 or not all(map(_finite, (*batch.inputs, batch.target))):
        raise ValueError("batch: expected at least two examples of finite numbers")
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        _check_training(model.train(), batch, measure)
        _check_evaluation(model.eval(), batch, measure)
        if isinstance(model, StartsAtCopy):
            generator = torch.Generator().manual_seed(0)
            with torch.no_grad():
                for parameter in model.output_map():
                    drawn = torch.randn(parameter.shape, generator=generator, device=generator.device)
                    parameter.copy_(SMALL_WEIGHTS * drawn)
            _check_training(model.train(), batch, measure)
            _check_evaluation(model.eval(), batch, measure)


def _check_tensors(model: nn.Module) -> None:
    """Whether all parameters and buffers have shapes and numbers."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(tensor):
            raise ContractError(
                f"parameters: expected shapes when the model is made, but {name!r} of a lazy module has none before it "
                "is called; use the sizes of the task instead"
            )
        if tensor.is_meta:
            raise ContractError(f"parameters: expected numbers, but {name!r} is on the meta device, which has none")


def _check_training(model: nn.Module, batch: Examples, measure: Measure) -> None:
    output, loss = _called(model, batch, measure)
    if not getattr(model, "needs_training", True):
        return
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        raise ContractError("parameters: expected at least one that asks for gradients, got none")
    if not output.requires_grad:
        raise ContractError("forward: the output does not depend on any parameter, or was detached")
    try:
        with foreign():
            gradients = torch.autograd.grad(loss.mean(), trained, allow_unused=True)
    except Exception as error:
        raise ContractError(f"backward: {error}") from error
    for name, gradient in zip(names, gradients, strict=True):
        if gradient is not None and not _finite(gradient):
            raise ContractError(f"backward: expected finite gradients, got others for the parameter {name!r}")
    if all(gradient is None for gradient in gradients):
        raise ContractError("backward: the loss reaches no parameter")


@torch.no_grad()
def _check_evaluation(model: nn.Module, batch: Examples, measure: Measure) -> None:
    training = [name or type(model).__name__ for name, module in model.named_modules() if module.training]
    if training:
        raise ContractError(f"eval: expected evaluation mode everywhere after model.eval(), not in {training[0]!r}")
    output, _ = _called(model, batch, measure)
    if not torch.equal(output, _called(model, batch, measure)[0]):
        raise ContractError("eval: expected the same output for the same inputs, got two different ones")
    backwards = _called(model, batch.map(lambda tensor: tensor.flip(0)), measure)[0].flip(0)
    alone = _called(model, batch.map(lambda tensor: tensor[-1:]), measure)[0]
    if not _close(output, backwards) or not _close(output[-1:], alone):
        raise ContractError("eval: expected an output that depends on its own example only, not on the others")


def _called(model: nn.Module, batch: Examples, measure: Measure) -> tuple[Tensor, Tensor]:
    """The output and the loss of each example."""
    before = [tensor.clone() for tensor in batch.inputs]
    try:
        with foreign():
            output = model(*batch.inputs)
    except Exception as error:
        raise ContractError(f"forward: raised {type(error).__name__}: {error}") from error
    for place, (tensor, copied) in enumerate(zip(batch.inputs, before, strict=True), 1):
        if not torch.equal(tensor, copied):
            raise ContractError(f"forward: expected inputs to be left as they are, but input {place} was changed")
    if not isinstance(output, Tensor):
        raise ContractError(f"forward: expected a tensor, got {type(output).__name__}")
    wanted = next((tensor.dtype for tensor in (batch.target, *before) if tensor.is_floating_point()), output.dtype)
    if output.dtype != wanted:
        raise ContractError(f"forward: expected an output of {wanted}, as the batch has, got {output.dtype}")
    if not _finite(output):
        raise ContractError("forward: expected finite numbers, got NaN or infinity")
    try:
        with foreign():
            loss = next(iter(measure(output, batch).values()))
    except Exception as error:
        raise ContractError(f"forward: the output cannot be measured: {error}") from error
    return output, loss


def _finite(tensor: Tensor) -> bool:
    return bool(tensor.detach().to_dense().isfinite().all())


def _close(first: Tensor, second: Tensor) -> bool:
    precision = torch.finfo(first.dtype).eps  # sums in another order differ by a few of it
    return torch.allclose(first, second, rtol=max(1e-3, 10 * precision), atol=max(1e-5, precision))
