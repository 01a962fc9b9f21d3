"""Definition = parallel = chunked = recurrent: values and every gradient, odd sizes, with an initial state."""

from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.functional.definition import recall_by_definition, with_all_axes
from tpr_attention.functional import memorise, recall, state_shape
from tpr_attention.functional.factored import FORMS
from tpr_attention.functional.kernels import sweep


@contextmanager
def chunks(chunk, in_block, keep):
    """Chunks small enough that short sequences have many, and ragged ones."""
    with (
        patch.object(sweep, "chunk_size", lambda width, readers: chunk),
        patch.object(sweep, "_chunks_in_block", lambda width: in_block),
        patch.object(sweep, "_KEEP_READOUT", keep),
    ):
        yield


def gradients(outputs, inputs, seed):
    """Gradients of one random linear functional of the outputs."""
    g = torch.Generator().manual_seed(seed)
    weights = [torch.randn(y.shape, generator=g, dtype=y.dtype) for y in outputs]
    found = torch.autograd.grad(outputs, inputs, weights, allow_unused=True)
    return [torch.zeros_like(x) if y is None else y for x, y in zip(inputs, found, strict=True)]


def assert_close(found, expected, **tolerance):
    scale = max(float(expected.detach().abs().max()), 1.0) if expected.numel() else 1.0
    torch.testing.assert_close(found / scale, expected / scale, **({"rtol": 1e-10, "atol": 1e-10} | tolerance))


@st.composite
def problems(draw):
    size = st.integers(1, 4)
    shape = {
        "batch": draw(st.sampled_from([(), (2,), (2, 1)])),
        "t": draw(st.integers(1, 9)),
        "r": draw(size),
        "f": draw(size),
        "h": draw(st.integers(1, 3)),
        "m": draw(st.integers(1, 3)),
    }
    return {
        **shape,
        "fixed_match": draw(st.booleans()),
        "fixed_target": draw(st.booleans()),
        "causal": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**31)),
        "chunks": (draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.sampled_from([0, 16]))),
    }


