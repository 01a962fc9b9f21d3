"""From a spec to its task, its model and its examples: everything random comes from a generator of the spec's seed."""

import json
from collections.abc import Hashable, Iterable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tpr_attention.generators import named_generator
from tpr_attention.imports import ImportPathError, file_hash, is_path, load, loaded_hash, parameters
from tpr_attention.models.build import build
from tpr_attention.models.contract import ContractError, check_contract, foreign, parameter_count
from tpr_attention.tasks import TASKS
from tpr_attention.tasks.task import Batch, CompactExamples, EvenGroups, FinalMeasure, NamedAxes, Stackable, Task
from tpr_attention.training.examples import Compact, Examples
from tpr_attention.training.memory import expect_memory
from tpr_attention.training.points import TRAIN
from tpr_attention.training.spec import Component, RunSpec, SpecError

__all__ = ["Prepared", "check", "is_stacked", "make_task", "names_of", "prepare", "stack_key"]

FEW = 16  # examples that a model is tried with


class Prepared(NamedTuple):
    """A run that can begin."""

    spec: RunSpec
    task: Task
    model: nn.Module
    pool: Examples
    tests: dict[str, Examples]
    even_group: str | None
    metrics: tuple[str, ...]


def make_task(component: Component, seed: int) -> Task:
    """Make a task from its name and options; it is given the seed if it asks for one."""
    path = TASKS.get(component.name, component.name)
    try:
        seeded = {"seed": seed} if "seed" in parameters(path).types else {}
        with foreign():
            task = load(path)(**component.options, **seeded)
            is_task = isinstance(task, Task)  # asks for its properties
    except ImportPathError as error:
        raise SpecError(f"task: {error}") from error
    except Exception as error:  # a user's may do anything
        raise _task_error(component, "cannot be made", error) from error
    if not is_task:
        lacks = [name for name in ("sizes", "conditions", "group_names", "draw", "measure") if not hasattr(task, name)]
        raise SpecError(f"task: expected {component.name!r} to make a task, got one without {', '.join(lacks)}")
    made: Task = task
    return made


def _task_error(component: Component, what: str, error: Exception) -> SpecError:
    """What a task said, after the key of the option that it names if it names one."""
    if str(error).partition(":")[0].partition(".")[0] in component.options:
        return SpecError(f"task.{error}")
    return SpecError(f"task: {component.name!r} {what}: {type(error).__name__}: {error}")


def check(spec: RunSpec) -> int:
    """Check a spec before anything is written. Returns the number of parameters."""
    try:
        task, model, few = _begin(spec, torch.float32)
        if is_path(spec.model.name) or is_path(spec.task.name):  # ours keep the contract
            _fit(spec, model, [few])
            _try(spec, task, model, few)
    except ContractError as error:
        raise SpecError(str(error)) from error
    return parameter_count(model)


def prepare(spec: RunSpec, dtype: torch.dtype = torch.float32) -> Prepared:
    """Make and draw what a run needs; raise `SpecError` for what cannot be run."""
    try:
        task, model, few = _begin(spec, dtype)
        pool = _pool(spec, task, dtype)
        _fit(spec, model, _batches(pool))
        _try(spec, task, model, few)
    except ContractError as error:
        raise SpecError(str(error)) from error
    measure = task.measure_finally if isinstance(task, FinalMeasure) else task.measure
    with torch.no_grad():
        metrics = tuple(measure(model.eval()(*few.inputs), few))
    model.to(spec.training.device)
    tests = {condition: _test(spec, task, condition, dtype) for condition in task.conditions}
    return Prepared(spec, task, model, pool, tests, _even_group(task), metrics)


def names_of(run: Prepared) -> dict[str, object]:
    """What conditions, metrics, groups and axes are called, as it is stored with a run."""
    task = run.task
    return {
        "conditions": list(task.conditions),
        "metrics": list(run.metrics),
        "groups": {grouping: list(names) for grouping, names in task.group_names.items()},
        "axes": {axis: list(names) for axis, names in task.axis_names.items()} if isinstance(task, NamedAxes) else {},
    }


def stack_key(component: Component) -> Hashable:
    """Equal for tasks that can be trained in one stack."""
    return _stacking(*_frozen(component))[0]


def is_stacked(component: Component) -> bool:
    """Whether runs of a task are faster in one stack. With large examples they are not, as each step is long."""
    return _stacking(*_frozen(component))[1]


@cache
def _stacking(name: str, options: str) -> tuple[Hashable, bool]:
    task = make_task(Component(name, json.loads(options)), seed=0)
    key = task.stack_key if isinstance(task, Stackable) else (name, options)
    return key, not isinstance(task, CompactExamples)


@lru_cache(32)
def _own_task(name: str, options: str, seed: int) -> Task:
    """A task of this package, which does not change and can be used by many runs."""
    return make_task(Component(name, json.loads(options)), seed)


def _frozen(component: Component) -> tuple[str, str]:
    return component.name, json.dumps(component.options, sort_keys=True)


