"""Keys, gates, positions that do not see themselves, and reading elsewhere: all forms against the definition."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.functional.definition import read_by_definition, recall_by_definition, with_all_axes
from tests.functional.test_factored import assert_close, chunks, gradients, inputs_of, problems
from tpr_attention.functional import read, recall, state_shape
from tpr_attention.functional.factored import FORMS
from tpr_attention.functional.forms import cheapest_read


def drawn(seed, *shape):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()


@st.composite
def written(draw):
    """A problem, and what `recall` may be told of how objects are written and seen."""
    p = draw(problems())
    fixed = p["fixed_match"] and p["fixed_target"]
    every = (*p["batch"], p["t"])
    keys = drawn(p["seed"] + 1, *every, p["r"], p["f"]) if draw(st.booleans()) else None
    g = draw(st.sampled_from([None, 1, *([p["h"]] if fixed else [])]))
    gate = None if g is None else drawn(p["seed"] + 2, *every, g)
    return p, keys, gate


def seen_by(length, causal, exclude_self):
    visible = torch.ones(length, length, dtype=torch.bool)
    return (visible.tril() if causal else visible) & ~(torch.eye(length, dtype=torch.bool) & exclude_self)


def assert_same(found, expected, inputs, seed):
    inputs = [x for x in inputs if x is not None]
    for output, wanted in zip(found, expected, strict=True):
        assert_close(output, wanted)
    for gradient, wanted in zip(gradients(found, inputs, seed), gradients(expected, inputs, seed), strict=True):
        assert_close(gradient, wanted)


@given(p=problems())
def test_the_definition_by_scores_is_that_by_memories(p):
    objects, match_role, match_filler, target_role = inputs_of(p)
    roles = with_all_axes(objects, match_role, target_role)
    asked = roles[0], match_filler, roles[1]
    visible = seen_by(p["t"], p["causal"], False)
    found = read_by_definition(objects, *asked, visible=visible)
    assert_close(found, recall_by_definition(objects, *asked, causal=p["causal"]))


@pytest.mark.parametrize("form", ["auto", *FORMS])
@given(problem=written(), exclude_self=st.booleans())
def test_keys_gates_and_own_objects_are_as_defined(form, problem, exclude_self):
    p, keys, gate = problem
    inputs = inputs_of(p)
    objects, match_role, match_filler, target_role = inputs
    options = {"keys": keys, "gate": gate, "causal": p["causal"], "exclude_self": exclude_self}
    roles = with_all_axes(objects, match_role, target_role)
    visible = seen_by(p["t"], p["causal"], exclude_self)
    expected = read_by_definition(objects, roles[0], match_filler, roles[1], keys=keys, gate=gate, visible=visible)
    with chunks(*p["chunks"]):
        fillers, _ = recall(*inputs, form=form, **options)
        assert_same([fillers], [expected], (*inputs, keys, gate), p["seed"])


@given(problem=written(), exclude_self=st.booleans())
def test_all_forms_agree_on_them_from_any_state(problem, exclude_self):
    p, keys, gate = problem
    inputs = inputs_of(p)
    fixed = p["fixed_match"] and p["fixed_target"]
    shape = state_shape(p["r"], p["f"], num_matches=p["m"], heads=p["h"] if fixed else None)
    state = drawn(p["seed"] + 3, *p["batch"], *shape)
    options = {"keys": keys, "gate": gate, "causal": p["causal"], "exclude_self": exclude_self}
    with chunks(*p["chunks"]):
        for form in ("parallel", "chunked"):
            expected = recall(*inputs, state, form="recurrent", **options)
            found = recall(*inputs, state, form=form, **options)
            assert_same(found, expected, (*inputs, keys, gate, state), p["seed"])


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("fixed", [True, False])
def test_padding_is_as_good_as_absent(form, fixed, normal):
    objects, match_filler = normal(2, 7, 3, 2), normal(2, 7, 4, 1, 2)
    match_role, target_role = (normal(4, 1, 3), normal(4, 3)) if fixed else (normal(2, 7, 4, 1, 3), normal(2, 7, 4, 3))
    there = torch.tensor([False, True, True, False, True, False, False])

    def only(x):
        return x if x.shape[0] == 4 else x[:, there]

    gate = there.double().expand(2, -1).unsqueeze(-1)
    fillers, state = recall(objects, match_role, match_filler, target_role, gate=gate, form=form)
    expected, after = recall(*map(only, (objects, match_role, match_filler, target_role)), form=form)
    torch.testing.assert_close(fillers[:, there], expected, rtol=0, atol=1e-14)
    torch.testing.assert_close(state, after, rtol=0, atol=1e-14)
    padded = torch.where(gate.unsqueeze(-1) == 0, 1e6 * objects, objects)
    again, _ = recall(padded, match_role, match_filler, target_role, gate=gate, form=form)
    assert torch.equal(again, fillers)


@given(problem=written(), length=st.integers(1, 5), masked=st.sampled_from([None, "each", "all"]))
def test_reading_elsewhere_is_as_defined(problem, length, masked):
    p, keys, gate = problem
    objects = inputs_of(p)[0]
    match_role, match_filler, target_role = inputs_of(p | {"seed": p["seed"] + 9}, length)[1:]
    shape = (*(p["batch"] if masked == "each" else ()), length, p["t"])
    visible = None if masked is None else drawn(p["seed"] + 3, *shape) > 0
    roles = with_all_axes(match_filler.flatten(-2), match_role, target_role)
    expected = read_by_definition(objects, roles[0], match_filler, roles[1], keys=keys, gate=gate, visible=visible)
    fillers = read(objects, match_role, match_filler, target_role, keys=keys, gate=gate, visible=visible)
    inputs = objects, match_role, match_filler, target_role, keys, gate
    assert_same([fillers], [expected], inputs, p["seed"])


@pytest.mark.parametrize(("length", "stored", "way"), [(1, 3, "parallel"), (50, 60, "chunked")])
@pytest.mark.parametrize("fixed", [True, False])
def test_reading_goes_the_cheaper_way_and_both_are_the_same(fixed, length, stored, way, normal):
    match_filler = normal(2, length, 4, 1, 2)
    roles = (normal(4, 1, 3), normal(4, 3)) if fixed else (normal(2, length, 4, 1, 3), normal(2, length, 4, 3))
    inputs = normal(2, stored, 3, 2), roles[0], match_filler, roles[1]
    ways = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "tpr_attention.functional.factored.cheapest_read", lambda x: ways.append(cheapest_read(x)) or ways[-1]
        )
        fillers = read(*inputs)
    assert fixed or ways == [way]
    visible = torch.ones(length, stored, dtype=torch.bool)
    assert_same([fillers], [read(*inputs, visible=visible)], inputs, 0)


def test_reading_in_lower_precision_under_vmap_and_on_the_meta_device(normal):
    inputs = normal(3, 9, 4, 2), normal(3, 2, 5, 1, 4), normal(3, 2, 5, 1, 2), normal(3, 2, 5, 4)
    options = {"keys": normal(3, 9, 4, 2), "gate": normal(3, 9, 1), "visible": normal(3, 2, 9) > 0}
    fillers = read(*inputs, **options)
    each = torch.vmap(lambda x, o: read(*x, **o))(inputs, options)
    torch.testing.assert_close(each, fillers)
    meta = read(*(x.to("meta") for x in inputs), **{name: x.to("meta") for name, x in options.items()})
    assert meta.is_meta
    assert meta.shape == fillers.shape
    half = {name: x if x.dtype == torch.bool else x.bfloat16() for name, x in options.items()}
    found = read(*(x.bfloat16() for x in inputs), **half)
    assert found.dtype == torch.bfloat16
    assert_close(found.double(), fillers, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("form", list(FORMS))
def test_options_under_vmap_and_on_the_meta_device(form, normal):
    inputs = normal(3, 5, 4, 2), normal(3, 5, 2, 1, 4), normal(3, 5, 2, 1, 2), normal(3, 5, 2, 4)
    options = {"keys": normal(3, 5, 4, 2), "gate": normal(3, 5, 1)}
    fillers, state = recall(*inputs, **options, exclude_self=True, form=form)
    each = torch.vmap(lambda x, o: recall(*x, **o, exclude_self=True, form=form))(inputs, options)
    torch.testing.assert_close(each, (fillers, state))
    there = {name: x.to("meta") for name, x in options.items()}
    assert recall(*(x.to("meta") for x in inputs), **there, exclude_self=True, form=form)[0].shape == fillers.shape


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"keys": torch.ones(5, 3, 1)}, ValueError, r"keys: expected \[\*batch t r f\] with"),
        ({"keys": torch.ones(5, 3, 2).double()}, TypeError, "keys: expected torch.float32 on cpu as objects has"),
        ({"gate": torch.ones(5)}, ValueError, r"gate: expected \[\*batch t g\] with"),
        ({"gate": torch.ones(5, 4)}, ValueError, "gate: expected g=1, since heads with roles that vary share one"),
        ({"gate": torch.ones(5, 1, dtype=torch.bool)}, TypeError, "gate: expected a floating-point tensor"),
        ({"exclude_self": 1}, TypeError, "exclude_self: expected True or False, got 1"),
    ],
)
def test_what_does_not_fit_is_refused(options, error, message, as_users_run_it):
    inputs = torch.ones(5, 3, 2), torch.ones(5, 4, 1, 3), torch.ones(5, 4, 1, 2), torch.ones(5, 4, 3)
    with pytest.raises(error, match=message):
        recall(*inputs, **options)


@pytest.mark.parametrize(
    ("visible", "error", "message"),
    [
        (torch.ones(2, 5), TypeError, r"visible: expected a tensor \[\*batch q s\] or \[q s\] of torch.bool, got"),
        ("all", TypeError, "visible: expected a tensor .* of torch.bool, got str"),
        (torch.ones(5, 2, dtype=torch.bool), ValueError, r"visible: expected .* with .*s=5, q=2, got shape \[5, 2\]"),
        (torch.ones(2, 5, dtype=torch.bool, device="meta"), TypeError, "visible: expected torch.bool on cpu"),
    ],
)
def test_a_view_that_does_not_fit_is_refused(visible, error, message, as_users_run_it):
    inputs = torch.ones(5, 3, 2), torch.ones(4, 1, 3), torch.ones(2, 4, 1, 2), torch.ones(4, 3)
    with pytest.raises(error, match=message):
        read(*inputs, visible=visible)


def test_heads_with_roles_of_their_own_may_have_gates_of_their_own():
    inputs = torch.ones(5, 3, 2), torch.ones(4, 1, 3), torch.ones(5, 4, 1, 2), torch.ones(4, 3)
    with pytest.raises(ValueError, match="gate: expected g=1 or g=4, got g=2"):
        recall(*inputs, gate=torch.ones(5, 2))


def test_no_sequence_gives_no_answer(normal):
    objects, match_filler = normal(0, 3, 2, 2), normal(0, 1, 4, 1, 2)
    found = read(objects, normal(0, 1, 4, 1, 2), match_filler, normal(0, 1, 4, 2), gate=normal(0, 3, 1))
    assert found.shape == (0, 1, 4, 2)
