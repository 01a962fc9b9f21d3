"""The layers behave as torch's own do."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tpr_attention.nn import (
    ActionHeads,
    ActionTPRAttention,
    FixedRoleQueries,
    HigherOrderActionTPRAttention,
    LinearQueries,
    TPRAttention,
)

LAYERS = {
    "default": lambda **options: TPRAttention(4, 3, 5, **options),
    "literal": lambda **options: TPRAttention.literal(4, 3, 5, **options),
    "fixed": lambda **options: TPRAttention(4, 3, 5, queries=FixedRoleQueries(4, 3, 5, **options), **options),
    "conjunction": lambda **options: TPRAttention(4, 3, 5, num_matches=2, **options),
    "chunked": lambda **options: TPRAttention.literal(4, 3, 5, form="chunked", **options),
    "mean": lambda **options: TPRAttention.literal(4, 3, 5, normalise="count", **options),
    "softmax": lambda **options: TPRAttention(4, 3, 5, match="softmax", normalise=None, **options),
    "action": lambda **options: ActionTPRAttention(6, 4, 3, 5, num_objects=7, **options),
    "action, unit length": lambda **options: ActionTPRAttention(6, 4, 3, 5, num_objects=7, normalise="unit", **options),
    "second order": lambda **options: HigherOrderActionTPRAttention(6, 4, 3, 5, num_objects=7, **options),
}

LONG = ("default", "fixed", "conjunction", "chunked", "softmax")
CASES = [(name, length) for name in LAYERS for length in (7, 200)[: 1 + (name in LONG)]]
"""What is compiled: every layer, and long sequences where they may take another way than short ones."""


@pytest.fixture(params=LAYERS)
def make(request):
    return LAYERS[request.param]


def inputs_of(layer, generator, dtype=torch.float32, batch=2):
    objects = torch.randn(batch, 7, 4, 3, generator=generator, dtype=dtype)
    if isinstance(layer, ActionHeads):
        return objects, torch.randn(batch, 6, generator=generator, dtype=dtype)
    return (objects,)


def randomise(layer, generator):
    """Away from zeros, so that every parameter matters."""
    for parameter in layer.parameters():
        parameter.data.normal_(std=0.5, generator=generator)
    return layer


def test_state_dict_and_deepcopy(make, generator):
    layer = randomise(make(), generator)
    inputs = inputs_of(layer, generator)
    other = make()
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(*inputs), layer(*inputs))
    copied = copy.deepcopy(layer)
    assert torch.equal(copied(*inputs), layer(*inputs))
    copied.filler_map.data.zero_()
    assert copied(*inputs).abs().max() == 0
    assert layer(*inputs).abs().max() > 0


def test_to_dtype_and_constructor_dtype(make, generator):
    layer = randomise(make(), generator)
    inputs = inputs_of(layer, generator)
    expected = layer(*inputs)
    layer.to(torch.float64)
    output = layer(*(x.double() for x in inputs))
    assert output.dtype == torch.float64
    torch.testing.assert_close(output.float(), expected, rtol=1e-4, atol=1e-4)
    assert {p.dtype for p in make(dtype=torch.bfloat16).parameters()} == {torch.bfloat16}


def test_meta_device(make, generator):
    layer = make(device="meta")
    assert {p.device.type for p in layer.parameters()} == {"meta"}
    output = layer(*(x.to("meta") for x in inputs_of(layer, generator)))
    assert output.device.type == "meta"
    layer.to_empty(device="cpu")
    other = make()
    for drawn in (layer, other):
        drawn.reset_parameters(torch.Generator().manual_seed(1))
    inputs = inputs_of(layer, generator)
    assert torch.equal(layer(*inputs), other(*inputs))


def test_reset_with_a_generator_repeats_and_leaves_the_global_one_alone(make):
    layer, other = make(), make()
    before = torch.get_rng_state()
    layer.reset_parameters(torch.Generator().manual_seed(3))
    other.reset_parameters(torch.Generator().manual_seed(3))
    assert torch.equal(torch.get_rng_state(), before)
    for found, expected in zip(layer.parameters(), other.parameters(), strict=True):
        assert torch.equal(found, expected)


def test_compiles_into_one_graph_with_gradients():
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.nn.compile_layers"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines() == [f"{name} {length}" for name, length in CASES]


@pytest.mark.parametrize("length", [7, 70])
def test_vmap_over_stacked_parameters_with_gradients(make, length, generator, as_users_run_it):
    layers = [randomise(make(), generator).double() for _ in range(3)]
    inputs = inputs_of(layers[0], generator, torch.float64)
    if not isinstance(layers[0], ActionHeads):
        inputs = (torch.randn(2, length, 4, 3, generator=generator, dtype=torch.float64),)
    parameters, buffers = torch.func.stack_module_state(layers)
    skeleton = copy.deepcopy(layers[0]).to("meta")

    def loss(parameters):
        return torch.func.functional_call(skeleton, (parameters, {}), inputs).square().mean()

    assert not buffers
    values = torch.vmap(loss)(parameters)
    gradients = torch.vmap(torch.func.grad(loss))(parameters)
    for k, layer in enumerate(layers):
        expected = layer(*inputs).square().mean()
        torch.testing.assert_close(values[k], expected)
        for name, wanted in zip(
            dict(layer.named_parameters()),
            torch.autograd.grad(expected, list(layer.parameters())),
            strict=True,
        ):
            torch.testing.assert_close(gradients[name][k], wanted)


def test_autocast_keeps_the_sum_of_a_long_sequence_in_float32(as_users_run_it):
    """A thousand equal objects: a bfloat16 sum would stop at 256 of them."""
    layer = TPRAttention.literal(4, 3, 5)
    objects = torch.ones(1, 1000, 4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, state = layer.stream(objects)
    assert state.memory.dtype == torch.float32
    assert state.memory[0, 0, 0] == 1000
    ratio = output[0, 999].float().norm() / output[0, 249].float().norm()
    assert ratio.item() == pytest.approx(4, rel=0.03)


def test_autocast_is_close_to_full_precision(make, generator, as_users_run_it):
    layer = randomise(make(), generator)
    inputs = inputs_of(layer, generator)
    expected = layer(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = layer(*inputs)
        lower = layer(*(x.bfloat16() for x in inputs))
    scale = expected.abs().max()
    for found in (output, lower):
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.float() / scale, expected / scale, rtol=0.05, atol=0.05)
    output.float().sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in layer.parameters())


def test_bfloat16_layers_pass_gradients(make, generator):
    layer = randomise(make(dtype=torch.bfloat16), generator)
    output = layer(*inputs_of(layer, generator, torch.bfloat16))
    assert output.dtype == torch.bfloat16
    output.sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.abs().max() > 0 for p in layer.parameters())


def test_gradients_lie_in_memory_as_their_parameters_do(make, generator):
    """DistributedDataParallel warns where they do not."""
    layer = make()
    layer(*inputs_of(layer, generator)).square().mean().backward()
    assert [p.grad.stride() for p in layer.parameters()] == [p.stride() for p in layer.parameters()]


def test_activation_checkpointing_gives_the_same_gradients(make, generator, as_users_run_it):
    layer = randomise(make(), generator)
    inputs = inputs_of(layer, generator)
    outputs = layer(*inputs), checkpoint(layer, *inputs, use_reentrant=False)
    wanted, found = (torch.autograd.grad(output.square().mean(), list(layer.parameters())) for output in outputs)
    assert all(map(torch.equal, found, wanted))


def test_repr_says_what_it_is(make):
    assert "num_roles=4, filler_dim=3, num_heads=5" in repr(make())


def test_it_trains_inside_a_model(generator, as_users_run_it):
    """A residual block learns to repeat the first object, which no layer that sees one object at a time can."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = TPRAttention(4, 3, 8, queries=LinearQueries(4, 3, 8), normalise="count")

        def forward(self, objects):
            return objects + self.attention(objects)

    torch.manual_seed(0)
    model = nn.Sequential(Block(), nn.Linear(3, 3))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(250):
        objects = 0.5 * torch.randn(128, 3, 4, 3, generator=generator)
        objects[:, :, 0] = torch.tensor([1.0, 0.0, 0.0])[:, None]  # a mark to find the first by
        optimiser.zero_grad()
        loss = (model(objects)[:, 1:, 1:] - objects[:, :1, 1:]).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert all(p.grad.abs().max() > 0 for p in model.parameters())
    assert losses[0] > 0.25  # the variance of what is to be repeated, and the best without the memory
    assert losses[-1] < 0.1


