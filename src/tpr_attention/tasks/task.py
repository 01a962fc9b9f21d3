"""The contract of a task: examples under named conditions, and how an output is measured.

What a task can do besides is a protocol of its own, asked for with `isinstance`. Whoever implements only `Task` can
train, store and report; the others make training faster or the report richer.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

__all__ = [
    "Batch",
    "BestAnswer",
    "CompactExamples",
    "EvenGroups",
    "FinalMeasure",
    "Floors",
    "LossAlone",
    "NamedAxes",
    "Pictures",
    "Stackable",
    "StackedMeasure",
    "Task",
    "Words",
]


class Batch(NamedTuple):
    """Examples: what a model is called with, what it should answer, and what kind of example each one is.

    Args:
        inputs: The model is called as `model(*inputs)`; every input has the examples as its first axis.
        target: Of any shape and dtype: objects, classes, images.
        groups: For each grouping a number for each example; metrics are also averaged by these.
        counted: What counts, for a task with padding; None where everything does.
    """

    inputs: tuple[Tensor, ...]
    target: Tensor
    groups: Mapping[str, Int[Tensor, "n"]] = MappingProxyType({})
    counted: Bool[Tensor, "n ..."] | None = None

    @property
    def size(self) -> int:
        """How many examples there are."""
        return len(self.target)

    def map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """The same batch with a function applied to each of its tensors."""
        return Batch(
            tuple(map(function, self.inputs)),
            function(self.target),
            {name: function(group) for name, group in self.groups.items()},
            None if self.counted is None else function(self.counted),
        )

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors in a fixed order; `with_tensors` puts others in their place."""
        return (*self.inputs, self.target, *self.groups.values(), *(() if self.counted is None else (self.counted,)))

    def with_tensors(self, tensors: Sequence[Tensor]) -> "Batch":
        """A batch of the same structure with these tensors.

        >>> batch = Batch((torch.zeros(2), torch.ones(2)), torch.ones(2), {"kind": torch.arange(2)})
        >>> batch.with_tensors([tensor + 1 for tensor in batch.tensors()]).groups
        {'kind': tensor([1, 2])}
        """
        if len(tensors) != len(self.tensors()):
            raise ValueError(f"tensors: expected {len(self.tensors())}, got {len(tensors)}")
        left = iter(tensors)
        return self.map(lambda _: next(left))

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device."""
        return self.map(lambda tensor: tensor.to(device))


@runtime_checkable
class Task(Protocol):
    """Draws examples and measures outputs. A task is made by its constructor from options and, if it asks, a `seed`."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """What a model's constructor may ask for by name."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """The tests by name; examples of "train" are drawn as well."""

    @property
    def group_names(self) -> Mapping[str, tuple[str, ...]]:
        """For each grouping of `Batch.groups`, what its numbers mean."""

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        """Draw independent examples of a condition: the same generator state gives the same bits."""

    def measure(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "n"]]:
        """Metrics by name, one number for each example. The first is the loss: training makes its mean small."""


@runtime_checkable
class EvenGroups(Protocol):
    """A task that draws as many examples of each group, group after group, so that a model may fold."""

    @property
    def even_group(self) -> str | None:
        """The grouping that is even in training; None if this one is not."""

    def draw_evenly(self, condition: str, each: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        """Draw this many examples of every group, sorted by group."""


@runtime_checkable
class CompactExamples(Protocol):
    """A task whose batches are made when they are needed: only what describes the examples stays in memory."""

    def draw_examples(self, condition: str, count: int, generator: torch.Generator) -> Tensor:
        """Draw what describes each example, one row an example."""

    def batch(self, examples: Tensor, dtype: torch.dtype) -> Batch:
        """Make the batch of these examples; the same rows give the same bits."""


@runtime_checkable
class Stackable(Protocol):
    """A task that says with which others it can be trained in one stack of models."""

    @property
    def stack_key(self) -> Hashable:
        """Equal for tasks whose batches have the same shapes and whose `measure` is the same function."""


@runtime_checkable
class StackedMeasure(Protocol):
    """A task that measures many runs at once itself; others are measured through `torch.vmap`, which costs more."""

    def measure_stack(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "n b"]]:
        """`measure` for tensors with a leading axis for the runs."""


@runtime_checkable
class LossAlone(Protocol):
    """A task whose loss costs less than its metrics: steps of training ask for the loss alone."""

    def loss(self, output: Tensor, batch: Batch) -> Float[Tensor, "*n b"]:
        """The first metric of `measure`; tensors may have a leading axis for the runs."""


@runtime_checkable
class FinalMeasure(Protocol):
    """A task with compact examples that measures more at the end, and on more of them, than on the way."""

    @property
    def quick_examples(self) -> int:
        """How many examples of a test are measured before the end."""

    def measure_finally(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "n"]]:
        """What `measure` gives, and further metrics after it; called outside of `torch.vmap`."""


@runtime_checkable
class BestAnswer(Protocol):
    """A task that knows the best answer that its training allows."""

    def best_answer(self, *inputs: Tensor) -> Tensor:
        """Answer each example as well as can be known."""


@runtime_checkable
class Floors(Protocol):
    """A task that knows how low a loss can be."""

    def floors(self) -> Mapping[str, Mapping[str, float]]:
        """For each condition, the lowest losses by name."""


@runtime_checkable
class NamedAxes(Protocol):
    """A task that has names for what the axes of its tensors stand for."""

    @property
    def axis_names(self) -> Mapping[str, tuple[str, ...]]:
        """Names by axis, for example those of the roles."""


@runtime_checkable
class Words(Protocol):
    """A task that can say what an example is."""

    def words(self, batch: Batch) -> list[dict[str, str]]:
        """For each example its parts in words."""


@runtime_checkable
class Pictures(Protocol):
    """A task that can show what an example is."""

    def pictures(self, batch: Batch) -> Mapping[str, UInt8[Tensor, "n h w 3"]]:
        """For each part of the examples, as many pictures."""
