"""Replacement in the shared memory: the literal definition, and what it promises for orthonormal ids."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.functional.definition import with_all_axes
from tests.functional.test_factored import assert_close, gradients, inputs_of
from tpr_attention.functional import extract, match, memorise, recall, recall_replace


def replace_by_definition(objects, match_role, match_filler, target_role, id_role, state, gate, exclude_self):
    """The paper's functions on the paper's memory `[*batch r f r f]`."""
    batch, (length, *size) = objects.shape[:-3], objects.shape[-3:]
    memory = state.reshape(*batch, *size, *size)
    fillers = []
    for t in range(length):
        new = objects[..., t, :, :]
        role = id_role.expand(*batch, -1)
        old = match(memory, role, extract(new, role))
        written = memorise(new.unsqueeze(-3)) - memorise(old.unsqueeze(-3))
        before, memory = memory, memory + gate[..., t, :, None, None, None] * written
        for h in range(match_filler.shape[-3]):
            read = before if exclude_self else memory
            found = match(read, match_role[..., t, h, 0, :], match_filler[..., t, h, 0, :])
            fillers.append(extract(found, target_role[..., t, h, :]))
    return torch.stack(fillers, -2).unflatten(-2, (length, -1)), memory.reshape(state.shape)


@st.composite
def problems(draw):
    size = st.integers(1, 3)
    return {
        "batch": draw(st.sampled_from([(), (2,), (2, 1)])),
        "t": draw(st.integers(1, 6)),
        **{axis: draw(size) for axis in ("r", "f", "h")},
        "m": 1,
        "fixed_match": draw(st.booleans()),
        "fixed_target": draw(st.booleans()),
        "exclude_self": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**31)),
    }


def drawn(p):
    """Inputs, an id role, half of a symmetric memory that is not zero, and gates with zeros among them."""
    inputs = inputs_of(p)
    g = torch.Generator().manual_seed(p["seed"] + 1)
    width = p["r"] * p["f"]
    id_role = torch.rand(p["r"], generator=g, dtype=torch.float64) / p["r"]
    state = torch.rand(*p["batch"], width, width, generator=g, dtype=torch.float64) / width
    gate = torch.rand(*p["batch"], p["t"], 1, generator=g, dtype=torch.float64)
    gate = gate.where(torch.rand(gate.shape, generator=g) < 0.7, 0)
    scaled = (inputs[0].detach() / 3).requires_grad_(), *inputs[1:]
    return scaled, id_role.requires_grad_(), state.requires_grad_(), gate.requires_grad_()


@given(p=problems())
def test_recall_is_the_definition_in_values_and_gradients(p):
    inputs, id_role, half, gate = drawn(p)
    state = half + half.mT
    objects, match_role, match_filler, target_role = inputs
    every = [*inputs, id_role, half, gate]
    options = {"gate": gate, "exclude_self": p["exclude_self"]}
    outputs = recall_replace(*inputs, id_role, state, final_state=True, **options)
    roles = with_all_axes(objects, match_role, target_role)
    expected = replace_by_definition(objects, roles[0], match_filler, roles[1], id_role, state, *options.values())
    found, wanted = gradients(outputs, every, p["seed"]), gradients(expected, every, p["seed"])
    for result, by_definition in zip([*outputs, *found], [*expected, *wanted], strict=True):
        assert_close(result, by_definition)


@given(p=problems(), cut=st.integers(1, 4))
def test_stretch_by_stretch_is_the_whole(p, cut):
    p = p | {"t": p["t"] + cut, "fixed_match": True, "fixed_target": True}
    (objects, match_role, match_filler, target_role), id_role, state, gate = drawn(p)

    def part(at, state):
        query = match_role, match_filler[..., at, :, :, :], target_role
        options = {"gate": gate[..., at, :], "exclude_self": p["exclude_self"], "final_state": True}
        return recall_replace(objects[..., at, :, :], *query, id_role, state, **options)

    first, between = part(slice(cut), state)
    rest, after = part(slice(cut, None), between)
    whole, after_whole = part(slice(None), state)
    assert_close(torch.cat([first, rest], -3), whole)
    assert_close(after, after_whole)


def test_with_orthonormal_ids_the_last_object_of_each_id_is_stored(generator):
    """20 draws an id, then matched by any role, against the paper's memory of the last objects."""
    ids, draws, size = 8, 160, 8
    codes = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64)).Q
    which = torch.randint(ids, (draws,), generator=generator)
    objects = torch.randn(draws, 3, size, generator=generator, dtype=torch.float64)
    objects[:, 0] = codes[which]
    queries = torch.eye(3, dtype=torch.float64)[:, None], objects[:, :, None].clone(), torch.eye(3).double().roll(1, 0)
    fillers, state = recall_replace(objects, *queries, queries[0][0, 0], final_state=True)
    last = torch.stack([objects[which == k][-1] for k in range(ids) if (which == k).any()])
    assert_close(state.reshape(3, size, 3, size), memorise(last))
    asked = [x.expand(last.shape[0], *x.shape) for x in (queries[0], queries[2])]
    expected, _ = recall(last, asked[0], queries[1][-1:].expand(len(last), -1, -1, -1), asked[1], causal=False)
    assert_close(fillers[-1], expected[0])


def test_lower_precision_and_gates_of_zero(normal):
    inputs = [x.detach().bfloat16() for x in (normal(2, 6, 2, 3), normal(4, 1, 2), normal(2, 6, 4, 1, 3), normal(4, 2))]
    id_role = torch.tensor([1.0, 0.0], dtype=torch.bfloat16)
    gate = torch.zeros(2, 6, 1, dtype=torch.bfloat16)
    fillers, state = recall_replace(*inputs, id_role, gate=gate, final_state=True)
    assert fillers.dtype == torch.bfloat16
    assert state.dtype == torch.float32
    assert fillers.count_nonzero() == state.count_nonzero() == 0
    assert recall_replace(*inputs, id_role)[1] is None


def test_an_empty_batch_gives_an_empty_answer(normal):
    inputs = normal(0, 3, 2, 2), normal(4, 1, 2), normal(0, 3, 4, 1, 2), normal(4, 2), normal(2)
    fillers, state = recall_replace(*inputs, final_state=True)
    assert fillers.shape == (0, 3, 4, 2)
    assert state.shape == (0, 4, 4)
    assert all(x is not None for x in torch.autograd.grad(fillers.sum(), inputs))


def test_errors_name_the_argument(normal):
    inputs = normal(2, 3, 2, 2), normal(4, 1, 2), normal(2, 3, 4, 1, 2), normal(4, 2), normal(2)
    with pytest.raises(ValueError, match="gate: expected g=1"):
        recall_replace(*inputs, gate=normal(2, 3, 4))
    with pytest.raises(ValueError, match=r"state: expected torch.float64 .* of shape \[2, 4, 4\]"):
        recall_replace(*inputs, normal(2, 5, 4))
    with pytest.raises(ValueError, match="match_filler: expected one match"):
        recall_replace(inputs[0], normal(4, 2, 2), normal(2, 3, 4, 2, 2), *inputs[3:])
    with pytest.raises(ValueError, match="at least one entry along t"):
        recall_replace(normal(2, 0, 2, 2), inputs[1], normal(2, 0, 4, 1, 2), *inputs[3:])
