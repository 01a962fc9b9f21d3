"""Train many runs at once: runs whose models have the same shape are stacked and take every step together."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.experiments.prepare import eval_steps, prepare
from tpr_attention.experiments.program import Program, can_compile
from tpr_attention.experiments.spec import RunSpec

__all__ = ["Finished", "Point", "groups", "train"]

MOST_TOGETHER = 15  # more models in a stack are no faster: their batches leave the cache
WORTH_COMPILING = 1000  # steps


class Point(NamedTuple):
    """The losses of a run at one step under one condition: the mean squared error of each role."""

    run: str
    step: int
    condition: str
    losses: tuple[float, ...]


class Finished(NamedTuple):
    """The final weights of a run."""

    run: str
    weights: dict[str, Tensor]


def groups(specs: Sequence[RunSpec]) -> list[list[RunSpec]]:
    """Which runs are trained together: those that differ in nothing that decides the shape of the program."""
    found: dict[RunSpec, list[RunSpec]] = {}
    for spec in specs:
        alike = RunSpec(
            model=spec.model,
            options=spec.options,
            steps=spec.steps,
            batch=spec.batch,
            train_pairs=spec.train_pairs,
            eval_pairs=spec.eval_pairs,
            balance_actions=spec.balance_actions,
            interaction="any" if spec.interaction else None,
            interaction_action=bool(spec.interaction) and spec.interaction_action,
        )
        found.setdefault(alike, []).append(spec)
    return [group[k : k + MOST_TOGETHER] for group in found.values() for k in range(0, len(group), MOST_TOGETHER)]


def train(
    specs: Sequence[RunSpec], *, compiled: bool | None = None, dtype: torch.dtype = torch.float32
) -> Iterator[Point | Finished]:
    """Train the runs of one group together: a stream of points, and of weights at the end.

    At each of the `eval_steps` there is a point for every condition and run. From step 1 on there is also one for
    `train`, the mean over the steps since the last. A model that is not trained has points at the start and at the end.

    Args:
        compiled: Whether a step becomes one compiled program, for models that fold. That takes half a minute and a C++
            compiler; if not said, it is done where it pays and a compiler is found.
    """
    if len(groups(specs)) != 1:
        raise ValueError(f"specs: expected those of one group, got {len(groups(specs))} groups of {len(specs)} runs")
    steps = specs[0].steps
    runs = [prepare(spec, dtype) for spec in specs]
    conditions = list(runs[0].evaluation)
    program = Program(runs, compiled=steps >= WORTH_COMPILING and can_compile() if compiled is None else compiled)
    del runs
    moments = eval_steps(steps) if program.trained else [0, steps]
    for before, step in zip([0, *moments], moments, strict=False):
        if program.trained and step > before:
            yield from _points(specs, step, "train", program.advance(before, step))
        for condition in conditions:
            yield from _points(specs, step, condition, program.evaluate(condition))
    for spec, weights in zip(specs, program.unstacked(), strict=True):
        yield Finished(spec.digest, weights)


def _points(specs: Sequence[RunSpec], step: int, condition: str, losses: Float[Tensor, "n r"]) -> Iterator[Point]:
    for spec, of_roles in zip(specs, losses.tolist(), strict=True):
        yield Point(spec.digest, step, condition, tuple(of_roles))
