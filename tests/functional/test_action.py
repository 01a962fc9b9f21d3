"""Appendix D as functions: every form gives what the tagged memory defines, for torch and for numpy."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from tpr_attention.functional import match_general, memorise_general, rebind, tag
from tpr_attention.functional.action import (
    read,
    read_by_action,
    read_map,
    update_map,
    write,
    write_by_action,
    write_map,
)

ACTIONS, OBJECTS, ROLES, FILLERS, HEADS, PAIRS = 4, 3, 5, 2, 6, 7


@pytest.fixture
def weights(normal):
    """Id query, query map, filler map and role map of some heads, for any leading axes."""

    def draw(*lead):
        return (
            normal(*lead, HEADS, OBJECTS),
            normal(*lead, HEADS, ACTIONS, ROLES),
            normal(*lead, HEADS, FILLERS, FILLERS),
            normal(*lead, HEADS, ACTIONS, ROLES),
        )

    return draw


def attention(objects, action, id_query, query_map, filler_map, role_map):
    return write(read(objects, action, id_query, query_map), action, filler_map, role_map)


def by_action(objects, id_query, query_map, filler_map, role_map):
    return write_by_action(read_by_action(objects, id_query, query_map), filler_map, role_map)


def same_with_gradients(found, expected, inputs):
    torch.testing.assert_close(found, expected)
    weight = torch.arange(1.0, expected.numel() + 1).to(expected).reshape(expected.shape)
    for one, other in zip(
        torch.autograd.grad(found, inputs, weight), torch.autograd.grad(expected, inputs, weight), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_read_and_write_are_the_tagged_memory(weights, normal):
    id_query, query_map, filler_map, role_map = weights()
    objects, action = normal(OBJECTS, ROLES, FILLERS), normal(ACTIONS)
    memory = memorise_general(tag(objects, torch.eye(OBJECTS, dtype=torch.float64)), order=3, copies=1)
    expected = 0
    for head in range(HEADS):
        asked = [id_query[head], action @ query_map[head]]
        filler = match_general(memory, asked, order=3, copies=1, free=1, modes=[0, 1])
        expected = expected + rebind(filler, filler_map[head], action @ role_map[head])
    inputs = [objects, action, id_query, query_map, filler_map, role_map]
    same_with_gradients(attention(*inputs), expected, inputs)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_many_examples_of_every_action_give_the_same(lead, weights, normal):
    """Every set of weights with its own examples, one after the other, each with its one-hot action."""
    maps, objects = weights(*lead), normal(*lead, ACTIONS, PAIRS, OBJECTS, ROLES, FILLERS)
    action = torch.eye(ACTIONS, dtype=torch.float64)[:, None].expand(ACTIONS, PAIRS, ACTIONS)
    runs = [
        attention(one, action, *parts)
        for one, *parts in zip(
            objects.flatten(0, -6) if lead else objects[None],
            *(x.reshape(-1, *x.shape[len(lead) :]) for x in maps),
            strict=True,
        )
    ]
    expected = torch.stack(runs).reshape(*lead, ACTIONS, PAIRS, ROLES, FILLERS)
    same_with_gradients(by_action(objects, *maps), expected, [objects, *maps])


@pytest.mark.parametrize("lead", [(), (3,)])
def test_all_heads_are_one_linear_map(lead, weights, normal):
    maps, objects = weights(*lead), normal(*lead, ACTIONS, PAIRS, OBJECTS, ROLES, FILLERS)
    whole = update_map(read_map(*maps[:2]), write_map(*maps[2:]))
    found = torch.einsum("...abtrf,...atrfsg->...absg", objects, whole)
    same_with_gradients(found, by_action(objects, *maps), [objects, *maps])


def test_numpy_arrays_give_what_tensors_give(weights, normal):
    maps = [x.detach() for x in weights()]
    objects, action = normal(PAIRS, OBJECTS, ROLES, FILLERS).detach(), normal(PAIRS, ACTIONS).detach()
    grouped = normal(ACTIONS, PAIRS, OBJECTS, ROLES, FILLERS).detach()
    for function, inputs in (
        (attention, [objects, action, *maps]),
        (by_action, [grouped, *maps]),
        (lambda *x: update_map(read_map(*x[:2]), write_map(*x[2:])), maps),
    ):
        found = function(*(x.numpy() for x in inputs))
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, function(*inputs).numpy(), rtol=1e-12, atol=1e-12)


def test_it_needs_no_torch():
    code = """
import sys
import numpy as np
from tpr_attention.functional import action
print(action.read(np.ones((1, 1, 1)), np.ones(1), np.ones((1, 1)), np.ones((1, 1, 1))).item(), "torch" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "1.0 False\n"
