"""What every task must do, as checks that any task can be held to: `Case` names a task, `CHECKS` are functions of it.

@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_my_task(check):
    check(Case("my_package.my_module:MyTask", {"size": 3}))
"""

import inspect
import json

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from tpr_attention.imports import load, parameters
from tpr_attention.tasks.task import (
    BestAnswer,
    CompactExamples,
    EvenGroups,
    FinalMeasure,
    Floors,
    LossAlone,
    NamedAxes,
    Pictures,
    Stackable,
    StackedMeasure,
    Task,
    Words,
)
from tpr_attention.training.options import options_of

from .cases import COUNT, Case, every_condition, generator, loss_of, rows, same, wrong_output

__all__ = ["CHECKS", "Case"]


def it_keeps_the_contract(case: Case) -> None:
    task = case.task
    assert isinstance(task, Task)
    assert task.sizes
    assert all(type(size) is int and size > 0 for size in task.sizes.values())
    assert task.conditions
    assert len({"train", *task.conditions}) == 1 + len(task.conditions)
    for names in task.group_names.values():
        assert isinstance(names, tuple)
        assert len(set(names)) == len(names) > 0


def it_draws_what_it_says(case: Case) -> None:
    task = case.task
    for condition in every_condition(task):
        for count, dtype in ((COUNT, torch.float32), (1, torch.float64), (0, torch.float32)):
            batch = task.draw(condition, count, generator(), dtype)
            assert batch.size == count
            assert all(len(tensor) == count for tensor in batch.tensors())
            assert all(tensor.dtype == dtype for tensor in batch.tensors() if tensor.is_floating_point())
            assert all(tensor.isfinite().all() for tensor in batch.tensors())
            assert batch.groups.keys() == task.group_names.keys()
            for name, numbers in batch.groups.items():
                assert numbers.dtype == torch.int64
                assert numbers.shape == (count,)
                assert ((numbers >= 0) & (numbers < len(task.group_names[name]))).all()
            assert batch.counted is None or batch.counted.dtype == torch.bool
            assert not any(tensor.requires_grad for tensor in batch.tensors())


def shapes_are_the_same_for_all_examples_of_a_condition(case: Case) -> None:
    task = case.task
    for condition in every_condition(task):
        batches = [task.draw(condition, count, generator(count), torch.float32) for count in (COUNT, 1, 0)]
        assert len({tuple(tensor.shape[1:] for tensor in batch.tensors()) for batch in batches}) == 1


def the_same_generator_gives_the_same_bits(case: Case) -> None:
    task, again = case.task, case.make()
    before = torch.get_rng_state()
    for condition in every_condition(task):
        random = generator()
        first, second = (task.draw(condition, COUNT, random, torch.float32) for _ in range(2))
        assert same(first, again.draw(condition, COUNT, generator(), torch.float32))
        assert not same(first, second)
        assert not same(first, task.draw(condition, COUNT, generator(1), torch.float32))
    assert torch.equal(torch.get_rng_state(), before)


def what_is_held_out_is_where_it_must_be(case: Case) -> None:
    task = case.task
    for condition in every_condition(task):
        if case.is_held_out is not None:
            held_out = case.is_held_out(task, task.draw(condition, 500, generator(), torch.float32))
            assert held_out.shape == (500,)
            assert (held_out == (condition not in case.in_training)).all(), condition


def metrics_are_numbers_of_examples(case: Case) -> None:
    task = case.task
    for condition in every_condition(task):
        batch = task.draw(condition, COUNT, generator(), torch.float64)
        found = task.measure(wrong_output(case, batch), batch)
        for values in found.values():
            assert values.shape == (COUNT,)
            assert values.isfinite().all()
        assert (next(iter(found.values())) > 0).all()
        part = task.measure(wrong_output(case, batch)[3:9], rows(batch, slice(3, 9)))
        for name, values in part.items():
            torch.testing.assert_close(values, found[name][3:9])


