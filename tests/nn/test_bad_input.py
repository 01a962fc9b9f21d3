"""What a layer cannot use is refused by the layer: the error names the argument, what was expected and what came."""

import math

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

from tpr_attention.nn import (
    ActionHeads,
    ActionTPRAttention,
    ActionTPRBlock,
    ActionTPRStack,
    FixedRoleQueries,
    HigherOrderActionTPRAttention,
    LinearQueries,
    State,
    TemplateDecoder,
    TPRAttention,
)

pytestmark = pytest.mark.usefixtures("as_users_run_it")

OBJECT = {"num_roles": 4, "filler_dim": 3, "num_heads": 5}
ACTION = {"num_actions": 6, **OBJECT}
LAYERS = {
    TPRAttention: (OBJECT, ["num_matches"]),
    LinearQueries: (OBJECT, ["num_matches"]),
    FixedRoleQueries: (OBJECT, ["num_matches"]),
    ActionTPRAttention: (ACTION, ["num_objects"]),
    HigherOrderActionTPRAttention: (ACTION, ["num_objects", "order"]),
}
COUNTS = [(layer, name) for layer, (sizes, others) in LAYERS.items() for name in [*sizes, *others]]
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.fixture(params=LAYERS, ids=lambda layer: layer.__name__)
def make(request):
    sizes, _ = LAYERS[request.param]
    return lambda **options: request.param(**(sizes | options))


def refused(error, *words):
    """An error of ours that has these words in this order, and comes from no one else."""
    return pytest.raises(error, match=r"(?s)^" + ".*".join(words))


@pytest.mark.parametrize(("layer", "name"), COUNTS, ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_counts(layer, name):
    sizes, _ = LAYERS[layer]
    for count in (True, 2.0, math.nan, "3", None, [3], 3 + 0j, np.float32(2), torch.tensor(3)):
        with refused(TypeError, f"{name}: expected a whole number, got "):
            layer(**(sizes | {name: count}))
    for count in (0, -1, -(2**63), np.int64(0)):
        with refused(ValueError, f"{name}: expected at least 1, got {count}$"):
            layer(**(sizes | {name: count}))
    for device in ("cpu", "meta"):
        limited = {"num_matches": 1000, "order": 62}.get(name)
        fit = f".*{name}=10+.*: expected sizes whose numbers fit into .* GB of memory, got .* numbers that need .* GB$"
        with refused(ValueError, f"{name}: expected at most {limited}, got 10+$" if limited else fit):
            layer(**(sizes | {name: 10**30}), device=device)


@pytest.mark.parametrize("sizes", [{"num_heads": 2**40}, {"num_roles": 2**40}, {"filler_dim": 2**40}])
def test_parameters_that_no_machine_holds(make, sizes):
    (name, size) = next(iter(sizes.items()))
    with refused(ValueError, f".*{name}={size}", "expected sizes whose numbers fit into", "numbers that need"):
        make(**sizes)


def test_the_tensor_product_of_too_many_fillers():
    with refused(ValueError, "num_actions=6", "order=60: expected sizes whose numbers fit into"):
        HigherOrderActionTPRAttention(**ACTION, order=60)


def test_what_has_no_numbers_may_be_larger_than_the_machine(make):
    sizes = {"num_heads": 10**10}
    assert next(make(**sizes, device="meta").parameters()).is_meta
    with FakeTensorMode():
        assert next(make(**sizes).parameters()).numel() > 10**10


def test_counts_of_numpy_become_those_of_python(make):
    layer = make(num_roles=np.int8(100), filler_dim=np.int16(3))
    assert type(layer.num_roles) is int
    assert type(layer.filler_dim) is int
    assert all(parameter.isfinite().all() for parameter in layer.parameters())


@pytest.mark.parametrize(
    "dtype",
    ["float32", float, np.float32, np.dtype("float32"), torch.int64, torch.bool, torch.complex64, 5, *FP8],
)
def test_dtypes(make, dtype):
    with refused(TypeError, "dtype: expected a floating-point dtype of 16, 32 or 64 bits such as torch.float32, got "):
        make(dtype=dtype)


@pytest.mark.parametrize("device", ["gpu", "", 3.5, [], torch.float32])
def test_devices(make, device):
    with refused(ValueError, "device: expected a device of torch such as 'cpu' or 'cuda:0', got "):
        make(device=device)


@pytest.mark.parametrize("generator", [0, "0", np.random.default_rng(0)])
def test_a_seed_is_no_generator(make, generator):
    with refused(TypeError, "generator: expected a torch.Generator or None, got "):
        make().reset_parameters(generator)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"normalise": np.array(["rms"])}, ValueError, "normalise: expected None or one of"),
        ({"normalise": torch.ones(2)}, ValueError, "normalise: expected None or one of"),
        ({"form": ["auto"]}, ValueError, "form: expected one of"),
        ({"form": None}, ValueError, "form: expected one of .* got None"),
        ({"causal": 1}, TypeError, "causal: expected True or False, got 1"),
        ({"queries": LinearQueries}, TypeError, "queries: expected a module"),
    ],
)
def test_options(options, error, words):
    with refused(error, words):
        TPRAttention(**OBJECT, **options)