def inputs_of(p, length=None):
    g = torch.Generator().manual_seed(p["seed"])
    length = p["t"] if length is None else length

    def normal(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()

    every = (*p["batch"], length)
    return (
        normal(*every, p["r"], p["f"]),
        normal(*(() if p["fixed_match"] else every), p["h"], p["m"], p["r"]),
        normal(*every, p["h"], p["m"], p["f"]),
        normal(*(() if p["fixed_target"] else every), p["h"], p["r"]),
    )


@pytest.mark.parametrize("form", ["auto", *FORMS])
@given(p=problems())
def test_every_form_is_the_definition_in_values_and_gradients(form, p):
    inputs = inputs_of(p)
    objects, match_role, match_filler, target_role = inputs
    with chunks(*p["chunks"]):
        fillers, _ = recall(*inputs, causal=p["causal"], form=form)
        found = gradients([fillers], inputs, p["seed"])
    roles = with_all_axes(objects, match_role, target_role)
    expected = recall_by_definition(objects, roles[0], match_filler, roles[1], causal=p["causal"])
    assert_close(fillers, expected)
    for gradient, wanted in zip(found, gradients([expected], inputs, p["seed"]), strict=True):
        assert_close(gradient, wanted)


@pytest.mark.parametrize("form", list(FORMS))
@given(p=problems(), cut=st.integers(1, 8))
def test_a_state_carries_the_past_with_its_gradients(form, p, cut):
    p = p | {"t": p["t"] + cut, "causal": True}
    inputs = inputs_of(p)
    objects, match_role, match_filler, target_role = inputs

    def part(at):
        return (
            objects[..., at, :, :],
            match_role if p["fixed_match"] else match_role[..., at, :, :, :],
            match_filler[..., at, :, :, :],
            target_role if p["fixed_target"] else target_role[..., at, :, :],
        )

    with chunks(*p["chunks"]):
        first, state = recall(*part(slice(cut)), form=form)
        rest, after = recall(*part(slice(cut, None)), state, form=form)
        whole, after_whole = recall(*inputs, form="recurrent")
        outputs = [torch.cat([first, rest], -3), after]
        found = gradients(outputs, inputs, p["seed"])
    for output, wanted in zip(outputs, [whole, after_whole], strict=True):
        assert_close(output, wanted)
    for gradient, wanted in zip(found, gradients([whole, after_whole], inputs, p["seed"]), strict=True):
        assert_close(gradient, wanted)


@pytest.mark.parametrize("causal", [True, False])
@given(p=problems())
def test_forms_agree_from_any_initial_state(causal, p):
    inputs = inputs_of(p)
    fixed = p["fixed_match"] and p["fixed_target"]
    shape = state_shape(p["r"], p["f"], num_matches=p["m"], heads=p["h"] if fixed else None)
    g = torch.Generator().manual_seed(p["seed"] + 1)
    state = torch.randn(*p["batch"], *shape, generator=g, dtype=torch.float64).requires_grad_()
    results = []
    for form in FORMS:
        with chunks(*p["chunks"]):
            outputs = recall(*inputs, state, causal=causal, form=form)
            results.append([*outputs, *gradients(outputs, [*inputs, state], p["seed"])])
    for result in results[1:]:
        for found, expected in zip(result, results[0], strict=True):
            assert_close(found, expected)


def test_the_state_of_one_match_is_the_memory_of_the_paper(normal):
    objects = normal(2, 5, 3, 2)
    queries = normal(2, 5, 4, 1, 3), normal(2, 5, 4, 1, 2), normal(2, 5, 4, 3)
    for form in FORMS:
        _, state = recall(objects, *queries, form=form)
        torch.testing.assert_close(state.unflatten(-1, (3, 2)).unflatten(-3, (3, 2)), memorise(objects))


@pytest.mark.parametrize(("r", "f", "length"), [(6, 3, 130), (5, 13, 270), (17, 16, 300)])
def test_chunk_sizes_as_they_are_used(r, f, length, normal):
    """One ragged sequence for each of the three sizes of chunk, against the recurrence."""
    inputs = normal(2, length, r, f), normal(2, length, 3, 1, r), normal(2, length, 3, 1, f), normal(2, length, 3, r)
    for keep in (0, 10**6):
        with patch.object(sweep, "_KEEP_READOUT", keep):
            outputs = recall(*inputs, form="chunked")
            found = [*outputs, *gradients(outputs, inputs, 0)]
        outputs = recall(*inputs, form="recurrent")
        for result, expected in zip(found, [*outputs, *gradients(outputs, inputs, 0)], strict=True):
            assert_close(result, expected)


@pytest.mark.parametrize("keep", [0, 16])
def test_second_derivatives_of_the_chunked_form(keep, normal):
    inputs = normal(1, 5, 2, 2), normal(1, 5, 2, 1, 2), normal(1, 5, 2, 1, 2), normal(1, 5, 2, 2), normal(1, 4, 4)
    with chunks(2, 1, keep):
        assert torch.autograd.gradgradcheck(lambda *x: recall(*x, form="chunked"), inputs)


@pytest.mark.parametrize("form", ["auto", *FORMS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision_stays_at_the_rounding_of_the_inputs(form, dtype, normal):
    inputs = normal(2, 40, 4, 3), normal(2, 40, 3, 1, 4), normal(2, 40, 3, 1, 3), normal(2, 40, 3, 4)
    rounded = [x.detach().to(dtype).requires_grad_() for x in inputs]
    fillers, state = recall(*rounded, form=form)
    expected, _ = recall(*(x.double() for x in rounded))
    assert fillers.dtype == dtype
    assert state.dtype == torch.float32
    tolerance = 2e-6 if dtype == torch.float32 else 4e-3
    assert_close(fillers.double(), expected, rtol=tolerance, atol=tolerance)
    fillers.sum().backward()
    assert all(x.grad.dtype == dtype for x in rounded)


@pytest.mark.parametrize("form", ["chunked", "recurrent"])
def test_a_bfloat16_sequence_does_not_stall(form):
    """A bfloat16 running sum of ones stops at 256."""
    length = 600
    ones = torch.ones(length, 1, 1, dtype=torch.bfloat16)
    _, state = recall(ones, ones[:, None, None, 0], ones[:, None, None, 0], ones[:, :1, 0, None], form=form)
    assert state.item() == length


def test_the_parallel_form_is_chosen_while_the_sequence_is_short(normal):
    def chosen(length, r, f):
        inputs = normal(length, r, f), normal(length, 4, 1, r), normal(length, 4, 1, f), normal(length, 4, r)
        calls = []
        spies = {name: lambda *a, name=name, form=form: calls.append(name) or form(*a) for name, form in FORMS.items()}
        with patch.dict(FORMS, spies):
            recall(*inputs)
        return calls

    assert chosen(16, 8, 16) == ["parallel"]
    assert chosen(64, 16, 32) == ["parallel"]
    assert chosen(1024, 6, 3) == ["chunked"]
    assert chosen(1024, 8, 16) == ["chunked"]


@pytest.mark.parametrize("form", ["auto", *FORMS])
@pytest.mark.parametrize("length", [3, 400])
def test_the_final_state_is_given_only_when_asked_for(form, length, normal):
    inputs = normal(length, 3, 2), normal(length, 4, 1, 3), normal(length, 4, 1, 2), normal(length, 4, 3)
    assert recall(*inputs, form=form, final_state=False)[1] is None
    assert recall(*inputs, form=form)[1].shape == (6, 6)


def test_a_sequence_of_data_gives_the_same_gradients_to_the_queries(normal):
    """Without a gradient for the objects, the sweep skips what only they need."""
    inputs = normal(2, 40, 3, 2), normal(2, 40, 4, 1, 3), normal(2, 40, 4, 1, 2), normal(2, 40, 4, 3)
    expected = gradients(recall(*inputs, form="chunked")[:1], inputs[1:], 0)
    outputs = recall(inputs[0].detach(), *inputs[1:], form="chunked")
    assert not outputs[1].requires_grad
    for found, wanted in zip(gradients(outputs[:1], inputs[1:], 0), expected, strict=True):
        assert_close(found, wanted)


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.filterwarnings("ignore:Please use `torch.vmap`:FutureWarning")  # of gradcheck itself, in torch 2.6
def test_batched_gradients(form, normal):
    inputs = normal(1, 5, 2, 2), normal(1, 5, 2, 1, 2), normal(1, 5, 2, 1, 2), normal(1, 5, 2, 2)
    with chunks(2, 1, 16):
        assert torch.autograd.gradcheck(lambda *x: recall(*x, form=form), inputs, check_batched_grad=True)


def test_an_empty_batch_gives_an_empty_answer(normal):
    for form in FORMS:
        fillers, state = recall(
            normal(0, 3, 2, 2), normal(0, 3, 4, 1, 2), normal(0, 3, 4, 1, 2), normal(0, 3, 4, 2), form=form
        )
        assert fillers.shape == (0, 3, 4, 2)
        assert state.shape == (0, 4, 4)