def the_loss_is_zero_at_the_target(case: Case) -> None:
    task = case.task
    for condition in every_condition(task):
        batch = task.draw(condition, COUNT, generator(), torch.float64)
        output = case.right_output(batch).clone().requires_grad_()
        loss = loss_of(task, output, batch)
        assert loss.max() < 1e-6
        gradient = torch.autograd.grad(loss.sum(), output)[0]
        assert ((output - gradient).clamp(*case.limits) - output).abs().max() < 1e-4  # no step inside the limits


def what_is_measured_for_steps_and_at_the_end_is_what_is_measured(case: Case) -> None:
    task = case.task
    batch = task.draw("train", COUNT, generator(), torch.float64)
    output = wrong_output(case, batch)
    found = task.measure(output, batch)
    if isinstance(task, LossAlone):
        assert torch.equal(task.loss(output, batch), next(iter(found.values())))
        together = batch.map(lambda tensor: tensor.unsqueeze(0))
        assert torch.equal(task.loss(output.unsqueeze(0), together)[0], task.loss(output, batch))
    if isinstance(task, FinalMeasure):
        finally_found = task.measure_finally(output, batch)
        assert list(finally_found)[: len(found)] == list(found)
        assert len(finally_found) > len(found)
        assert all(torch.equal(finally_found[name], values) for name, values in found.items())
        assert task.quick_examples > 0


def the_loss_has_a_gradient(case: Case) -> None:
    task = case.task
    batch = task.draw("train", COUNT, generator(), torch.float64)
    output = wrong_output(case, batch).requires_grad_()
    gradient = torch.autograd.grad(loss_of(task, output, batch).mean(), output)[0]
    assert gradient.isfinite().all()
    assert (gradient.flatten(1) != 0).any(1).all()


def measuring_works_for_many_runs_at_once_and_can_be_traced(case: Case) -> None:
    task = case.task
    batches = [task.draw("train", COUNT, generator(seed), torch.float32) for seed in range(3)]
    stacked = [torch.stack(tensors) for tensors in zip(*(batch.tensors() for batch in batches), strict=True)]
    outputs = torch.stack([wrong_output(case, batch) for batch in batches])

    def losses(output: Tensor, *tensors: Tensor) -> dict[str, Tensor]:
        return task.measure(output, batches[0].with_tensors(tensors))

    traced = make_fx(torch.vmap(losses), tracing_mode="fake")(outputs, *stacked)
    ways = [torch.vmap(losses)(outputs, *stacked), traced(outputs, *stacked)]
    if isinstance(task, StackedMeasure):
        ways.append(task.measure_stack(outputs, batches[0].with_tensors(stacked)))
    for found in ways:
        for run, batch in enumerate(batches):
            for name, values in task.measure(outputs[run], batch).items():
                torch.testing.assert_close(found[name][run], values)


def measuring_works_on_other_devices_and_dtypes(case: Case) -> None:
    task = case.task
    batch = task.draw("train", COUNT, generator(), torch.float32)
    there = batch.to("meta")
    found = task.measure(case.right_output(there), there)
    assert all(values.is_meta and values.shape == (COUNT,) for values in found.values())
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        cast = batch.map(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)  # noqa: B023
        assert loss_of(task, wrong_output(case, cast), cast).isfinite().all()


def an_output_of_another_shape_and_an_unknown_condition_are_refused(case: Case) -> None:
    task = case.task
    batch = task.draw("train", COUNT, generator(), torch.float32)
    output = case.right_output(batch)
    for other in (output[..., None], output[:1]):
        with pytest.raises(ValueError, match=r"^output: "):
            task.measure(other, batch)
    with pytest.raises(ValueError, match=r"^condition: "):
        task.draw("trian", COUNT, generator(), torch.float32)


