"""Fused softmax matching against its literal definition: values and every gradient, odd sizes, masks and gates."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.functional.definition import with_all_axes
from tests.functional.test_factored import assert_close, gradients
from tpr_attention.functional import clean_by_stored, recall_softmax


def softmax_by_definition(scores, values, gate, visible, causal):
    """Scores `[*batch q h s]`, values `[*batch q h s f]` -> weighted means `[*batch q h f]`."""
    length, seen = scores.shape[-3], scores.shape[-1]
    allowed = torch.ones(length, seen, dtype=torch.bool)
    if causal:
        allowed = allowed.tril(seen - length)
    if visible is not None:
        allowed = allowed & visible
    allowed = allowed.unsqueeze(-2)
    if gate is not None:
        allowed = allowed & (gate > 0).mT.unsqueeze(-3)
    scores = scores.masked_fill(~allowed, -1e300)
    largest = scores.amax(-1, keepdim=True).detach()
    weights = (scores - largest).exp() * allowed
    if gate is not None:
        weights = weights * gate.where(gate > 0, 0).mT.unsqueeze(-3)
    total = weights.sum(-1, keepdim=True)
    return ((weights / total.where(total > 0, 1)).unsqueeze(-1) * values).sum(-2)


def recall_by_definition(objects, roles, match_filler, targets, temperature, keys, gate, visible, causal):
    matched = objects if keys is None else keys
    scores = torch.einsum("...qhmr,...srf,...qhmf->...qhs", roles, matched, match_filler) / temperature
    values = torch.einsum("...qhr,...srf->...qhsf", targets, objects)
    return softmax_by_definition(scores, values, gate, visible, causal)


@st.composite
def problems(draw):
    size = st.integers(1, 4)
    return {
        "batch": draw(st.sampled_from([(), (2,), (2, 1)])),
        "q": draw(st.integers(1, 6)),
        "s": draw(st.integers(1, 6)),
        "square": draw(st.booleans()),
        **{axis: draw(size) for axis in ("r", "f", "h", "m")},
        "fixed": (draw(st.booleans()), draw(st.booleans())),
        "keys": draw(st.booleans()),
        "gate": draw(st.sampled_from([None, "one", "heads"])),
        "visible": draw(st.sampled_from([None, "all", "each"])),
        "causal": draw(st.booleans()),
        "temperature": draw(st.sampled_from([1.0, 0.3])),
        "seed": draw(st.integers(0, 2**31)),
    }


def options_of(p, normal, g):
    """Gates with zeros among them, masks with rows of False, and keys."""
    seen = p["s"]
    gate = visible = None
    if p["gate"] is not None:
        shape = *p["batch"], seen, 1 if p["gate"] == "one" else p["h"]
        gate = torch.rand(shape, generator=g, dtype=torch.float64)
        gate = gate.where(torch.rand(shape, generator=g) < 0.6, 0).requires_grad_()
    if p["visible"] is not None:
        shape = *(() if p["visible"] == "all" else p["batch"]), p["q"], seen
        visible = torch.rand(shape, generator=g) < 0.5
    keys = normal(*p["batch"], seen, p["r"], p["f"]) if p["keys"] else None
    return keys, gate, visible


@given(p=problems())
def test_recall_is_the_definition_in_values_and_gradients(p):
    p = p | ({"s": p["q"]} if p["square"] else {})
    g = torch.Generator().manual_seed(p["seed"])

    def normal(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()

    every = *p["batch"], p["q"]
    objects, match_filler = normal(*p["batch"], p["s"], p["r"], p["f"]), normal(*every, p["h"], p["m"], p["f"])
    match_role = normal(*(() if p["fixed"][0] else every), p["h"], p["m"], p["r"])
    target_role = normal(*(() if p["fixed"][1] else every), p["h"], p["r"])
    keys, gate, visible = options_of(p, normal, g)
    inputs = [x for x in (objects, match_role, match_filler, target_role, keys, gate) if x is not None]
    shared = {"temperature": p["temperature"], "keys": keys, "gate": gate, "visible": visible, "causal": p["causal"]}
    found = recall_softmax(objects, match_role, match_filler, target_role, **shared)
    roles, targets = with_all_axes(match_filler.new_zeros(*every, 1, 1), match_role, target_role)
    expected = recall_by_definition(objects, roles, match_filler, targets, *shared.values())
    assert_close(found, expected)
    wanted = gradients([expected], inputs, p["seed"])
    for gradient, by_definition in zip(gradients([found], inputs, p["seed"]), wanted, strict=True):
        if gate is not None and gradient.shape == gate.shape:
            by_definition = by_definition.where(gate > 0, 0)
        assert_close(gradient, by_definition)


@given(p=problems())
def test_clean_up_is_the_definition_in_values_and_gradients(p):
    p = p | ({"s": p["q"]} if p["square"] else {}) | {"keys": False}
    g = torch.Generator().manual_seed(p["seed"])

    def normal(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()

    fillers, stored = normal(*p["batch"], p["q"], p["h"], p["f"]), normal(*p["batch"], p["s"], p["h"], p["f"])
    _, gate, visible = options_of(p, normal, g)
    inputs = [x for x in (fillers, stored, gate) if x is not None]
    found = clean_by_stored(fillers, stored, sharpness=1.5, gate=gate, visible=visible, causal=p["causal"])
    values = stored.movedim(-3, -2).unsqueeze(-4).expand(*p["batch"], p["q"], p["h"], p["s"], p["f"])
    scores = -1.5 * (fillers.unsqueeze(-2) - values).square().sum(-1)
    expected = softmax_by_definition(scores, values, gate, visible, p["causal"])
    assert_close(found, expected)
    for gradient, wanted in zip(
        gradients([found], inputs, p["seed"]), gradients([expected], inputs, p["seed"]), strict=True
    ):
        assert_close(gradient, wanted)


def fixed(normal, length=5, batch=(2,), matches=1):
    return normal(*batch, length, 3, 4), normal(2, matches, 3), normal(*batch, length, 2, matches, 4), normal(2, 3)


def test_fixed_roles_without_masks_are_fused_attention_without_a_mask(normal, monkeypatch):
    calls = []
    fused = torch.nn.functional.scaled_dot_product_attention

    def spy(*args, **kwargs):
        calls.append(kwargs)
        return fused(*args, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    for causal in (True, False):
        recall_softmax(*fixed(normal), temperature=2.0, causal=causal)
        assert calls.pop() == {"attn_mask": None, "is_causal": causal, "scale": 0.5}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("gated", [True, False])
def test_lower_precision_stays_at_the_rounding_of_the_inputs(dtype, gated, normal):
    inputs = [x.detach().to(dtype).requires_grad_() for x in fixed(normal, 40)]
    gate = normal(2, 40, 1).detach().relu().to(dtype) if gated else None
    found = recall_softmax(*inputs, temperature=1.0, gate=gate, causal=True)
    exact = None if gate is None else gate.double()
    expected = recall_softmax(*(x.double() for x in inputs), temperature=1.0, gate=exact, causal=True)
    assert found.dtype == dtype
    tolerance = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    found.sum().backward()
    assert all(x.grad.dtype == dtype and x.grad.isfinite().all() for x in inputs)


def test_what_sees_nothing_is_zero_with_finite_gradients(normal):
    """In float32 too, where the fused kernel is another."""
    objects, *queries = (x.detach().float().requires_grad_() for x in fixed(normal))
    nothing = {"visible": torch.zeros(5, 5, dtype=torch.bool)}, {"gate": torch.zeros(2, 5, 1)}
    for options in nothing:
        found = recall_softmax(objects, *queries, temperature=0.1, **options)
        assert found.count_nonzero() == 0
        for x in torch.autograd.grad(found.sum(), (objects, *queries)):
            assert x.count_nonzero() == 0
    assert recall_softmax(objects[:, :0], *queries, temperature=1.0).count_nonzero() == 0


def test_an_object_with_gate_zero_has_no_weight(normal):
    objects, *queries = fixed(normal)
    gate = torch.ones(2, 5, 1, dtype=torch.float64)
    gate[:, 2] = 0
    huge = objects.detach().clone()
    huge[:, 2] *= 1e6
    for causal in (True, False):
        options = {"temperature": 0.01, "gate": gate, "causal": causal}
        assert torch.equal(recall_softmax(huge, *queries, **options), recall_softmax(objects, *queries, **options))


def test_an_empty_batch_gives_an_empty_answer(normal):
    inputs = fixed(normal, batch=(0,))
    found = recall_softmax(*inputs, temperature=1.0)
    assert found.shape == (0, 5, 2, 4)
    assert all(x is not None for x in torch.autograd.grad(found.sum(), inputs))
    assert clean_by_stored(normal(0, 3, 2, 4), normal(0, 5, 2, 4), sharpness=1.0).shape == (0, 3, 2, 4)


def test_under_vmap(normal):
    inputs = fixed(normal, matches=2)
    gate = normal(2, 5, 1).detach().relu()

    def one(objects, match_filler, gate):
        return recall_softmax(objects, inputs[1], match_filler, inputs[3], temperature=1.0, gate=gate, causal=True)

    expected = one(inputs[0], inputs[2], gate)
    assert_close(torch.vmap(one)(inputs[0], inputs[2], gate), expected)


def test_compiles_into_one_graph(normal, as_users_run_it):
    inputs = fixed(normal, matches=2)
    gate = normal(2, 5, 1).detach().relu()

    def both(*inputs):
        found = recall_softmax(*inputs, temperature=0.5, gate=gate, causal=True)
        return clean_by_stored(found, found, sharpness=3.0)

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    expected, found = both(*inputs), compiled(*inputs)
    assert_close(found, expected)
    for gradient, wanted in zip(gradients([found], inputs, 0), gradients([expected], inputs, 0), strict=True):
        assert_close(gradient, wanted)


@pytest.mark.parametrize("gated", [True, False])
def test_exports_with_a_dynamic_length(gated, normal, as_users_run_it):
    roles = normal(2, 2, 3).detach(), normal(2, 3).detach()

    class Matching(torch.nn.Module):
        def forward(self, objects, match_filler, gate):
            options = {"temperature": 0.5, "causal": True, "gate": gate if gated else None}
            found = recall_softmax(objects, roles[0], match_filler, roles[1], **options)
            return clean_by_stored(found, found, sharpness=3.0, causal=True)

    def inputs(length):
        return tuple(x.detach() for x in (normal(2, length, 3, 4), normal(2, length, 2, 2, 4), normal(2, length, 1)))

    length = {1: torch.export.Dim("t", min=2, max=64)}
    exported = torch.export.export(Matching(), inputs(7), dynamic_shapes=(length, length, length))
    longer = inputs(19)
    assert_close(exported.module()(*longer), Matching()(*longer))


def test_one_position_reads_as_the_last_of_many(normal):
    objects, match_role, match_filler, target_role = fixed(normal)
    whole = recall_softmax(objects, match_role, match_filler, target_role, temperature=0.5, causal=True)
    step = recall_softmax(objects, match_role, match_filler[:, -1:], target_role, temperature=0.5, causal=True)
    assert_close(step, whole[:, -1:])


def test_errors_name_the_argument(normal, as_users_run_it):
    inputs = fixed(normal)
    wrong = [
        ({"temperature": 0.0}, ValueError, "temperature: expected a finite number above 0"),
        ({"temperature": "low"}, TypeError, "temperature: expected a finite number"),
        ({"temperature": 1.0, "gate": normal(2, 5, 3)}, ValueError, "gate: expected .* with g=1 or g=2"),
        ({"temperature": 1.0, "visible": torch.ones(5, 5)}, TypeError, "visible: expected a tensor"),
        ({"temperature": 1.0, "visible": torch.ones(4, 5) > 0}, ValueError, "visible: expected"),
        ({"temperature": 1.0, "keys": inputs[0].float()}, TypeError, "keys: expected torch.float64"),
        ({"temperature": 1.0, "causal": "yes"}, TypeError, "causal: expected True or False"),
    ]
    for options, error, message in wrong:
        with pytest.raises(error, match=message):
            recall_softmax(*inputs, **options)
    with pytest.raises(ValueError, match="sharpness: expected a finite number above 0"):
        clean_by_stored(inputs[2].squeeze(-2), inputs[2].squeeze(-2), sharpness=-1.0)
