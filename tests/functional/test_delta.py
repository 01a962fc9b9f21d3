"""The delta rule: literal recurrence = chunks, in values and every gradient, with gates, keys, states and stretches."""

import subprocess
import sys
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.functional.test_factored import assert_close, gradients, inputs_of
from tpr_attention.functional import recall_delta
from tpr_attention.functional.kernels import delta_rule

FORMS = ["chunked", "recurrent"]


@contextmanager
def chunks(chunk, stretch, small):
    """Chunks small enough that short sequences have many, and ragged ones."""
    with (
        patch.object(delta_rule, "chunk_size", lambda width: chunk),
        patch.object(delta_rule, "_STRETCH", stretch),
        patch.object(delta_rule, "_SMALL", small),
    ):
        yield


def delta_by_definition(objects, match_role, match_filler, target_role, state, keys, gate, exclude_self):
    """The memory `[f ... f f]` of one head of one sequence, with an axis for every match."""
    heads, matches, filler_dim = match_filler.shape[-3:]
    fillers, memories = [], []
    for h in range(heads):
        memory = state[h].reshape([filler_dim] * (matches + 1))
        for t in range(objects.shape[0]):
            key, query = torch.ones(()).double(), torch.ones(()).double()
            for m in range(matches):
                key = key[..., None] * (match_role[h, m] @ keys[t])
                query = query[..., None] * match_filler[t, h, m]
            error = target_role[h] @ objects[t] - torch.tensordot(key, memory, matches)
            before, memory = memory, memory + gate[t, h % gate.shape[1]] * key[..., None] * error
            fillers.append(torch.tensordot(query, before if exclude_self else memory, matches))
        memories.append(memory.reshape(state.shape[1:]))
    return torch.stack(fillers).unflatten(0, (heads, -1)).transpose(0, 1), torch.stack(memories)


@st.composite
def problems(draw):
    size = st.integers(1, 3)
    return {
        "batch": draw(st.sampled_from([(), (2,), (2, 1)])),
        "t": draw(st.integers(1, 9)),
        **{axis: draw(size) for axis in ("r", "f", "h", "m")},
        "fixed_match": True,
        "fixed_target": True,
        "keys": draw(st.booleans()),
        "gate": draw(st.sampled_from(["none", "one", "heads"])),
        "exclude_self": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**31)),
        "chunks": (draw(st.integers(1, 4)), draw(st.sampled_from([1, 100])), draw(st.sampled_from([0, 32]))),
    }


def drawn(p):
    """Inputs, a memory that is not zero, keys, and gates with zeros among them."""
    inputs = inputs_of(p)
    g = torch.Generator().manual_seed(p["seed"] + 1)
    state = torch.randn(*p["batch"], p["h"], p["f"] ** p["m"], p["f"], generator=g, dtype=torch.float64)
    keys = torch.randn(inputs[0].shape, generator=g, dtype=torch.float64) if p["keys"] else None
    gate = None
    if p["gate"] != "none":
        shape = *p["batch"], p["t"], 1 if p["gate"] == "one" else p["h"]
        gate = torch.rand(shape, generator=g, dtype=torch.float64)
        gate = gate.where(torch.rand(shape, generator=g) < 0.7, 0).requires_grad_()
    if keys is not None:
        keys.requires_grad_()
    return inputs, state.requires_grad_(), keys, gate


@pytest.mark.parametrize("form", ["auto", *FORMS])
@given(p=problems())
def test_every_form_is_the_definition_in_values_and_gradients(form, p):
    inputs, state, keys, gate = drawn(p)
    every = [*inputs, state, *(x for x in (keys, gate) if x is not None)]
    with chunks(*p["chunks"]):
        options = {"keys": keys, "gate": gate, "exclude_self": p["exclude_self"]}
        outputs = recall_delta(*inputs, state, final_state=True, form=form, **options)
        found = [*outputs, *gradients(outputs, every, p["seed"])]
    objects, match_role, match_filler, target_role = inputs
    keys = objects if keys is None else keys
    gate = objects.new_ones(*objects.shape[:-2], 1) if gate is None else gate

    def flat(x, axes):
        return x.reshape(-1, *x.shape[-axes:]).unbind(0)

    expected = [
        delta_by_definition(o, match_role, q, target_role, s, k, g, p["exclude_self"])
        for o, q, s, k, g in zip(
            flat(objects, 3), flat(match_filler, 4), flat(state, 3), flat(keys, 3), flat(gate, 2), strict=True
        )
    ]
    expected = [torch.stack(x).reshape(y.shape) for x, y in zip(zip(*expected, strict=True), outputs, strict=True)]
    for result, wanted in zip(found, [*expected, *gradients(expected, every, p["seed"])], strict=True):
        assert_close(result, wanted)