def unusable(*shape):
    """What stands in the place of a float32 tensor of this shape, and words of the error."""
    ones = torch.ones(shape)
    return [
        *((other, TypeError, "expected a tensor") for other in (None, 3, "x", ones.numpy(), ones.tolist())),
        *(
            (ones.to(dtype), TypeError, f"expected a floating-point tensor .* got {dtype}")
            for dtype in (torch.int64, torch.bool, torch.complex64, *FP8)
        ),
        *((ones.to(dtype), TypeError, f"expected .* got {dtype}") for dtype in (torch.float64, torch.float16)),
        (ones.to("meta"), TypeError, "expected .* on cpu as .* on meta"),
        (ones.to_sparse(), TypeError, "expected a dense tensor .* got torch.sparse_coo"),
        (torch.nested.nested_tensor([ones], layout=torch.jagged), TypeError, "expected a dense tensor .* got a nested"),
        *(
            (torch.ones(wrong), ValueError, f"expected .* got shape .{', '.join(map(str, wrong))}.")
            for wrong in ((), shape[-1:], shape[1:-1], (*shape[:-1], shape[-1] + 1), (*shape[:-1], 1), (*shape[:-1], 0))
        ),
    ]


STREAMING = {
    "linear": lambda: TPRAttention.literal(**OBJECT),
    "fixed": lambda: TPRAttention(**OBJECT, queries=FixedRoleQueries(**OBJECT), normalise="count"),
}


@pytest.mark.parametrize("kind", STREAMING)
def test_objects(kind):
    layer = STREAMING[kind]()
    _, state = layer.stream(torch.ones(2, 7, 4, 3))
    calls = layer, layer.inspect, layer.stream, lambda objects: layer.stream(objects, state), layer.queries
    for objects, error, words in unusable(2, 7, 4, 3):
        for call in calls:
            with refused(error, f"objects: {words}"):
                call(objects)
    for obj, error, words in unusable(2, 4, 3):
        with refused(error, f"obj(ects)?: {words}"):
            layer.step(obj, state)


def heads():
    block = ActionTPRBlock(ActionTPRAttention(**ACTION), HigherOrderActionTPRAttention(**ACTION))
    return [*block.heads, block, ActionTPRStack(block)]


@pytest.mark.parametrize("number", range(4))
def test_objects_and_actions(number):
    layer, objects, action = heads()[number], torch.ones(2, 2, 4, 3), torch.ones(2, 6)
    for other, error, words in unusable(2, 2, 4, 3):
        with refused(error, f"objects: {words}"):
            layer(other, action)
    others = [(torch.ones(size, 6), ValueError, r"expected .*batch=.2., got shape") for size in (1, 3)]
    for other, error, words in [*unusable(2, 6), *others]:
        with refused(error, f"action: {words}"):
            layer(objects, other)
        if not isinstance(layer, ActionTPRStack):
            with refused(error, f"action: {words}"):
                layer.write(layer.read(objects, action), other)
    if isinstance(layer, ActionHeads):
        for other, error, words in unusable(*layer.read(objects, action).shape):
            with refused(error, f"(found|filler_map|action): {words}"):
                layer.write(other, action)
        with refused(TypeError, "learn_roles: expected True or False, got 'no'"):
            layer.write(layer.read(objects, action), action, learn_roles="no")


def test_a_block_writes_what_it_found():
    block = heads()[2]
    with refused(TypeError, "found: expected a list of what `read` found, got NoneType"):
        block.write(None, torch.ones(2, 6))
    with refused(ValueError, "found: expected one tensor for each of 2 kinds of heads, got 1"):
        block.write([torch.ones(2, 5, 3)], torch.ones(2, 6))


