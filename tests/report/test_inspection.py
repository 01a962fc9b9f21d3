"""What is shown of a layer of heads is its function, and nothing that could be otherwise."""

import numpy as np
import pytest
from einops import einsum

from tests.report.made_up import head_weights as weights
from tpr_attention.report.inspection import Head, Names, balanced, combined_map, inspect_weights


def function(action, queries, ids, filler_map, new_role):
    """A head under an action as one tensor: from objects, roles and fillers to a role and a filler."""
    found = np.multiply.outer(filler_map, new_role[action])
    for query, ident in zip(queries[:, action], ids, strict=True):
        found = np.multiply.outer(np.multiply.outer(ident, query), found)
    return found


@pytest.mark.parametrize("order", [1, 2, 3])
def test_balancing_changes_no_head(order):
    stored = weights(order)
    (layer,) = inspect_weights(stored).layers
    queries, ids, filler_map, role_map = (
        stored[f"attention.{name}"].astype(float) for name in ("query_map", "id_query", "filler_map", "role_map")
    )
    for place, head in enumerate(layer.heads):
        asked = queries[place].reshape(order, 5, 6), ids[place].reshape(order, 2), filler_map[place], role_map[place]
        for action in range(5):
            shown = function(action, head.queries, head.ids, head.filler_map, head.new_role)
            np.testing.assert_allclose(shown, function(action, *asked), atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_size_and_sign_are_in_the_first_id(order):
    for head in inspect_weights(weights(order)).layers[0].heads:
        for part in (head.new_role, head.filler_map, *head.ids[1:]):
            assert part.flat[np.abs(part).argmax()] == pytest.approx(1)
        for query in head.queries:
            assert query.max() == pytest.approx(np.abs(query).max()) == pytest.approx(1)
            np.testing.assert_allclose(np.abs(query).max(-1), np.abs(head.new_role).max(-1))


def test_equal_functions_look_the_same():
    """Size and sign move between the factors of a head, and between query and new role under each action."""
    maps = [part.astype(float) for part in weights(heads=1).values()]
    query, ident, role, filler_map = (part[0] for part in maps)
    by_action = np.array([2.0, -3.0, 0.5, -1.0, 7.0])[:, None]
    one = balanced(Head(query[None], ident[None], filler_map, role))
    other = balanced(Head(query[None] * by_action * -2, ident[None] * 4, filler_map * -0.5, role / by_action / 4))
    for name in ("queries", "ids", "filler_map", "new_role"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-12)


def test_a_head_that_does_little_has_small_weights():
    query, role = np.ones((1, 2, 3)), np.ones((2, 3))
    role[1] = 1e-8
    head = balanced(Head(query, np.ones((1, 2)), np.eye(3), role))
    assert np.abs(head.queries[0, 1]).max() == np.abs(head.new_role[1]).max() == pytest.approx(1e-4)
    dead = balanced(Head(query, np.ones((1, 2)), np.eye(3), 0 * role))
    assert not dead.queries.any()
    assert not dead.ids.any()
    assert not dead.new_role.any()


def test_the_combined_map_is_the_sum_of_heads():
    maps = {name.removeprefix("attention."): part for name, part in weights().items()}
    found = combined_map(**maps)
    blocks = einsum(
        *(maps[name] for name in ("id_query", "query_map", "filler_map", "role_map")),
        "h t, h a r, h f g, h a s -> a t r s f g",
    )
    whole = 3 * (found.copied**2 + found.mixed**2)  # the two parts are orthogonal
    np.testing.assert_allclose(whole, np.square(blocks).sum((-2, -1)), rtol=1e-5)


def test_the_combined_map_of_appendix_d():
    roles, fillers = np.eye(5), np.eye(3)
    found = combined_map(np.stack([roles] * 2), np.eye(2), np.stack([-fillers, fillers]), np.stack([roles] * 2))
    expected = np.zeros((5, 2, 5, 5))
    for acted in range(5):
        expected[acted, :, acted, acted] = -1, 1
    np.testing.assert_array_equal(found.copied, expected)
    assert not found.mixed.any()


def test_layers_are_found_wherever_they_are():
    stack = [f"stack.blocks.{block}.heads.{group}." for block, group in [(0, 0), (2, 0), (10, 0), (10, 1)]]
    stored = {name: part for prefix in stack for name, part in weights(1 + (prefix[-2] == "1"), 2, prefix).items()}
    stored |= {"input.weight": np.zeros((3, 3)), "lonely.query_map": np.zeros((2, 5, 6))}
    layers = inspect_weights(stored).layers
    assert [f"{layer.name}." for layer in layers] == stack
    assert [layer.combined is None for layer in layers] == [False, False, False, True]
    assert [layer.heads[0].queries.shape[0] for layer in layers] == [1, 1, 1, 2]


def test_of_a_normalised_layer_the_sizes_of_what_is_read_are_left_out():
    stored = weights()
    other = stored | {"attention.id_query": 5 * stored["attention.id_query"]}
    other["attention.query_map"] = stored["attention.query_map"] * np.array([1, 2, 3, 4, 5])[:, None]
    shown = [inspect_weights(one, normalised=["attention"]).layers[0] for one in (stored, other)]
    for one, two in zip(*(layer.heads for layer in shown), strict=True):
        for name in ("queries", "ids", "filler_map", "new_role"):
            np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-6)
    assert [layer.combined for layer in shown] == [None, None]


def test_names_are_given_where_they_fit():
    five, six = "abcde", "uvwxyz"
    names = inspect_weights(weights(), Names(five, ["left", "right"], six)).layers[0].names
    assert names == (tuple(five), ("left", "right"), tuple(six))
    names = inspect_weights(weights(prefix=""), Names(actions=six)).layers[0].names
    assert names.actions[-1] == "action 5"
    assert names.objects == ("object 1", "object 2")
    assert names.roles[-1] == "role 6"


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"update.weight": np.zeros((3, 3))},
        weights(2) | {"attention.filler_map": np.zeros((3, 3, 3))},
        weights() | {"attention.id_query": np.full((3, 2), np.nan)},
    ],
    ids=["nothing", "another model", "other ranks", "not finite"],
)
def test_without_heads_there_is_nothing_to_show(stored):
    assert inspect_weights(stored) is None