@pytest.mark.parametrize("form", ["parallel", "chunked", "recurrent"])
def test_gradients_through_a_state_under_function_transforms(form, generator, as_users_run_it):
    layer = randomise(TPRAttention.literal(4, 3, 5, form=form), generator).double()
    objects = torch.randn(2, 6, 4, 3, generator=generator, dtype=torch.float64).requires_grad_()

    def loss(sequence):
        _, state = layer.stream(sequence[:3])
        return layer.stream(sequence[3:], state)[0].square().sum()

    (expected,) = torch.autograd.grad(sum(map(loss, objects)), objects)
    found = {
        "vmap then backward": torch.autograd.grad(torch.vmap(loss)(objects).sum(), objects)[0],
        "vmap of grad": torch.vmap(torch.func.grad(loss))(objects),
        "grad of vmap": torch.func.grad(lambda x: torch.vmap(loss)(x).sum())(objects),
    }
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected, msg=lambda text, name=name: f"{name}: {text}")

    def slope(sequence):
        return torch.func.grad(loss)(sequence).square().sum()

    twice = torch.func.grad(slope)(objects[0])
    first = torch.autograd.grad(loss(objects[0]), objects, create_graph=True)[0][0]
    (wanted,) = torch.autograd.grad(first.square().sum(), objects)
    torch.testing.assert_close(twice, wanted[0])


def test_an_empty_batch_gives_every_parameter_a_gradient(make, generator):
    layer = make()
    layer(*inputs_of(layer, generator, batch=0)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() == 0 for p in layer.parameters())
