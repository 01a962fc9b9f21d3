"""What every contestant must do, as checks that any model can be held to: `Case` names a model, `CHECKS` are functions.

@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_my_model(check):
    check(Case("my_package.my_module:MyModel", task="my_package.my_module:MyTask"))
"""

import copy
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import stack_module_state

from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.models.contract import Folds, StartsAtCopy, check_contract
from tpr_attention.tasks.task import Batch, EvenGroups
from tpr_attention.training.options import options_of
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import Component

COUNT = 32
EACH = 7  # examples of a group


class Case(NamedTuple):
    """A model to be checked.

    Args:
        task: The name of its task or an import path, and `task_options` its options.
        without_gradient: The ends of the names of parameters that change nothing.
        random_start: Whether other seeds give other weights.
    """

    name: str
    task: str = "composition"
    task_options: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    without_gradient: tuple[str, ...] = ()
    random_start: bool = True

    def made_task(self) -> Any:
        return _task(self.task, json.dumps(dict(self.task_options)))

    def batch(self, count: int = COUNT) -> Batch:
        return self.made_task().draw("train", count, named_generator(0, "batch"), torch.float64)

    def make(self, seed: int = 0) -> nn.Module:
        """The model as it is at the start, in float64; fitted if it is one that is."""
        model = build(self.name, self.made_task(), seed, **self.options).double()
        if not needs_training(model) and hasattr(model, "fit"):
            model.fit([self.made_task().draw("train", 2000, named_generator(0, "fit"), torch.float64)])
        return model

    def make_moved(self, seed: int = 0) -> nn.Module:
        """The model with an update that is not zero."""
        return moved(self.make(seed), seed)

    def seen(self, model: nn.Module) -> dict[str, nn.Parameter]:
        """The parameters that are trained and change something."""
        return {
            name: parameter
            for name, parameter in model.named_parameters()
            if parameter.requires_grad and not name.endswith(self.without_gradient or "no name ends so")
        }


@cache
def _task(name: str, options: str) -> Any:
    return make_task(Component(name, options_of("task", name, json.loads(options))), seed=0)


def needs_training(model: nn.Module) -> bool:
    return getattr(model, "needs_training", True)


@torch.no_grad()
def moved(model: nn.Module, seed: int = 0) -> nn.Module:
    """The same model with random numbers where zeros make its update zero."""
    generator = named_generator(seed, "moved")
    for parameter in model.output_map() if isinstance(model, StartsAtCopy) else ():
        parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return model


def it_keeps_the_contract(case: Case) -> None:
    for model in (case.make(), case.make_moved()):
        check_contract(model, case.batch(), case.made_task().measure)


def its_weights_come_from_the_seed_alone(case: Case) -> None:
    def weights(seed: int) -> dict[str, Tensor]:
        return build(case.name, case.made_task(), seed, **case.options).state_dict()

    before = torch.get_rng_state()
    first, again, other = weights(0), weights(0), weights(1)
    assert torch.equal(torch.get_rng_state(), before)
    assert first.keys() == again.keys() == other.keys()
    assert all(_same(tensor, again[name]) for name, tensor in first.items())
    assert all(_same(tensor, other[name]) for name, tensor in first.items()) == (not case.random_start)


def _same(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.nan_to_num(nan=-1.0), other.nan_to_num(nan=-1.0))


def each_example_is_answered_by_itself(case: Case) -> None:
    model, batch = case.make_moved().eval(), case.batch()
    whole = model(*batch.inputs)
    assert whole.dtype == torch.float64
    assert len(whole) == COUNT
    for rows in (slice(0), slice(1), slice(5, 8)):
        output = model(*(tensor[rows] for tensor in batch.inputs))
        assert output.shape == whole[rows].shape
        torch.testing.assert_close(output, whole[rows])


def it_answers_alike_in_single_precision(case: Case) -> None:
    model, batch = case.make_moved().eval(), case.batch()
    expected = model(*batch.inputs)
    output = model.float()(*(tensor.float() if tensor.is_floating_point() else tensor for tensor in batch.inputs))
    assert output.dtype == torch.float32
    torch.testing.assert_close(output.double(), expected, rtol=1e-3, atol=1e-4)


def gradients_reach_every_parameter(case: Case) -> None:
    model, batch = case.make_moved(), case.batch()
    if needs_training(model):
        parameters = case.seen(model)
        assert parameters
        loss = next(iter(case.made_task().measure(model(*batch.inputs), batch).values())).mean()
        for name, gradient in zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True):
            assert gradient.abs().max() > 1e-9, name


def examples_sorted_by_group_have_the_same_answers_and_gradients(case: Case) -> None:
    """Also for many models at once, whose parameters are stacked."""
    task, models = case.made_task(), [case.make_moved(seed) for seed in range(3)]
    if not isinstance(models[0], Folds) or not isinstance(task, EvenGroups) or task.even_group is None:
        return
    groups = len(task.group_names[task.even_group])
    batch = task.draw_evenly("train", EACH, named_generator(0, "sorted"), torch.float64)
    sorted_inputs = [tensor.unflatten(0, (groups, EACH)) for tensor in batch.inputs]
    wanted = [model(*batch.inputs) for model in models]
    weight = torch.randn(wanted[0].shape, generator=named_generator(0, "weight"), dtype=torch.float64)
    for model, expected in zip(models, wanted, strict=True):
        output = model.by_group(*sorted_inputs).flatten(0, 1)
        torch.testing.assert_close(output, expected)
        parameters = list(case.seen(model).values()) if needs_training(model) else []
        if parameters:
            found = torch.autograd.grad((output * weight).sum(), parameters)
            gradients = torch.autograd.grad((expected * weight).sum(), parameters, retain_graph=True)
            for one, other in zip(found, gradients, strict=True):
                torch.testing.assert_close(one, other)
    if models[0].folds:
        together = copy.deepcopy(models[0])
        for name, stacked in stack_module_state(models)[0].items():
            owner, _, last = name.rpartition(".")
            delattr(together.get_submodule(owner), last)
            setattr(together.get_submodule(owner), last, stacked)
        output = together.by_group(*(tensor.expand(3, *tensor.shape) for tensor in sorted_inputs))
        torch.testing.assert_close(output.flatten(1, 2), torch.stack(wanted))


def its_weights_can_be_stored_and_loaded(case: Case) -> None:
    model, other, batch = case.make_moved(), case.make(seed=1), case.batch()
    other.load_state_dict({name: tensor.clone() for name, tensor in model.state_dict().items()})
    assert torch.equal(other.eval()(*batch.inputs), model.eval()(*batch.inputs))


CHECKS = (
    it_keeps_the_contract,
    its_weights_come_from_the_seed_alone,
    each_example_is_answered_by_itself,
    it_answers_alike_in_single_precision,
    gradients_reach_every_parameter,
    examples_sorted_by_group_have_the_same_answers_and_gradients,
    its_weights_can_be_stored_and_loaded,
)
