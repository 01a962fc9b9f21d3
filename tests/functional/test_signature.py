"""Bad input gets an error that says what was expected and what came, and nothing broadcasts."""

import pytest
import torch

from tpr_attention.functional import attend, bind, extract, match, memorise, recall, state_shape, tag, unbind


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