@pytest.mark.parametrize("kind", STREAMING)
def test_states(kind):
    layer, objects = STREAMING[kind](), torch.ones(2, 7, 4, 3)
    _, (memory, length) = layer.stream(objects)
    for state in ("x", 3, (memory, length), {}, memory):
        with refused(TypeError, "state: expected a State from this layer's stream or step, got "):
            layer.stream(objects, state)
    for other, _, _ in [*unusable(*memory.shape), (memory[:1], None, None), (memory[0], None, None)]:
        with refused((TypeError, ValueError), r"state(.memory)?: expected .* got "):
            layer.stream(objects, State(other, length))
    whole = [length.to(dtype) for dtype in (torch.uint8, torch.int8, torch.int32, torch.bool)]
    for other in (
        None,
        3,
        3.0,
        np.int64(3),
        *whole,
        length.float(),
        length[0],
        length.to("meta"),
        length * math.nan,
    ):
        with refused(
            TypeError, r"state.length: expected whole numbers as a torch.int64 tensor of shape .2. on cpu, got"
        ):
            layer.stream(objects, State(memory, other))


@pytest.mark.parametrize("kind", STREAMING)
def test_lengths_of_a_state_that_wrapped_around_or_would(kind):
    layer, objects, longest = STREAMING[kind](), torch.ones(2, 7, 4, 3), 2**63 - 1
    _, (memory, _) = layer.stream(objects)
    for length in (-1, -(2**63), longest, longest - 6):
        with refused(ValueError, f"state.length: expected 0 to {longest} objects with those to come, got {length}$"):
            layer.stream(objects, State(memory, torch.tensor([7, length])))
    assert layer.stream(objects, State(memory, torch.tensor([0, longest - 7])))[1].length.tolist() == [7, longest]


@pytest.mark.parametrize("kind", STREAMING)
def test_a_length_that_cannot_be_read_breaks_nothing(kind):
    layer, objects = STREAMING[kind](), torch.randn(3, 2, 7, 4, 3, generator=torch.Generator().manual_seed(0))
    memories = torch.stack([layer.stream(one)[1].memory for one in objects]).detach()
    lengths = torch.tensor([[7, 7], [8, 0], [9, 9]])

    def stream(one, memory, length):
        output, state = layer.stream(one, State(memory, length))
        return output, state.length

    outputs, after = torch.vmap(stream)(objects, memories, lengths)
    assert after.tolist() == [[14, 14], [15, 7], [16, 16]]
    torch.testing.assert_close(outputs[1], stream(objects[1], memories[1], lengths[1])[0])
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = stream(*(mode.from_tensor(x) for x in (objects[1], memories[1], lengths[1])))
    assert fake[0].shape == outputs[1].shape


def test_queries_in_another_dtype_or_place():
    for queries in (LinearQueries, FixedRoleQueries):
        for options in ({"dtype": torch.float64}, {"device": "meta"}):
            layer = TPRAttention(**OBJECT, queries=queries(**OBJECT, **options))
            with refused(TypeError, "objects: expected .* as match_filler.weight has, got torch.float32 on cpu"):
                layer(torch.ones(2, 7, 4, 3))


@pytest.mark.parametrize("number", range(2))
def test_what_autocast_does_not_cast(number):
    make = (lambda: TPRAttention(**OBJECT), lambda: ActionTPRAttention(**ACTION, num_objects=7))[number]
    inputs = (torch.ones(2, 7, 4, 3), torch.ones(2, 6))[: number + 1]
    with torch.autocast("cpu", torch.bfloat16):
        with refused(TypeError, "objects: expected torch.float32 on cpu as filler_map has, got torch.float64"):
            make()(*(x.double() for x in inputs))
        with refused(TypeError, "filler_map: expected a floating-point tensor of .* got torch.float8_e4m3fn"):
            make().to(torch.float8_e4m3fn)(*inputs)
        assert make().double()(*(x.double() for x in inputs)).dtype == torch.float64


def test_a_conjunction_whose_memory_no_machine_holds():
    objects = torch.ones(2, 3, 6, 3)
    layer = TPRAttention.literal(6, 3, 1, num_matches=40)
    assert layer(objects).shape == objects.shape  # which builds no memory
    with refused(ValueError, "num_roles=6, filler_dim=3, num_matches=40: expected sizes whose numbers fit into"):
        layer.stream(objects)


@pytest.mark.parametrize(("role", "value"), [(1, torch.nan), (2, torch.nan), (3, torch.nan), (1, torch.inf), (1, 1e30)])
def test_what_is_not_finite_stays_so_and_does_not_end_the_process(role, value, generator):
    """A coordinate that is no number ends the process in the backward of `grid_sample`."""
    decoder = TemplateDecoder(16, 1, 4, resolution=9)
    objects = torch.randn(2, 5, 4, generator=generator)
    objects[0, role, 0] = value
    images = decoder(objects.requires_grad_())
    images.sum().backward()
    assert not images[0].isfinite().any() or value == 1e30
    assert images[1].isfinite().all()
