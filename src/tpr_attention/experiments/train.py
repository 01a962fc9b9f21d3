"""Train many runs at once: runs whose models have the same shape are stacked and take every step together."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.experiments.points import Point
from tpr_attention.experiments.prepare import Prepared, eval_steps, prepare
from tpr_attention.experiments.program import Program, can_compile
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.models import parameter_count

__all__ = ["Finished", "groups", "is_worth_compiling", "shape", "train"]

MOST_TOGETHER = 15  # more models in a stack are no faster: their batches leave the cache
WORTH_COMPILING = 50_000  # steps of one model


class Finished(NamedTuple):
    """The end of a run: its final weights, and how much each role counts in its loss."""

    run: str
    weights: dict[str, Tensor]
    role_weights: dict[str, float]
    parameters: int


def shape(spec: RunSpec) -> RunSpec:
    """All of a spec that decides the shape of its program."""
    return RunSpec(
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


def groups(specs: Sequence[RunSpec]) -> list[list[RunSpec]]:
    """Which runs are trained together: those of one shape."""
    found: dict[RunSpec, list[RunSpec]] = {}
    for spec in specs:
        found.setdefault(shape(spec), []).append(spec)
    return [group[k : k + MOST_TOGETHER] for group in found.values() for k in range(0, len(group), MOST_TOGETHER)]


def is_worth_compiling(specs: Sequence[RunSpec]) -> bool:
    """Whether some group of these runs is trained for longer than it takes to compile its step."""
    return any(group[0].steps * len(group) >= WORTH_COMPILING for group in groups(specs))


def train(
    specs: Sequence[RunSpec], *, compiled: bool | None = None, dtype: torch.dtype = torch.float32
) -> Iterator[Point | Finished]:
    """Train the runs of one group together: a stream of points, and of weights at the end.

    At each of the `eval_steps` there is a point for every condition and run. From step 1 on there is also one for
    `train`, the mean over the steps since the last. At the end there are points for each action alone. A model that is
    not trained has points at the start and at the end.

    Args:
        compiled: Whether a step becomes one compiled program, for models that fold. That takes half a minute and a C++
            compiler; if not said, it is done where it pays and a compiler is found.
    """
    if len(groups(specs)) != 1:
        raise ValueError(f"specs: expected those of one group, got {len(groups(specs))} groups of {len(specs)} runs")
    steps = specs[0].steps
    runs = [prepare(spec, dtype) for spec in specs]
    if compiled is None:
        compiled = is_worth_compiling(specs) and can_compile()
    program = Program(runs, compiled=compiled)
    conditions, ends = list(program.evaluation), [_end(run) for run in runs]
    actions = [list(run.task.grid.actions) for run in runs]
    del runs
    moments = eval_steps(steps) if program.trained else [0, steps]
    for before, step in zip([0, *moments], moments, strict=False):
        if program.trained and step > before:
            yield from _points(specs, step, "train", program.advance(before, step))
        for condition in conditions:
            yield from _points(specs, step, condition, program.evaluate(condition))
    for condition in conditions:
        for spec, names, found in zip(specs, actions, program.evaluate_by_action(condition), strict=True):
            for action, losses in found.items():
                yield Point(spec.digest, steps, condition, losses, names[action])
    for end, weights in zip(ends, program.unstacked(), strict=True):
        yield end._replace(weights=weights)


def _end(run: Prepared) -> Finished:
    """All that is known of a run's end before it has begun."""
    role_weights = dict(zip(run.task.encoding.role_names, run.role_weights.tolist(), strict=True))
    return Finished(run.spec.digest, {}, role_weights, parameter_count(run.model))


def _points(specs: Sequence[RunSpec], step: int, condition: str, losses: Float[Tensor, "n r"]) -> Iterator[Point]:
    for spec, of_roles in zip(specs, losses.tolist(), strict=True):
        yield Point(spec.digest, step, condition, tuple(of_roles))
