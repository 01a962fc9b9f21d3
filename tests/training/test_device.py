"""A training states the device of every tensor it makes, and never mixes two."""

import ast
import copy
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import tpr_attention
from tpr_attention.models import MODELS
from tpr_attention.tasks.task import Batch
from tpr_attention.training.calls import sorted_by_group
from tpr_attention.training.prepare import prepare
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.stack import Stack

from . import components

SOURCE = Path(tpr_attention.__file__).parent
FOLDERS = ("functional", "nn", "models", "training")
FACTORIES = {"zeros", "ones", "empty", "full", "eye", "arange", "linspace", "logspace", "tensor", "scalar_tensor"}
FACTORIES |= {
    "rand",
    "randn",
    "randint",
    "randperm",
    "normal",
    "as_tensor",
    "from_numpy",
    "tril_indices",
    "triu_indices",
}
ALLOWED = {
    # Parameters and buffers are made where modules are made, and move with their module.
    ("models/composition/linear_floor.py", "torch.full((num_actions, 2 * size + 1, size), torch.nan)"),
    ("models/images/slots.py", "torch.randn(num_roles, WIDTH)"),
    ("models/images/slots.py", "torch.randn(num_roles, WIDTH, filler_dim)"),
    ("models/images/slots.py", "torch.zeros(num_roles, filler_dim)"),
    ("models/recall/contextual_tpr.py", "torch.zeros(num_heads)"),
    ("models/recall/contextual_tpr.py", "torch.randn(num_heads, 1, num_roles)"),
    ("models/recall/contextual_tpr.py", "torch.eye(filler_dim)"),
    ("models/recall/contextual_tpr.py", "torch.randn(num_heads, filler_dim, num_roles)"),
    ("models/recall/encoders.py", "torch.randn(key_fields, num_keys, wide)"),
    ("models/recall/encoders.py", "torch.eye(width)"),
    ("models/recall/encoders.py", "torch.empty(key_fields, wide, width)"),
    ("models/recall/role_objects.py", "torch.randn(matches, num_keys, filler_dim)"),
    ("models/recall/role_objects.py", "torch.randn(key_fields, num_keys, wide)"),
    ("models/recall/role_objects.py", "torch.randn(key_fields, wide, each)"),
    ("models/recall/role_objects.py", "torch.empty(num_values, filler_dim)"),
}
LEARNERS = [name for name, path in MODELS.items() if ".composition." in path and name not in ("oracle", "linear-floor")]


def made_without_device(source):
    """Calls of torch's factories that do not say where the tensor is."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), keywords=keywords):
                if name in FACTORIES and not any(keyword.arg == "device" for keyword in keywords):
                    yield ast.unparse(node)


def test_every_tensor_is_made_on_a_stated_device():
    found = {
        (path.relative_to(SOURCE).as_posix(), call)
        for folder in FOLDERS
        for path in sorted((SOURCE / folder).rglob("*.py"))
        for call in made_without_device(path.read_text(encoding="utf-8"))
    }
    assert found == ALLOWED


def test_the_search_finds_what_it_looks_for():
    source = "x = torch.zeros(3) + torch.eye(2, device=x.device) + torch.zeros_like(x)\ndef f(): return torch.arange(2)"
    assert sorted(made_without_device(source)) == ["torch.arange(2)", "torch.zeros(3)"]


class OneDevice(TorchDispatchMode):
    """Refuses an operation on tensors of two devices, unless it copies from one to the other.

    A number of the CPU, a tensor without axes, may go with tensors of any device, as torch has it.
    """

    COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        tensors = [one for one in tree_leaves((args, kwargs or {})) if isinstance(one, torch.Tensor)]
        devices = {one.device for one in tensors if one.ndim or one.device.type != "cpu"}
        assert len(devices) <= 1 or func in self.COPIES, f"{func} on {devices}"
        return func(*args, **(kwargs or {}))


def elsewhere(run):
    """A prepared run on a device that is not the CPU, and has no numbers; examples stay where `prepare` draws them."""
    return run._replace(spec=run.spec.with_device("meta"), model=copy.deepcopy(run.model).to("meta"))


SMALL = {"steps": 4, "train_examples": 50, "test_examples": 10, "batch_size": 10, "interaction": "shape_col"}
OWN = {**SMALL, "task": components.TASK, "model": components.MODEL}
del OWN["interaction"]
SPECS = {
    **{name: RunSpec.of({**SMALL, "model": name}) for name in LEARNERS},
    "sgd": RunSpec.of({**SMALL, "optimiser": "sgd", "schedule": "constant"}),
    "unsorted": RunSpec.of({**SMALL, "balance_actions": False}),
    "own": RunSpec.of(OWN),
    "compact": RunSpec.of({**OWN, "task": f"{components.__name__}:CompactLines"}),
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_steps_and_evaluations_are_on_the_device_of_the_run(spec, as_users_run_it):
    runs = [elsewhere(prepare(spec.with_seed(seed))) for seed in range(2)]
    with OneDevice():
        stack = Stack(runs, compiled=False)
        assert stack.advance(0, 2) == 2
        assert stack.mean_losses(2).device.type == "meta"
        for condition in stack.tests if not stack.folds else ():  # to sort by group takes numbers
            found = stack.evaluate(condition, at_end=True)
            assert all(sums.device.type == "meta" for sums in found.sums.values())
            assert found.means().device.type == "meta"
    state = stack.state()
    assert {name for name, tensor in state.items() if tensor.device.type != "meta"} == {"random_states"}
    stack.restore(state)


@pytest.mark.parametrize("name", LEARNERS)
def test_models_answer_on_the_device_of_their_inputs(name, as_users_run_it):
    run = elsewhere(prepare(SPECS[name]))
    batch = run.pool.map(lambda tensor: tensor[0]).to("meta")
    with OneDevice():
        assert run.model(*batch.inputs).device.type == "meta"
        assert run.model.by_group(*(tensor.unflatten(0, (5, 2)) for tensor in batch.inputs)).device.type == "meta"


def test_sorting_by_group_is_on_the_device_of_the_examples():
    """Here on the CPU, while another device is the default."""
    numbers, target = torch.tensor([[1, 0, 1], [0, 0, 0]]), torch.arange(6.0).reshape(2, 3)
    with OneDevice(), torch.device("meta"):
        batch, present = sorted_by_group(Batch((target,), target, {"kind": numbers}), numbers, 2)
    assert batch.target.tolist() == [[1.0, 1.0, 1.0, 0.0, 2.0, 2.0], [3.0, 4.0, 5.0, 5.0, 5.0, 5.0]]
    assert present.tolist() == [[True, False, False, True, True, False], [True] * 3 + [False] * 3]


class OnTheCPU(components.Slope):
    """Makes a tensor without saying where."""

    def __init__(self, width: int) -> None:
        super().__init__(width)

    def forward(self, numbers):
        return super().forward(numbers) + torch.ones(3)[:1]


def test_a_tensor_on_another_device_would_be_found(as_users_run_it):
    run = elsewhere(prepare(RunSpec.of({**OWN, "model": f"{__name__}:OnTheCPU"})))
    with OneDevice(), pytest.raises(AssertionError, match=r"aten.add.Tensor on .*cpu"):
        Stack([run], compiled=False).advance(0, 1)
