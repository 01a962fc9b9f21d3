"""Train many runs at once: runs whose models have the same shape are stacked and take every step together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.experiments.points import Point
from tpr_attention.experiments.prepare import Prepared, eval_steps, prepare
from tpr_attention.experiments.program import Divergence, Program, can_compile
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.models import parameter_count

__all__ = ["Finished", "Pause", "groups", "is_worth_compiling", "shape", "train"]

MOST_TOGETHER = 15  # more models in a stack are no faster: their batches leave the cache
WORTH_COMPILING = 50_000  # steps of one model
PATIENCE = 0.25  # seconds between pauses


class Pause(NamedTuple):
    """A moment between two steps at which a training could be left and taken up again with `state()`."""

    step: int
    state: Callable[[], dict[str, Tensor]]


class Finished(NamedTuple):
    """The end of a run: its final weights, how much each role counts in its loss, and why it stopped if it diverged."""

    run: str
    weights: dict[str, Tensor]
    role_weights: dict[str, float]
    parameters: int
    divergence: Divergence | None = None


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
        factors=spec.factors,
        filler_dim=spec.filler_dim,
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
    specs: Sequence[RunSpec],
    *,
    compiled: bool | None = None,
    dtype: torch.dtype = torch.float32,
    begin: tuple[int, Mapping[str, Tensor]] | None = None,
) -> Iterator[Point | Pause | Finished]:
    """Train the runs of one group together: a stream of points, of pauses, and of weights at the end.

    At each of the `eval_steps` there is a point for every condition and run. From step 1 on there is also one for
    `train`, the mean over the steps since the last. At the end there are points for each action alone. A model that is
    not trained has points at the start and at the end. A run that meets what is not finite stops before it changes its
    weights, without further points; the others go on as if it were not there.

    Args:
        compiled: Whether a step becomes one compiled program, for models that fold. That takes half a minute and a C++
            compiler; if not said, it is done where it pays and a compiler is found.
        begin: The step and the state of a pause of the same training. What follows is what followed that pause.
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
    reached = -1
    if begin is not None:
        reached, state = begin
        program.restore(state)

    def points(step: int, condition: str, losses: Float[Tensor, "n r"]) -> Iterator[Point]:
        for spec, of_roles, lives in zip(specs, losses.tolist(), program.alive.tolist(), strict=True):
            if lives:
                yield Point(spec.digest, step, condition, tuple(of_roles))

    for before, moment in zip([0, *moments], moments, strict=False):
        if moment <= reached:
            continue
        reached = max(reached, before)
        while program.trained and reached < moment:
            reached = program.advance(reached, moment, PATIENCE)
            if reached < moment:
                yield Pause(reached, program.state)
        if program.trained and moment > before:
            yield from points(moment, "train", program.mean_losses(moment - before))
        for condition in conditions:
            yield from points(moment, condition, program.evaluate(condition))
        reached = moment
        yield Pause(moment, program.state)
        if not program.alive.any():
            break
    for condition in conditions:
        for spec, names, found, lives in zip(
            specs, actions, program.evaluate_by_action(condition), program.alive.tolist(), strict=True
        ):
            for action, losses in found.items() if lives else ():
                yield Point(spec.digest, steps, condition, losses, names[action])
    for number, (end, weights) in enumerate(zip(ends, program.unstacked(), strict=True)):
        yield end._replace(weights=weights, divergence=program.divergence(number))


def _end(run: Prepared) -> Finished:
    """All that is known of a run's end before it has begun."""
    role_weights = dict(zip(run.task.encoding.role_names, run.role_weights.tolist(), strict=True))
    return Finished(run.spec.digest, {}, role_weights, parameter_count(run.model))