def even_groups_are_even_and_sorted(case: Case) -> None:
    task = case.task
    if isinstance(task, EvenGroups) and task.even_group is not None:
        groups = len(task.group_names[task.even_group])
        batch = task.draw_evenly("train", 5, generator(), torch.float64)
        assert torch.equal(batch.groups[task.even_group], torch.arange(groups).repeat_interleave(5))
        plain = task.draw("train", 5 * groups, generator(), torch.float64)
        assert [tensor.shape for tensor in batch.tensors()] == [tensor.shape for tensor in plain.tensors()]
        assert [tensor.dtype for tensor in batch.tensors()] == [tensor.dtype for tensor in plain.tensors()]
        assert same(batch, task.draw_evenly("train", 5, generator(), torch.float64))
        assert not same(batch, task.draw_evenly("train", 5, generator(1), torch.float64))


def compact_examples_give_the_same_batch(case: Case) -> None:
    task = case.task
    if isinstance(task, CompactExamples):
        for condition in every_condition(task):
            examples = task.draw_examples(condition, COUNT, generator())
            batch = task.batch(examples, torch.float32)
            assert same(batch, task.draw(condition, COUNT, generator(), torch.float32))
            assert same(rows(batch, slice(3, 9)), task.batch(examples[3:9], torch.float32))


def options_survive_json_and_are_documented(case: Case) -> None:
    options = options_of("task", case.name, case.options)
    read = json.loads(json.dumps(options, allow_nan=False))
    assert read == json.loads(json.dumps(options_of("task", case.name, read)))
    first, again = (
        task.draw("train", COUNT, generator(), torch.float32)
        for task in (case.task, case._replace(options=read).make())
    )
    assert same(first, again)
    words = inspect.getdoc(load(case.path)) or ""
    for name in parameters(case.path).types:
        assert f"{name}:" in words, f"{name!r} is not documented"


def stacks_are_of_equal_shapes(case: Case) -> None:
    task, again = case.task, case.make()
    if isinstance(task, Stackable):
        assert task.stack_key == again.stack_key
        assert hash(task.stack_key) == hash(again.stack_key)


def names_pictures_and_floors_fit_the_examples(case: Case) -> None:
    task = case.task
    batch = task.draw(task.conditions[-1], COUNT, generator(), torch.float32)
    if isinstance(task, NamedAxes):
        assert all(isinstance(name, str) and name for names in task.axis_names.values() for name in names)
    if isinstance(task, Words):
        words = task.words(batch)
        assert len(words) == COUNT
        assert len({tuple(parts) for parts in words}) == 1
        assert all(isinstance(word, str) and word for parts in words for word in parts.values())
    if isinstance(task, Pictures):
        for pictures in task.pictures(batch).values():
            assert pictures.dtype == torch.uint8
            assert (len(pictures), pictures.shape[-1]) == (COUNT, 3)
            assert pictures.any()
    if isinstance(task, BestAnswer):
        answer = task.best_answer(*batch.inputs)
        assert loss_of(task, answer, batch).isfinite().all()
    if isinstance(task, Floors):
        floors = task.floors()
        assert set(floors) == set(every_condition(task))
        assert all(0 <= value < float("inf") for found in floors.values() for value in found.values())


CHECKS = (
    it_keeps_the_contract,
    it_draws_what_it_says,
    shapes_are_the_same_for_all_examples_of_a_condition,
    the_same_generator_gives_the_same_bits,
    what_is_held_out_is_where_it_must_be,
    metrics_are_numbers_of_examples,
    the_loss_is_zero_at_the_target,
    the_loss_has_a_gradient,
    what_is_measured_for_steps_and_at_the_end_is_what_is_measured,
    measuring_works_for_many_runs_at_once_and_can_be_traced,
    measuring_works_on_other_devices_and_dtypes,
    an_output_of_another_shape_and_an_unknown_condition_are_refused,
    even_groups_are_even_and_sorted,
    compact_examples_give_the_same_batch,
    options_survive_json_and_are_documented,
    stacks_are_of_equal_shapes,
    names_pictures_and_floors_fit_the_examples,
)