def _begin(spec: RunSpec, dtype: torch.dtype) -> tuple[Task, nn.Module, Batch]:
    """The task, the untrained model, and a few examples."""
    _expect_sources(spec)
    task = make_task(spec.task, spec.seed) if spec.sources else _own_task(*_frozen(spec.task), spec.seed)
    few = _few(spec, task, dtype)
    even = _even_group(task)
    if even is not None and spec.training.batch_size < len(task.group_names[even]):
        count = len(task.group_names[even])
        raise SpecError(
            f"training.batch_size: expected at least one example for each {even} of {count}, "
            f"got {spec.training.batch_size}"
        )
    if spec.training.train_examples < spec.training.batch_size:
        raise SpecError(
            f"training.train_examples: expected at least a batch of {spec.training.batch_size}, "
            f"got {spec.training.train_examples}"
        )
    try:
        torch.zeros((), device=spec.training.device).item()
    except (RuntimeError, AssertionError) as error:
        said = str(error).splitlines()[0].partition(". ")[0]
        raise SpecError(f"training.device: cannot use {spec.training.device!r}: {said}") from error
    expect_memory(spec, task, few)
    model = build(spec.model.name, task, spec.seed, **spec.model.options)
    return task, model.to(dtype), few


def _expect_sources(spec: RunSpec) -> None:
    """Refuse to train a run with other code or data than it was requested with."""
    for name, expected in spec.sources.items():
        try:
            found = loaded_hash(name) if is_path(name) else file_hash(name)
        except ImportPathError as error:
            raise SpecError(str(error)) from error
        if found != expected:
            raise SpecError(
                f"{name}: its file has changed since it was imported or since this run was requested; start again"
            )


def _few(spec: RunSpec, task: Task, dtype: torch.dtype) -> Batch:
    """The examples that a model is tried with."""
    try:
        with foreign():
            few = _draw(task, TRAIN, FEW, named_generator(spec.seed, "contract"), dtype)
            for condition in task.conditions:
                _draw(task, condition, 1, named_generator(spec.seed, "contract"), dtype)
            if _even_group(task) is not None and isinstance(task, EvenGroups):
                task.draw_evenly(TRAIN, 1, named_generator(spec.seed, "contract"), dtype)
    except Exception as error:
        raise _task_error(spec.task, "cannot draw examples", error) from error
    if not all(tensor.isfinite().all() for tensor in few.tensors()):
        raise SpecError(f"task: expected {spec.task.name!r} to draw numbers that are finite as {dtype}, got others")
    return few


def _draw(task: Task, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
    if isinstance(task, CompactExamples):
        return task.batch(task.draw_examples(condition, count, generator), dtype)
    return task.draw(condition, count, generator, dtype)


def _even_group(task: Task) -> str | None:
    """The grouping by which training batches are sorted; compact examples are not."""
    return task.even_group if isinstance(task, EvenGroups) and not isinstance(task, CompactExamples) else None


def _fit(spec: RunSpec, model: nn.Module, batches: Iterable[Batch]) -> None:
    """Fit a model that is solved and not trained."""
    fit = None if getattr(model, "needs_training", True) else getattr(model, "fit", None)
    try:
        if fit is not None:
            with foreign():
                fit(batches)
    except Exception as error:
        raise ContractError(f"model: {spec.model.name!r} cannot be fitted: {type(error).__name__}: {error}") from error


def _try(spec: RunSpec, task: Task, model: nn.Module, few: Batch) -> None:
    try:
        check_contract(model, few, task.measure)  # type: ignore[arg-type]
    except ContractError as error:
        raise ContractError(f"model: {spec.model.name!r} breaks the contract: {error}") from error


def _pool(spec: RunSpec, task: Task, dtype: torch.dtype) -> Examples:
    """All training batches; if groups are even, the examples of a batch are sorted by group."""
    size = spec.training.batch_size
    count = spec.training.train_examples // size
    generator, even = named_generator(spec.seed, "train"), _even_group(task)
    if isinstance(task, CompactExamples):
        return Compact(task, torch.split(task.draw_examples(TRAIN, count * size, generator), size), dtype)
    if even is None:
        drawn = task.draw(TRAIN, count * size, generator, dtype)
        return drawn.map(lambda tensor: tensor.reshape(count, size, *tensor.shape[1:]))
    assert isinstance(task, EvenGroups)
    groups = len(task.group_names[even])
    drawn = task.draw_evenly(TRAIN, count * (size // groups), generator, dtype)
    return drawn.map(lambda tensor: _by_batch(tensor, groups, count))


def _by_batch(tensor: Tensor, groups: int, count: int) -> Tensor:
    """Rows sorted by group as batches, each sorted by group."""
    by_group = tensor.reshape(groups, count, len(tensor) // (groups * count), *tensor.shape[1:])
    return by_group.transpose(0, 1).flatten(1, 2).contiguous()


def _test(spec: RunSpec, task: Task, condition: str, dtype: torch.dtype) -> Examples:
    count, generator = spec.training.test_examples, named_generator(spec.seed, f"eval/{condition}")
    if isinstance(task, CompactExamples):
        rows = task.draw_examples(condition, count, generator)
        return Compact(task, torch.split(rows, spec.training.batch_size), dtype)
    return task.draw(condition, count, generator, dtype).map(lambda tensor: tensor.unsqueeze(0))


def _batches(examples: Examples) -> Iterator[Batch]:
    if isinstance(examples, Compact):
        yield from map(examples.batch, range(len(examples.rows)))
    else:
        yield examples.map(lambda tensor: tensor.flatten(0, 1))
