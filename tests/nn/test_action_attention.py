"""ActionTPRAttention is appendix D."""

import pytest
import torch

from tpr_attention.functional import match_general, memorise_general, rebind, tag
from tpr_attention.nn import ActionTPRAttention


def constructed(num_roles=5, filler_dim=3):
    """The solution of appendix D: erase the acted role of object 1, write there what object 2 has."""
    layer = ActionTPRAttention(num_roles, num_roles, filler_dim, num_heads=2, dtype=torch.float64)
    roles, fillers = torch.eye(num_roles), torch.eye(filler_dim)
    layer.load_state_dict(
        {
            "query_map": torch.stack([roles, roles]),
            "role_map": torch.stack([roles, roles]),
            "filler_map": torch.stack([-fillers, fillers]),
            "id_query": torch.eye(2),
        }
    )
    return layer


def test_the_constructed_layer_substitutes_exactly_untrained(normal):
    objects = normal(50, 2, 5, 3)
    acted = torch.arange(50) % 5
    output = objects[:, 0] + constructed()(objects, torch.eye(5, dtype=torch.float64)[acted])
    expected = objects[:, 0].detach().clone()
    expected[torch.arange(50), acted] = objects[torch.arange(50), 1, acted].detach()
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-15)


def test_the_layer_is_the_tagged_memory_of_appendix_d(normal, generator):
    layer = ActionTPRAttention(4, 5, 3, num_heads=6, num_objects=3, dtype=torch.float64)
    for parameter in layer.parameters():
        parameter.data.normal_(generator=generator)
    objects, action = normal(3, 5, 3), normal(4)
    memory = memorise_general(tag(objects, torch.eye(3, dtype=torch.float64)), order=3, copies=1)
    expected = 0
    for head in range(6):
        queries = [layer.id_query[head], action @ layer.query_map[head]]
        filler = match_general(memory, queries, order=3, copies=1, free=1, modes=[0, 1])
        expected = expected + rebind(filler, layer.filler_map[head], action @ layer.role_map[head])
    output = layer(objects, action)
    torch.testing.assert_close(output, expected)
    inputs = [objects, action, *layer.parameters()]
    for found, wanted in zip(
        torch.autograd.grad(output.square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


def test_it_starts_at_the_exact_copy_and_untouched_roles_stay_there(normal):
    """Train on one action only: bit for bit, no other role of the output ever moves."""
    layer = ActionTPRAttention(5, 5, 3, num_heads=4, dtype=torch.float64)
    objects, action = normal(32, 2, 5, 3).detach(), torch.eye(5, dtype=torch.float64)[[2] * 32]
    target = objects[:, 0].clone()
    target[:, 2] = objects[:, 1, 2]
    assert layer(objects, action).abs().max() == 0
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.02)
    losses = []
    for _ in range(300):
        optimiser.zero_grad()
        loss = (objects[:, 0] + layer(objects, action) - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 1e-3 * losses[0]
    untouched = [0, 1, 3, 4]
    assert layer(objects, action)[:, untouched].abs().max() == 0


@pytest.mark.parametrize("batch", [(), (4,), (2, 4), (0,)])
def test_any_leading_batch_axes(batch, normal):
    output = constructed()(normal(*batch, 2, 5, 3), normal(*batch, 5))
    assert output.shape == (*batch, 5, 3)


@pytest.mark.parametrize(
    ("objects", "action", "error", "message"),
    [
        ((4, 3, 5, 3), (4, 5), ValueError, r"objects: expected \[\*batch t r f\] with t=2, r=5, f=3"),
        ((4, 2, 5, 1), (4, 5), ValueError, r"objects: .* got shape \[4, 2, 5, 1\]"),
        ((5, 3), (4, 5), ValueError, "objects: .* got shape"),
        ((4, 2, 5, 3), (5,), ValueError, r"action: expected \[\*batch a\] with a=5, batch=\[4\], got shape \[5\]"),
        ((4, 2, 5, 3), (1, 5), ValueError, r"action: .* got shape \[1, 5\]"),
        ((4, 2, 5, 3), (4, 4), ValueError, r"action: .* got shape \[4, 4\]"),
    ],
)
def test_bad_shapes_are_refused(objects, action, error, message, as_users_run_it):
    with pytest.raises(error, match=message):
        ActionTPRAttention(5, 5, 3, 2)(torch.ones(objects), torch.ones(action))


def test_bad_dtypes_are_refused(as_users_run_it):
    layer, objects = ActionTPRAttention(5, 5, 3, 2), torch.ones(4, 2, 5, 3)
    with pytest.raises(TypeError, match="action: expected a floating-point tensor"):
        layer(objects, torch.ones(4, 5, dtype=torch.long))
    with pytest.raises(TypeError, match=r"action: expected torch.float32 on cpu as filler_map has, got torch.float64"):
        layer(objects, torch.ones(4, 5).double())


@pytest.mark.parametrize("argument", ["num_actions", "num_roles", "filler_dim", "num_heads", "num_objects"])
def test_constructor_errors_name_the_argument(argument):
    counts = {"num_actions": 5, "num_roles": 5, "filler_dim": 3, "num_heads": 2, "num_objects": 2}
    with pytest.raises(ValueError, match=f"{argument}: expected at least 1, got 0"):
        ActionTPRAttention(**(counts | {argument: 0}))
