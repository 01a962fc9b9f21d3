"""Train many runs at once: runs whose models have the same shape are stacked and take every step together."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor

from tpr_attention.models.contract import parameter_count
from tpr_attention.training.points import TRAIN, Point, group_label
from tpr_attention.training.prepare import is_stacked, names_of, prepare, stack_key
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.stack import Divergence, Stack, can_compile

__all__ = ["Finished", "Pause", "evaluation_steps", "group_key", "groups", "is_worth_compiling", "train"]

MOST_TOGETHER = 15  # more models in a stack are no faster: their batches leave the cache
WORTH_COMPILING = 40_000  # steps of one model
PAUSE_SECONDS = 0.25


class Pause(NamedTuple):
    """A moment between two steps at which a training could be left and taken up again with `state()`.

    Args:
        training_seconds: Processor time of the steps since this training began or was resumed, of all runs together.
    """

    step: int
    state: Callable[[], dict[str, Tensor]]
    training_seconds: float


class Finished(NamedTuple):
    """The end of a run: its final weights, what its numbers are called, and why it stopped if it diverged.

    Args:
        training_seconds: That of a `Pause` after the last step.
        finishing_seconds: Processor time of what models do after training, of all runs together.
    """

    run: str
    weights: dict[str, Tensor]
    names: dict[str, Any]
    parameters: int
    divergence: Divergence | None = None
    training_seconds: float = 0.0
    finishing_seconds: float = 0.0


def group_key(spec: RunSpec) -> Hashable:
    """Equal for runs that can be trained together: they may differ in seed, learning rate and details of the task."""
    training = msgspec.structs.replace(spec.training, learning_rate=1.0)
    return stack_key(spec.task), msgspec.json.encode(spec.model, order="sorted"), training


def groups(specs: Sequence[RunSpec]) -> list[list[RunSpec]]:
    """Runs divided into those that are trained together. Large examples are alone, so that workers can share them."""
    found: dict[Hashable, list[RunSpec]] = {}
    for spec in specs:
        found.setdefault(group_key(spec), []).append(spec)

    def parts(group: list[RunSpec]) -> Iterator[list[RunSpec]]:
        most = MOST_TOGETHER if is_stacked(group[0].task) else 1
        for first in range(0, len(group), most):
            yield group[first : first + most]

    return [part for group in found.values() for part in parts(group)]


def is_worth_compiling(specs: Sequence[RunSpec]) -> bool:
    """Whether some group of these runs is trained for longer than it takes to compile its step."""
    return any(group[0].training.steps * len(group) >= WORTH_COMPILING for group in groups(specs))


def evaluation_steps(steps: int) -> list[int]:
    """The steps at which tests are evaluated: 0, powers of two, evenly spaced ones in long runs, and the last.

    >>> evaluation_steps(100)
    [0, 1, 2, 4, 8, 16, 32, 64, 100]
    """
    early = {2**k for k in range(64) if 2**k <= steps}
    late = {round(steps * k / 20) for k in range(1, 21)} if steps >= 1000 else {steps}
    return sorted({0} | early | late)


def train(
    specs: Sequence[RunSpec],
    *,
    compiled: bool | None = None,
    dtype: torch.dtype = torch.float32,
    begin: tuple[int, Mapping[str, Tensor]] | None = None,
) -> Iterator[Point | Pause | Finished]:
    """Train runs together that have one `group_key`. Yields points, pauses, and the end of every run.

    At each of the `evaluation_steps` there is a point for every condition and run. From step 1 on there is also one for
    the training loss, the mean over the steps since the last. At the end there are points for each group of examples.
    A model that is not trained has points at the start and at the end, one that finishes has further ones after that.
    A run that meets what is not finite stops before it changes its weights, without further points; the others go on as
    if it were not there.

    Args:
        compiled: Whether a step becomes one compiled program, for models that fold. That takes half a minute and a C++
            compiler; if not given, it is done where it pays and a compiler is found.
        begin: The step and the state of a pause of the same training. What follows is what followed that pause.
    """
    if (kinds := len(set(map(group_key, specs)))) != 1:
        raise ValueError(f"specs: expected runs that can be trained together, got {kinds} kinds in {len(specs)} runs")
    steps = specs[0].training.steps
    runs = [prepare(spec, dtype) for spec in specs]
    if compiled is None:
        compiled = is_worth_compiling(specs) and can_compile()
    stack = Stack(runs, compiled=compiled)
    tasks = [run.task for run in runs]
    ends = [Finished(run.spec.digest, {}, names_of(run), parameter_count(run.model)) for run in runs]
    del runs
    moments = evaluation_steps(steps) if stack.trained else [0, steps]
    reached, training_seconds = -1, 0.0
    if begin is not None:
        reached, state = begin
        stack.restore(state)

    def points(step: int, condition: str, values: Tensor) -> Iterator[Point]:
        for spec, of_run, lives in zip(specs, values.tolist(), stack.alive.tolist(), strict=True):
            if lives:
                yield Point(spec.digest, step, condition, None, tuple(of_run))

    for before, moment in zip([0, *moments], moments, strict=False):
        if moment <= reached:
            continue
        reached = max(reached, before)
        while stack.trained and reached < moment:
            started = time.process_time()
            reached = stack.advance(reached, moment, PAUSE_SECONDS)
            training_seconds += time.process_time() - started
            if reached < moment:
                yield Pause(reached, stack.state, training_seconds)
        if stack.trained and moment > before:
            yield from points(moment, TRAIN, stack.mean_losses(moment - before).unsqueeze(-1))
        if moment < moments[-1]:
            for condition in stack.tests:
                yield from points(moment, condition, stack.evaluate(condition).means())
        reached = moment
        yield Pause(moment, stack.state, training_seconds)
        if not stack.alive.any():
            break
    measured = {steps: stack.evaluate_finally()}
    trained = {name: tensor.clone() for name, tensor in stack.state().items()} if stack.finishing_steps else {}
    finishing_seconds = 0.0
    for stage, count in enumerate(stack.finishing_steps):
        started = time.process_time()
        for _ in stack.finish(stage):
            finishing_seconds += time.process_time() - started
            yield Pause(steps, lambda: trained, training_seconds)
            started = time.process_time()
        finishing_seconds += time.process_time() - started
        measured[max(measured) + count] = stack.evaluate_finally()
    for step, tests in measured.items():
        for condition, found in tests.items():
            yield from points(step, condition, found.means())
    for condition, found in tests.items():
        for run, (spec, task) in enumerate(zip(specs, tasks, strict=True)):
            for grouping, number, values in found.by_group(run) if stack.alive[run] else ():
                label = group_label(grouping, task.group_names[grouping][number])
                yield Point(spec.digest, step, condition, label, values)
    for run, (end, weights) in enumerate(zip(ends, stack.unstacked(), strict=True)):
        yield end._replace(
            weights=weights,
            divergence=stack.divergence(run),
            training_seconds=training_seconds,
            finishing_seconds=finishing_seconds,
        )
