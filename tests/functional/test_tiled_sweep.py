"""Tiles of any size give the numbers of the recurrence, and so do their gradients, once and twice."""

from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.functional.test_factored import assert_close, gradients, inputs_of, problems
from tests.functional.test_reading import drawn
from tpr_attention.functional import forms, recall
from tpr_attention.functional.kernels import tiled_sweep, tiles


@contextmanager
def small_tiles(panel=2, chunk=2, tile=16, keep=16):
    """Tiles for narrow objects and short sequences, so small that there are many, and ragged ones."""
    with (
        patch.object(tiled_sweep, "_NARROW", 0),
        patch.object(tiled_sweep, "_KEEP_READOUT", keep),
        patch.multiple(forms, _TILED=1, _TILED_LENGTH=1),
        patch.object(tiles, "_TILE", tile),
        patch.object(tiles, "_panel", lambda length: panel),
        patch.object(tiles, "_chunk", lambda width: chunk),
        patch.object(tiles, "read_tiles", wraps=tiles.read_tiles) as spy,
        patch.object(tiled_sweep, "read_tiles", spy),
    ):
        yield
        assert spy.called


@given(
    p=problems(),
    form=st.sampled_from(["parallel", "chunked"]),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 40, 1000]), st.sampled_from([0, 16])),
    options=st.fixed_dictionaries({"keys": st.booleans(), "gate": st.booleans(), "exclude_self": st.booleans()}),
    with_state=st.booleans(),
)
def test_tiles_give_the_numbers_of_the_recurrence(p, form, sizes, options, with_state):
    p = p | {"m": 1, "causal": True, "fixed_target": False}
    inputs, every = inputs_of(p), (*p["batch"], p["t"])
    width = p["r"] * p["f"]
    keys = drawn(p["seed"] + 1, *every, p["r"], p["f"]) if options["keys"] else None
    gate = drawn(p["seed"] + 2, *every, 1) if options["gate"] else None
    chunked = form == "chunked"
    state = drawn(p["seed"] + 3, *p["batch"], width, width) if with_state and chunked else None
    leaves = [x for x in (*inputs, keys, gate, state) if x is not None]
    options = {"keys": keys, "gate": gate, "exclude_self": options["exclude_self"]}
    with small_tiles(*sizes):
        outputs = recall(*inputs, state, form=form, **options)
        found = [*outputs, *gradients(outputs, leaves, p["seed"])]
    outputs = recall(*inputs, state, form="recurrent", **options)
    for result, expected in zip(found, [*outputs, *gradients(outputs, leaves, p["seed"])], strict=True):
        assert_close(result, expected)


@pytest.mark.parametrize("form", ["parallel", "chunked"])
@pytest.mark.parametrize(("r", "f", "length"), [(5, 13, 150), (17, 16, 140)])
def test_tiles_as_they_are_used(r, f, length, form, normal):
    inputs = normal(2, length, r, f), normal(2, length, 3, 1, r), normal(2, length, 3, 1, f), normal(2, length, 3, r)
    outputs = recall(*inputs, form=form)
    found = [*outputs, *gradients(outputs, inputs, 0)]
    outputs = recall(*inputs, form="recurrent")
    for result, expected in zip(found, [*outputs, *gradients(outputs, inputs, 0)], strict=True):
        assert_close(result, expected)


@pytest.mark.parametrize("form", ["parallel", "chunked"])
@pytest.mark.filterwarnings("ignore:Please use `torch.vmap`:FutureWarning")  # of gradcheck itself, in torch 2.6
def test_second_derivatives_and_batched_gradients(form, normal):
    inputs = normal(1, 5, 2, 2), normal(1, 5, 2, 1, 2), normal(1, 5, 2, 1, 2), normal(1, 5, 2, 2)

    def recalled(*inputs):  # the value depends on the key, and is an input of its own
        return recall(*inputs, gate=inputs[0].sum((-2, -1)).unsqueeze(-1), form=form)

    with small_tiles():
        assert torch.autograd.gradcheck(recalled, inputs, check_batched_grad=True)
        assert torch.autograd.gradgradcheck(recalled, inputs)


@pytest.mark.parametrize("form", ["parallel", "chunked"])
def test_where_objects_are_data_only_the_queries_have_gradients(form, normal):
    inputs = normal(2, 7, 3, 2), normal(2, 7, 4, 1, 3), normal(2, 7, 4, 1, 2), normal(2, 7, 4, 3)
    with small_tiles():
        fillers, state = recall(inputs[0].detach(), *inputs[1:], form=form)
        assert not state.requires_grad
        found = gradients([fillers], inputs[1:], 0)
        expected = gradients(recall(*inputs, form=form)[:1], inputs[1:], 0)
    for gradient, wanted in zip(found, expected, strict=True):
        assert_close(gradient, wanted)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # of forward mode itself
def test_forward_mode_and_vmap_go_around_tiles(normal):
    inputs = normal(3, 40, 5, 8), normal(3, 40, 2, 1, 5), normal(3, 40, 2, 1, 8), normal(3, 40, 2, 5)
    for form in ("parallel", "chunked"):
        each = torch.vmap(lambda *x, form=form: recall(*x, form=form)[0])(*inputs)
        torch.testing.assert_close(each, recall(*inputs, form=form)[0])
    tangents = tuple(torch.ones_like(x) for x in inputs)
    _, moved = torch.func.jvp(lambda *x: recall(*x, form="parallel")[0], inputs, tangents)
    step = 1e-6
    ahead, behind = (recall(*(x + s * step for x in inputs), form="parallel")[0] for s in (1, -1))
    torch.testing.assert_close(moved, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-5)
