"""A task and a model as a user might bring them, to be named by their import paths."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import nn

from tpr_attention.tasks.task import Batch

TASK, MODEL = f"{__name__}:Lines", f"{__name__}:Slope"


class Lines:
    """Numbers that should be multiplied by a slope; those above one half are a test.

    Args:
        size: How many numbers an example has; an option of `Slope` has the same name.
        kinds: The names of the groups, which are even if `even` is true.
    """

    conditions = ("near", "far")

    def __init__(
        self,
        size: int = 2,
        slope: float = 3.0,
        kinds: Sequence[str] = ("a", "b", "c"),
        law: Mapping[str, Any] | None = None,
        mode: Literal["plain", "odd"] = "plain",
        even: bool = False,
        *,
        seed: int = 0,
    ) -> None:
        if size < 1:
            raise ValueError(f"size: expected at least 1, got {size}")
        self.size, self.slope, self.kinds, self.law, self.mode, self.seed = size, slope, tuple(kinds), law, mode, seed
        self.even_group = "kind" if even else None
        self.sizes, self.group_names = {"width": size}, {"kind": self.kinds}

    def draw(self, condition, count, generator, dtype):
        kinds = torch.randint(len(self.kinds), (count,), generator=generator)
        return self.make(condition, kinds, generator, dtype)

    def draw_evenly(self, condition, each, generator, dtype):
        return self.make(condition, torch.arange(len(self.kinds)).repeat_interleave(each), generator, dtype)

    def make(self, condition, kinds, generator, dtype):
        if condition not in ("train", *self.conditions):
            raise ValueError(f"condition: expected 'train' or one of {self.conditions}, got {condition!r}")
        numbers = torch.rand(len(kinds), self.size, generator=generator, dtype=dtype) + (condition == "far")
        return Batch((numbers,), self.slope * numbers + kinds.unsqueeze(-1), {"kind": kinds})

    def measure(self, output, batch):
        if output.shape != batch.target.shape:
            raise ValueError(f"output: expected {list(batch.target.shape)}, got {list(output.shape)}")
        error = output - batch.target
        return {"loss": error.square().mean(-1), "largest": error.abs().amax(-1)}


class SortedMedian(Lines):
    """With a metric that cannot be computed for many runs at once: it looks at its numbers."""

    def measure(self, output, batch):
        found = super().measure(output, batch)
        ordered = sorted(found["largest"].detach().tolist())
        return {**found, "rank": torch.tensor([ordered.index(one) for one in found["largest"].tolist()]).to(output)}


class CompactLines(Lines):
    """The same examples; only what describes them is kept, and batches are made when they are needed."""

    def __init__(self, size: int = 2, *, seed: int = 0) -> None:
        super().__init__(size, seed=seed)
        self.made = 0

    def draw_examples(self, condition, count, generator):
        kinds = torch.randint(len(self.kinds), (count,), generator=generator)
        numbers = super().make(condition, kinds, generator, torch.float64).inputs[0]
        return torch.cat([kinds.unsqueeze(-1).double(), numbers], 1)

    def batch(self, examples, dtype):
        self.made += 1
        kinds, numbers = examples[:, 0].long(), examples[:, 1:].to(dtype)
        return Batch((numbers,), self.slope * numbers + kinds.unsqueeze(-1), {"kind": kinds})

    def draw(self, condition, count, generator, dtype):
        return self.batch(self.draw_examples(condition, count, generator), dtype)


class WholeLines(Lines):
    """The examples of `CompactLines`, drawn as whole batches."""

    def __init__(self, size: int = 2, *, seed: int = 0) -> None:
        super().__init__(size, seed=seed)

    def draw(self, condition, count, generator, dtype):
        return CompactLines(self.size).draw(condition, count, generator, dtype)


class Slope(nn.Module):
    """A linear map.

    Args:
        size: How many layers; an option of `Lines` has the same name.
    """

    def __init__(self, width: int, size: int = 1, bias: bool = True, dtype: Any = torch.float32) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(width, width, bias=bias) for _ in range(size)))

    def forward(self, numbers):
        return self.layers(numbers)


class FoldingSlope(nn.Module):
    """A linear map and a shift for each example of a group, for examples sorted by group."""

    folds = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))

    def forward(self, numbers):
        return numbers @ self.weight

    def by_group(self, numbers):
        return numbers @ self.weight.unsqueeze(-3)


class Penalised(Slope):
    """Wants small weights."""

    def __init__(self, width: int) -> None:
        super().__init__(width)

    def with_penalty(self, numbers):
        return self(numbers), 0.3 * self.layers[0].weight.square().sum()


class FoldingPenalised(FoldingSlope):
    """Wants small weights, and is asked for examples sorted by group."""

    def with_penalty(self, numbers):
        return self(numbers), 0.3 * self.weight.square().sum()

    def by_group_with_penalty(self, numbers):
        return self.by_group(numbers), 0.3 * self.weight.square().sum((-2, -1))


class Dropping(Slope):
    """Draws numbers in training."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.drop = nn.Dropout(0.3)

    def forward(self, numbers):
        return self.drop(super().forward(numbers))


class Branching(Slope):
    """Which way it goes depends on its numbers."""

    def __init__(self, width: int) -> None:
        super().__init__(width)

    def forward(self, numbers):
        output = super().forward(numbers)
        return output if self.layers[0].weight.sum() > 0 else -output


class BranchingPenalised(Branching):
    """Cannot be stacked, and wants small weights."""

    def with_penalty(self, numbers):
        return self(numbers), 0.3 * self.layers[0].weight.square().sum()
