"""Laws of the algebra, in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tpr_attention.functional import (
    attend,
    bind,
    dual_basis,
    extract,
    match,
    memorise,
    rebind,
    superpose,
    tag,
    unbind,
)

sizes = st.integers(1, 6)
seeds = st.integers(0, 2**31)
batches = st.sampled_from([(), (3,), (2, 3)])


def normals(seed):
    g = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)


@given(batch=batches, r=sizes, f=sizes, seed=seeds)
def test_extracting_with_a_unit_role_inverts_bind(batch, r, f, seed):
    normal = normals(seed)
    role, filler = normal(*batch, r), normal(*batch, f)
    role = role / role.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(extract(bind(role, filler), role), filler)


@given(batch=batches, r=sizes, f=sizes, seed=seeds)
def test_orthonormal_roles_do_not_interfere(batch, r, f, seed):
    normal = normals(seed)
    roles = torch.linalg.qr(normal(r, r))[0]
    fillers = normal(*batch, r, f)
    obj = superpose(bind(roles.expand(*batch, r, r), fillers))
    for j in range(r):
        torch.testing.assert_close(extract(obj, roles[j].expand(*batch, r)), fillers[..., j, :])
    torch.testing.assert_close(dual_basis(roles), roles)


@given(batch=batches, r=sizes, extra=st.integers(0, 3), f=sizes, seed=seeds)
def test_unbind_inverts_superposition_for_any_independent_roles(batch, r, extra, f, seed):
    normal = normals(seed)
    roles = torch.eye(r, r + extra, dtype=torch.float64) + 0.2 * normal(r, r + extra)
    fillers = normal(*batch, r, f)
    obj = superpose(bind(roles.expand(*batch, r, r + extra), fillers))
    torch.testing.assert_close(unbind(obj, roles), fillers, rtol=1e-6, atol=1e-6)


@given(batch=batches, t=sizes, r=sizes, f=sizes, seed=seeds)
def test_the_memory_of_all_objects_is_the_sum_of_memories(batch, t, r, f, seed):
    normal = normals(seed)
    first, second = normal(*batch, t, r, f), normal(*batch, 2, r, f)
    together = memorise(torch.cat([first, second], -3))
    torch.testing.assert_close(together, memorise(first) + memorise(second))


@given(t=sizes, r=sizes, f=sizes, seed=seeds)
def test_match_weighs_each_object_by_its_score(t, r, f, seed):
    normal = normals(seed)
    objects, role, filler = normal(t, r, f), normal(r), normal(f)
    by_hand = sum((role @ obj @ filler) * obj for obj in objects)
    torch.testing.assert_close(match(memorise(objects), role, filler), by_hand)


@given(f=sizes, r=sizes, f_out=sizes, seed=seeds)
def test_rebind_is_a_binding_of_the_mapped_filler(f, r, f_out, seed):
    normal = normals(seed)
    filler, filler_map, role = normal(3, f), normal(f, f_out), normal(r)
    torch.testing.assert_close(rebind(filler, filler_map, role), bind(role.expand(3, r), filler @ filler_map))


@given(t=sizes, r=sizes, f=sizes, seed=seeds)
def test_attend_is_linear_in_the_memory_and_in_every_query(t, r, f, seed):
    normal = normals(seed)
    arguments = [memorise(normal(t, r, f)), normal(r), normal(f), normal(r), normal(f, f), normal(r)]
    result = attend(*arguments)
    for k in range(len(arguments)):
        doubled = [2 * x if i == k else x for i, x in enumerate(arguments)]
        torch.testing.assert_close(attend(*doubled), 2 * result)


def test_a_tagged_object_is_found_by_its_id():
    normal = normals(0)
    objects, ids = normal(3, 4, 2), torch.eye(3, dtype=torch.float64)
    memory = tag(objects, ids).sum(0)
    for obj, id_tag in zip(objects, ids, strict=True):
        torch.testing.assert_close(torch.einsum("irf,i->rf", memory, id_tag), obj)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (bind, [(2, 3), (2, 4)]),
        (superpose, [(2, 5, 3, 4)]),
        (unbind, [(2, 3, 4), (3, 3)]),
        (tag, [(2, 3, 4), (2, 5)]),
        (memorise, [(2, 5, 3, 4)]),
        (match, [(2, 3, 4, 3, 4), (2, 3), (2, 4)]),
        (extract, [(2, 3, 4), (2, 3)]),
        (rebind, [(2, 4), (4, 4), (3,)]),
        (attend, [(2, 3, 4, 3, 4), (2, 3), (2, 4), (2, 3), (2, 4, 5), (2, 6)]),
    ],
)
def test_every_function_keeps_the_dtype_and_passes_gradients(function, shapes, dtype):
    normal = normals(1)
    inputs = [normal(*shape).to(dtype).requires_grad_() for shape in shapes]
    output = function(*inputs)
    assert output.dtype == dtype
    output.sum().backward()
    assert all(x.grad.isfinite().all() and x.grad.abs().sum() > 0 for x in inputs)
    if dtype == torch.float64:
        assert torch.autograd.gradcheck(function, inputs)


def test_dependent_roles_cannot_be_unbound():
    with pytest.raises(ValueError, match="roles: expected 2 linearly independent rows, got rank 1"):
        unbind(torch.ones(2, 3), torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
