"""The general TPR-SAM (App. C), and what it contains."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tpr_attention.functional import match, match_general, match_unbuilt, memorise, memorise_general, tag


def normals(seed):
    g = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()


@given(t=st.integers(1, 4), r=st.integers(1, 4), f=st.integers(1, 4), seed=st.integers(0, 2**31))
def test_two_copies_of_order_two_are_the_memory_of_section_3(t, r, f, seed):
    normal = normals(seed)
    objects, role, filler = normal(2, t, r, f), normal(2, r), normal(2, f)
    memory = memorise_general(objects, order=2, copies=2)
    torch.testing.assert_close(memory, memorise(objects))
    found = match_general(memory, [role, filler], order=2, copies=2, free=2)
    torch.testing.assert_close(found, match(memory, role, filler))


def test_a_conjunction_weighs_by_the_product_of_the_scores():
    normal = normals(0)
    objects, (r_1, r_2), (f_1, f_2) = normal(5, 3, 2), normal(2, 3), normal(2, 2)
    memory = memorise_general(objects, order=2, copies=3)
    found = match_general(memory, [r_1, f_1, r_2, f_2], order=2, copies=3, free=2)
    by_hand = sum((r_1 @ obj @ f_1) * (r_2 @ obj @ f_2) * obj for obj in objects)
    torch.testing.assert_close(found, by_hand)


def test_a_conjunction_finds_what_has_both_properties():
    """Of a red square, a red circle and a blue circle, only one is red and a circle."""
    colour, shape, name = torch.eye(3, dtype=torch.float64)
    red, blue, square, circle = torch.eye(4, dtype=torch.float64)
    looks = [(red, square), (red, circle), (blue, circle)]
    objects = torch.stack(
        [
            torch.outer(colour, c) + torch.outer(shape, s) + torch.outer(name, torch.eye(4, dtype=torch.float64)[k])
            for k, (c, s) in enumerate(looks)
        ]
    )
    memory = memorise_general(objects, order=2, copies=3)
    found = match_general(memory, [colour, red, shape, circle], order=2, copies=3, free=2)
    torch.testing.assert_close(found, objects[1])


def test_the_tagged_memory_of_appendix_d_is_one_copy_of_order_three():
    normal = normals(1)
    objects, ids = normal(2, 3, 2), torch.eye(2, dtype=torch.float64)
    memory = memorise_general(tag(objects, ids), order=3, copies=1)
    role, id_query = normal(3), normal(2)
    filler = match_general(memory, [id_query, role], order=3, copies=1, free=1, modes=[0, 1])
    torch.testing.assert_close(filler, sum(id_query[i] * (role @ objects[i]) for i in range(2)))


@st.composite
def general_problems(draw):
    order, copies = draw(st.sampled_from([(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)]))
    modes = draw(st.permutations(range(order * copies)))
    return order, copies, modes[: draw(st.integers(0, order * copies))], draw(st.integers(0, 2**31))


@given(problem=general_problems(), batch=st.sampled_from([(), (2,)]))
def test_the_unbuilt_memory_gives_the_same_with_gradients(problem, batch):
    order, copies, modes, seed = problem
    normal = normals(seed)
    sizes = [2, 3, 2][:order]
    objects = normal(*batch, 4, *sizes)
    queries = [normal(*batch, sizes[mode % order]) for mode in modes]
    counts = {"order": order, "copies": copies, "free": order * copies - len(modes), "modes": modes}
    built = match_general(memorise_general(objects, order=order, copies=copies), queries, **counts)
    unbuilt = match_unbuilt(objects, queries, **counts)
    torch.testing.assert_close(unbuilt, built)
    weights = torch.ones_like(built)
    for found, wanted in zip(
        torch.autograd.grad(unbuilt, [objects, *queries], weights),
        torch.autograd.grad(built, [objects, *queries], weights),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_dtype_passes_gradients(dtype):
    normal = normals(2)
    objects, role, filler = (
        normal(*shape).detach().to(dtype).requires_grad_() for shape in ((2, 4, 3, 2), (2, 3), (2, 2))
    )
    counts = {"order": 2, "copies": 2, "free": 2}
    memory = memorise_general(objects, order=2, copies=2)
    outputs = match_general(memory, [role, filler], **counts), match_unbuilt(objects, [role, filler], **counts)
    for output in outputs:
        assert output.dtype == dtype
        gradients = torch.autograd.grad(output.sum(), [objects, role, filler], retain_graph=True)
        assert all(gradient.isfinite().all() and gradient.abs().max() > 0 for gradient in gradients)


@pytest.mark.parametrize("compute", [match_general, match_unbuilt])
def test_counts_that_do_not_fit_are_refused(compute):
    objects, role = torch.ones(4, 3, 2), torch.ones(3)
    stored = memorise_general(objects, order=2, copies=2) if compute is match_general else objects
    with pytest.raises(ValueError, match=r"free: expected copies \* order - queries = 4 - 1 = 3, got 2"):
        compute(stored, [role], order=2, copies=2, free=2)
    with pytest.raises(ValueError, match="modes: expected 1 different numbers from 0 to 3"):
        compute(stored, [role], order=2, copies=2, free=3, modes=[4])
    with pytest.raises(ValueError, match="modes: expected 2 different numbers"):
        compute(stored, [role, role], order=2, copies=2, free=2, modes=[0, 0])
    with pytest.raises(ValueError, match=r"queries\[0\]: expected \[\*batch d\] with batch=\[\], d=2, got shape \[3\]"):
        compute(stored, [role], order=2, copies=2, free=3, modes=[1])
    with pytest.raises(ValueError, match="copies: expected at least 1, got 0"):
        compute(stored, [role], order=2, copies=0, free=3)


def test_a_memory_of_something_else_is_refused(as_users_run_it):
    with pytest.raises(ValueError, match=r"memory: expected \[\*batch d_1 d_2 d_1 d_2\], got shape \[3, 2\]"):
        match_general(torch.ones(3, 2), [torch.ones(2)], order=2, copies=2, free=3)
    with pytest.raises(ValueError, match=r"got shape \[3, 2, 3, 4\]"):
        match_general(torch.ones(3, 2, 3, 4), [torch.ones(4)], order=2, copies=2, free=3)
    with pytest.raises(TypeError, match="memory: expected a tensor"):
        match_general(None, [torch.ones(2)], order=2, copies=2, free=3)