@pytest.mark.parametrize("form", FORMS)
@given(p=problems(), cut=st.integers(1, 8))
def test_stretch_by_stretch_is_the_whole(form, p, cut):
    p = p | {"t": p["t"] + cut}
    inputs, state, keys, gate = drawn(p)
    objects, match_role, match_filler, target_role = inputs

    def part(at, state):
        return recall_delta(
            objects[..., at, :, :],
            match_role,
            match_filler[..., at, :, :, :],
            target_role,
            state,
            keys=None if keys is None else keys[..., at, :, :],
            gate=None if gate is None else gate[..., at, :],
            exclude_self=p["exclude_self"],
            final_state=True,
            form=form,
        )

    with chunks(*p["chunks"]):
        first, between = part(slice(cut), state)
        rest, after = part(slice(cut, None), between)
        outputs, whole = [torch.cat([first, rest], -3), after], part(slice(None), state)
        found, wanted = (gradients(x, [*inputs, state], p["seed"]) for x in (outputs, whole))
    for result, expected in zip([*outputs, *found], [*whole, *wanted], strict=True):
        assert_close(result, expected)


def fixed(normal, length, matches=1, r=3, f=4, batch=(2,)):
    return normal(*batch, length, r, f), normal(2, matches, r), normal(*batch, length, 2, matches, f), normal(2, r)


def unit(objects):
    return objects / objects.norm(dim=-1, keepdim=True)


@pytest.mark.parametrize(("matches", "f", "length"), [(1, 16, 300), (2, 7, 150)])
def test_chunk_sizes_as_they_are_used(matches, f, length, normal):
    inputs = fixed(normal, length, matches, f=f)
    one_hot = torch.eye(3, dtype=torch.float64)[:2].unsqueeze(1).expand(2, matches, 3)
    inputs = inputs[0], one_hot.clone().requires_grad_(), *inputs[2:]
    with patch.object(delta_rule, "_STRETCH", 2**14):
        results = []
        for form in FORMS:
            outputs = recall_delta(*inputs, keys=unit(inputs[0]), final_state=True, form=form)
            results.append([*outputs, *gradients(outputs, inputs, 0)])
    for found, expected in zip(*results, strict=True):
        assert_close(found, expected)


@pytest.mark.parametrize("length", [1, 5, 16, 17])
def test_one_chunk_without_a_state_of_its_own(length, normal):
    inputs = fixed(normal, length)
    found, expected = (gradients(recall_delta(*inputs, form=form)[:1], inputs, 0) for form in FORMS)
    for result, wanted in zip(found, expected, strict=True):
        assert_close(result, wanted)


