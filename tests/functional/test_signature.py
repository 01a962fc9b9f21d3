"""Bad input gets an error that says what was expected and what came, and nothing broadcasts."""

import math

import numpy as np
import pytest
import torch

from tpr_attention.functional import (
    attend,
    bind,
    dual_basis,
    extract,
    match,
    match_general,
    match_unbuilt,
    memorise,
    memorise_general,
    recall,
    state_shape,
    tag,
    unbind,
)
from tpr_attention.functional.action import (
    read,
    read_by_action,
    read_map,
    update_map,
    write,
    write_by_action,
    write_map,
)
from tpr_attention.functional.readout import by_count, to_unit_length, to_unit_rms


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: bind(torch.ones(3, 2), torch.ones(1, 4)),
            ValueError,
            r"filler: expected \[\*batch f\] with batch=\[3\]",
        ),
        (lambda: bind(torch.ones(()), torch.ones(4)), ValueError, r"role: expected \[\*batch r\], got shape \[\]"),
        (lambda: bind(torch.ones(2, dtype=torch.long), torch.ones(4)), TypeError, "role: expected a floating-point"),
        (lambda: bind([1.0, 2.0], torch.ones(4)), TypeError, "role: expected a tensor .* got list"),
        (
            lambda: bind(torch.ones(2), torch.ones(4).double()),
            TypeError,
            "filler: expected torch.float32 on cpu as role",
        ),
        (lambda: bind(torch.ones(2), torch.ones(4, device="meta")), TypeError, "filler: .* got torch.float32 on meta"),
        (lambda: memorise(torch.ones(3, 2)), ValueError, r"objects: expected \[\*batch t r f\], got shape \[3, 2\]"),
        (lambda: match(torch.ones(2, 3, 2, 4), torch.ones(2), torch.ones(3)), ValueError, "memory: expected"),
        (lambda: match(torch.ones(2, 3, 2, 3), torch.ones(1), torch.ones(3)), ValueError, "match_role: .* r=2"),
        (
            lambda: extract(torch.ones(2, 3), torch.ones(1)),
            ValueError,
            r"target_role: expected \[\*batch r\] with .*r=2",
        ),
        (
            lambda: tag(torch.ones(5, 2, 3), torch.ones(2)),
            ValueError,
            r"id_tag: expected \[\*batch i\] with batch=\[5\]",
        ),
        (lambda: unbind(torch.ones(2, 3), torch.ones(2, 1)), ValueError, r"roles: expected \[j r\] with r=2"),
        (lambda: bind(torch.ones(2)), TypeError, "missing .*'filler'"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_alternatives_are_named():
    memory, role, filler = torch.ones(5, 2, 3, 2, 3), torch.ones(5, 2), torch.ones(5, 3)
    with pytest.raises(
        ValueError, match=r"filler_map: expected \[\*batch f f_out\] or \[f f_out\] with batch=\[5\], f=3"
    ):
        attend(memory, role, filler, role, torch.ones(4, 3), role)


def recall_inputs(**changed):
    shapes = {
        "objects": (2, 5, 3, 2),
        "match_role": (2, 5, 4, 1, 3),
        "match_filler": (2, 5, 4, 1, 2),
        "target_role": (2, 5, 4, 3),
    }
    return {name: torch.ones(shape) for name, shape in (shapes | changed).items()}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"match_filler": (2, 1, 4, 1, 2)}, "match_filler: .* got shape"),
        ({"match_role": (2, 5, 4, 2, 3)}, "match_filler: .* m=2"),
        ({"target_role": (4, 1)}, r"target_role: expected \[\*batch t h r\] or \[h r\]"),
        ({"target_role": (2, 5, 3, 3)}, "target_role: .* h=4"),
    ],
)
def test_queries_of_the_wrong_size_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        recall(**recall_inputs(**changed))