@pytest.mark.parametrize("form", FORMS)
def test_the_last_write_under_a_key_counts(form, generator):
    """Pairs of orthonormal fillers as keys, 8 draws each: the memory answers with the last value of each."""
    codes = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=torch.float64)).Q
    which = torch.randint(16, (128,), generator=generator)
    values = torch.randn(128, 4, generator=generator, dtype=torch.float64)
    objects = torch.stack([codes[which // 4], codes[which % 4], values], 1)
    roles = torch.eye(3, dtype=torch.float64)
    asked = objects[:, None, :2]
    fillers, _ = recall_delta(objects, roles[None, :2], asked, roles[None, 2], exclude_self=True, form=form)
    for t in range(128):
        earlier = [values[s] for s in range(t) if which[s] == which[t]]
        assert_close(fillers[t, 0], earlier[-1] if earlier else torch.zeros(4, dtype=torch.float64))


def test_unit_keys_stay_bounded_in_float32(generator):
    """Keys that nearly agree, 4,096 of them, with gates of one: the recurrence in float64 is the judge."""
    objects = torch.randn(4096, 2, 16, generator=generator, dtype=torch.float64)
    objects[:, 0] = unit(objects[:1, 0] + 0.1 * objects[:, 0])
    roles = torch.eye(2, dtype=torch.float64)
    inputs = objects, roles[None, :1], objects[:, None, :1], roles[None, 1]
    expected, _ = recall_delta(*inputs, form="recurrent")
    found, _ = recall_delta(*(x.float() for x in inputs), form="chunked")
    assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("matches", [1, 2])
def test_second_derivatives_and_batched_gradients_of_the_chunked_form(matches, normal):
    inputs = *fixed(normal, 5, matches, r=2, f=2, batch=(1,)), normal(1, 2, 2**matches, 2), normal(1, 5, 1)

    def function(*x):
        return recall_delta(*x[:5], gate=x[5], final_state=True, form="chunked")

    for small in (0, 32):
        with chunks(2, 4, small):
            assert torch.autograd.gradcheck(function, inputs, check_batched_grad=True, fast_mode=True)
            assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("form", ["auto", *FORMS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision_stays_at_the_rounding_of_the_inputs(form, dtype, normal):
    inputs = [x.detach().to(dtype).requires_grad_() for x in fixed(normal, 40)]
    inputs[0] = (0.3 * inputs[0].detach()).requires_grad_()
    fillers, state = recall_delta(*inputs, final_state=True, form=form)
    expected, _ = recall_delta(*(x.double() for x in inputs))
    assert fillers.dtype == dtype
    assert state.dtype == torch.float32
    tolerance = 1e-5 if dtype == torch.float32 else 4e-3
    assert_close(fillers.double(), expected, rtol=tolerance, atol=tolerance)
    fillers.sum().backward()
    assert all(x.grad.dtype == dtype for x in inputs)


COMPILE = """
import torch
from tpr_attention.functional import recall_delta

def function(*inputs):
    return recall_delta(*inputs[:4], gate=inputs[4], form="chunked")[0]

torch.manual_seed(0)
shapes = (2, 40, 3, 4), (2, 2, 3), (2, 40, 2, 2, 4), (2, 3), (2, 40, 2)
inputs = [(0.3 * torch.randn(shape, dtype=torch.float64)).requires_grad_() for shape in shapes]
outputs = [f(*inputs) for f in (function, torch.compile(function, fullgraph=True, backend="aot_eager"))]
torch.testing.assert_close(*outputs)
torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), inputs) for y in outputs))
"""


def test_compiles_into_one_graph():
    """In an interpreter of its own: the checks of the import hook do not compile."""
    run = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_an_empty_batch_gives_an_empty_answer(normal):
    inputs = fixed(normal, 3, batch=(0,))
    for form in FORMS:
        fillers, state = recall_delta(*inputs, final_state=True, form=form)
        assert fillers.shape == (0, 3, 2, 4)
        assert state.shape == (0, 2, 4, 4)
        assert all(x is not None for x in torch.autograd.grad(fillers.sum(), inputs))


def test_errors_name_the_argument(normal):
    inputs = fixed(normal, 3)
    wrong = [
        ({"gate": normal(2, 3, 3)}, ValueError, "gate: expected g=1 or g=2, got g=3"),
        ({"state": normal(2, 2, 5, 4)}, ValueError, "state: expected torch.float64"),
        ({"form": "parallel"}, ValueError, "form: expected one of"),
        ({"keys": inputs[0].float()}, TypeError, "keys: expected torch.float64"),
    ]
    for options, error, message in wrong:
        with pytest.raises(error, match=message):
            recall_delta(*inputs, **options)
    with pytest.raises(ValueError, match="match_role: expected"):
        recall_delta(inputs[0], normal(2, 3, 2, 1, 3), *inputs[2:])
    with pytest.raises(ValueError, match="at least one entry along t"):
        recall_delta(inputs[0][:, :0], inputs[1], inputs[2][:, :0], inputs[3])