@pytest.mark.parametrize("axis", ["t", "r", "f", "h", "m"])
def test_an_axis_without_entries_is_refused(axis):
    sizes = {"t": 5, "r": 3, "f": 2, "h": 4, "m": 1} | {axis: 0}
    t, r, f, h, m = sizes.values()
    inputs = torch.ones(t, r, f), torch.ones(t, h, m, r), torch.ones(t, h, m, f), torch.ones(t, h, r)
    with pytest.raises(ValueError, match=f"expected at least one entry along {axis}"):
        recall(*inputs)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (torch.ones(2, 6, 7), r"state: expected torch.float32 on cpu of shape \[2, 6, 6\]"),
        (torch.ones(6, 6), r"got torch.float32 on cpu of shape \[6, 6\]"),
        (torch.ones(2, 6, 6).double(), "got torch.float64 on cpu"),
        (torch.ones(2, 6, 6, device="meta"), "got torch.float32 on meta"),
        (torch.ones(2, 6, 6, dtype=torch.long), "state: expected a floating-point tensor"),
    ],
)
def test_a_state_of_something_else_is_refused(state, message):
    with pytest.raises((ValueError, TypeError), match=message):
        recall(**recall_inputs(), state=state)


@pytest.mark.parametrize("name", ["num_roles", "filler_dim", "num_matches", "heads"])
def test_there_is_no_state_of_nothing(name):
    with pytest.raises(ValueError, match=f"{name}: expected at least 1, got 0"):
        state_shape(**({"num_roles": 6, "filler_dim": 3, "num_matches": 1, "heads": 4} | {name: 0}))


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match=r"form: expected one of .*'chunked'.*, got 'fast'"):
        recall(**recall_inputs(), form="fast")


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2])
def test_numbers_of_another_kind_are_refused(dtype):
    message = f"expected a floating-point tensor .* of 16, 32 or 64 bits, got {dtype}"
    for function in (memorise, dual_basis, to_unit_rms, lambda x: bind(torch.ones(2), x)):
        with pytest.raises(TypeError, match=message):
            function(torch.ones(2, 2, 2).to(dtype))


@pytest.mark.parametrize(
    ("flag", "error", "message"),
    [
        ({"causal": "no"}, TypeError, "causal: expected True or False, got 'no'"),
        ({"final_state": None}, TypeError, "final_state: expected True or False, got None"),
        ({"form": ["auto"]}, ValueError, "form: expected one of"),
        ({"form": torch.ones(2)}, ValueError, "form: expected one of"),
    ],
)
def test_flags_of_recall(flag, error, message, as_users_run_it):
    with pytest.raises(error, match=message):
        recall(**recall_inputs(), **flag)


def test_a_memory_that_no_machine_holds_is_refused():
    wide = torch.ones(1, 2000, 2000), torch.ones(1, 1, 1, 2000), torch.ones(1, 1, 1, 2000), torch.ones(1, 1, 2000)
    assert recall(*wide, final_state=False)[1] is None
    for options in ({}, {"form": "recurrent", "final_state": False}):
        with pytest.raises(ValueError, match="num_roles=2000, filler_dim=2000, num_matches=1: expected sizes whose"):
            recall(*wide, **options)
    with pytest.raises(ValueError, match=r"order=2, copies=20: expected sizes whose numbers fit into .* GB of memory"):
        memorise_general(torch.ones(5, 3, 4), order=2, copies=20)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"order": 10**9}, ValueError, "order: expected at most 52, got 1000000000"),
        ({"copies": 10**9}, ValueError, "copies: expected at most 26, got 1000000000"),
        ({"copies": True}, TypeError, "copies: expected a whole number, got True"),
        ({"free": 3.0}, TypeError, "free: expected a whole number, got 3.0"),
        ({"free": -1}, ValueError, "free: expected at least 0, got -1"),
        ({"modes": 5}, TypeError, "modes: expected a list, got int"),
        ({"modes": [1.0]}, TypeError, r"modes\[0\]: expected a whole number, got 1.0"),
        ({"queries": None}, TypeError, "queries: expected a list, got NoneType"),
        ({"queries": torch.ones(1, 2)}, TypeError, "queries: expected a list, got Tensor"),
        ({"queries": ["x"]}, TypeError, r"queries\[0\]: expected a tensor"),
    ],
)
@pytest.mark.parametrize("compute", [match_general, match_unbuilt])
def test_numbers_of_a_general_memory(compute, changed, error, message, as_users_run_it):
    objects = torch.ones(5, 3, 2)
    stored = memorise_general(objects, order=2, copies=2) if compute is match_general else objects
    options = {"queries": [torch.ones(2)], "order": 2, "copies": 2, "free": 3} | changed
    with pytest.raises(error, match=message):
        compute(stored, **options)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (torch.full((2, 2), math.nan), "expected finite numbers, got NaN or infinity"),
        (torch.tensor([[1.0, math.inf], [0.0, 1.0]]), "expected finite numbers, got NaN or infinity"),
        (torch.tensor([[1.0, math.nan], [0.0, 1.0]]).bfloat16(), "expected finite numbers, got NaN or infinity"),
        (torch.ones(2, 2), "expected 2 linearly independent rows, got rank 1"),
        (torch.zeros(2, 2).half(), "expected 2 linearly independent rows, got rank 0"),
        (torch.eye(3)[:, :2], "expected 3 linearly independent rows, got rank 2"),
        (torch.ones(2, 0), "expected 2 linearly independent rows, got rank 0"),
        (1e-6 * torch.eye(2).half(), "expected rows whose dual basis fits into torch.float16, got one that overflows"),
    ],
)
def test_roles_that_cannot_be_read_back(roles, message):
    with pytest.raises(ValueError, match=f"roles: {message}"):
        dual_basis(roles)
    with pytest.raises(ValueError, match=f"roles: {message}"):
        unbind(torch.ones(roles.shape[1], 3, dtype=roles.dtype), roles)


def test_a_dual_basis_under_vmap_and_on_the_meta_device_is_not_looked_at():
    roles = torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(torch.vmap(dual_basis)(roles)[2], dual_basis(roles[2]))
    assert dual_basis(roles[0].to("meta")).is_meta


def test_readouts_of_the_wrong_shape(as_users_run_it):
    with pytest.raises(ValueError, match=r"count: expected \[t\] or \[\*batch t\] with .*t=5, got shape \[1\]"):
        by_count(torch.ones(5, 2, 3), torch.ones(1))
    for readout in (to_unit_rms, to_unit_length):
        with pytest.raises(ValueError, match="fillers: expected at least one entry along f, got none"):
            readout(torch.ones(5, 0))


FITTING = {
    read: {"objects": (7, 2, 4, 3), "action": (7, 6), "id_query": (5, 2), "query_map": (5, 6, 4)},
    write: {"found": (7, 5, 3), "action": (7, 6), "filler_map": (5, 3, 3), "role_map": (5, 6, 4)},
    read_map: {"id_query": (5, 2), "query_map": (5, 6, 4)},
    write_map: {"filler_map": (5, 3, 3), "role_map": (5, 6, 4)},
    update_map: {"reads": (6, 2, 4, 5), "writes": (6, 5, 3, 4, 3)},
    read_by_action: {"objects": (6, 7, 2, 4, 3), "id_query": (5, 2), "query_map": (5, 6, 4)},
    write_by_action: {"found": (6, 7, 5, 3), "filler_map": (5, 3, 3), "role_map": (5, 6, 4)},
}


@pytest.mark.parametrize("ones", [torch.ones, np.ones])
@pytest.mark.parametrize("function", FITTING)
def test_nothing_broadcasts_under_an_action(function, ones, as_users_run_it):
    shapes = FITTING[function]
    names = "|".join(shapes)
    function(*map(ones, shapes.values()))
    for name, shape in shapes.items():
        for other in ((), shape[1:], (1, *shape[1:]), (2, *shape)):
            with pytest.raises(ValueError, match=rf"^({names}): expected \[.*\] with .*, got shape"):
                function(**{key: ones(other if key == name else size) for key, size in shapes.items()})
        with pytest.raises(TypeError, match=f"^{name}: expected an array .* got list"):
            function(**{key: [1.0] if key == name else ones(size) for key, size in shapes.items()})


def test_batches_of_another_order_are_not_mixed_up(as_users_run_it):
    with pytest.raises(ValueError, match=r"action: expected \[\*batch a\] with .*\(2, 3\).*, got shape \[3, 2, 6\]"):
        read(torch.ones(2, 3, 2, 4, 3), torch.ones(3, 2, 6), torch.ones(5, 2), torch.ones(5, 6, 4))
