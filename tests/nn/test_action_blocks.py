"""Heads of higher order, blocks and stacks are what they say: App. C's memory, a copy, and blocks in turn."""

import pytest
import torch

from tpr_attention.functional import memorise_general, rebind, tag
from tpr_attention.functional.general import match_general
from tpr_attention.nn import ActionTPRAttention, ActionTPRBlock, ActionTPRStack, HigherOrderActionTPRAttention

SIZES = 4, 5, 3
EYE = torch.eye(3, dtype=torch.float64)


def random(module, generator):
    for parameter in module.parameters():
        parameter.data.normal_(std=0.5, generator=generator)
    return module


def stack(**options):
    return ActionTPRStack(
        ActionTPRBlock(ActionTPRAttention(*SIZES, 6, **options)),
        ActionTPRBlock(
            ActionTPRAttention(*SIZES, 4, **options),
            ActionTPRAttention(*SIZES, 3, normalise="unit", **options),
            HigherOrderActionTPRAttention(*SIZES, 4, **options),
        ),
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_layer_is_the_general_memory_of_appendix_c(order, normal, generator):
    """The j-fold power of the tagged memory, built, and a filler map of j + 1 axes; values and gradients."""
    layer = random(HigherOrderActionTPRAttention(*SIZES, 5, order=order, num_objects=3, dtype=torch.float64), generator)
    objects, action = normal(3, 5, 3), normal(4)
    once = memorise_general(tag(objects, EYE), order=3, copies=1)  # sum_i id^i (x) O_i
    power = memorise_general(once.unsqueeze(0), order=3, copies=order)
    expected = 0
    for head in range(5):
        queries = [
            query for k in range(order) for query in (layer.id_query[head, k], action @ layer.query_map[head, k])
        ]
        modes = [3 * k + mode for k in range(order) for mode in (0, 1)]
        product = match_general(power, queries, order=3, copies=order, free=order, modes=modes)
        expected = expected + rebind(
            product.flatten(), layer.filler_map[head].flatten(0, -2), action @ layer.role_map[head]
        )
    output = layer(objects, action)
    torch.testing.assert_close(output, expected)
    inputs = [objects, action, *layer.parameters()]
    for found, wanted in zip(
        torch.autograd.grad(output.square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


def test_a_head_of_second_order_is_the_categorical_interaction(normal):
    """Untrained: it writes sum_ij f_shape[i] M[k, i, j] f_colour[j] where it is told to."""
    layer = HigherOrderActionTPRAttention(1, 3, 3, num_heads=1, num_objects=1, dtype=torch.float64)
    mixing, obj = normal(3, 3, 3), normal(3, 3)
    with torch.no_grad():
        layer.query_map.copy_(EYE[:2].reshape(1, 2, 1, 3))
        layer.id_query.fill_(1)
        layer.role_map.copy_(EYE[2].reshape(1, 1, 3))
        layer.filler_map[0].copy_(mixing.permute(1, 2, 0))
    written = layer(obj.unsqueeze(0), torch.ones(1, dtype=torch.float64))
    torch.testing.assert_close(written[2], torch.einsum("i, kij, j -> k", obj[0], mixing, obj[1]))
    assert written[:2].abs().max() == 0


@pytest.mark.parametrize(("normalise", "length"), [("unit", 1), ("rms", 3**0.5)])
def test_a_normalised_head_reads_directions(normalise, length, normal):
    """With a query that is the sum of two roles: the numerical interaction, untrained."""
    layer = ActionTPRAttention(1, 3, 3, num_heads=1, num_objects=1, normalise=normalise, dtype=torch.float64)
    obj = normal(3, 3)
    with torch.no_grad():
        layer.query_map.copy_((EYE[0] + EYE[1]).reshape(1, 1, 3))
        layer.id_query.fill_(1)
        layer.role_map.copy_(EYE[2].reshape(1, 1, 3))
        layer.filler_map[0].copy_(EYE)
    written = layer(obj.unsqueeze(0), torch.ones(1, dtype=torch.float64))
    expected = length * torch.nn.functional.normalize(obj[0] + obj[1], dim=0)
    torch.testing.assert_close(written[2], expected, rtol=0, atol=1e-5)
    for dtype, long in ((torch.float16, 300.0), (torch.float32, 1e30)):
        assert layer.to(dtype)(torch.zeros(1, 3, 3, dtype=dtype), torch.ones(1, dtype=dtype)).abs().max() == 0
        far = layer.to(dtype)(long * torch.ones(1, 3, 3, dtype=dtype), torch.ones(1, dtype=dtype))[2]
        torch.testing.assert_close(far, torch.full((3,), length * 3**-0.5, dtype=dtype), rtol=1e-3, atol=0)


def test_a_block_adds_its_heads_to_the_first_object(normal, generator):
    block = random(stack(dtype=torch.float64).blocks[1], generator)
    objects, action = normal(2, 7, 2, 5, 3), normal(2, 7, 4)
    output = block(objects, action)
    expected = objects[..., 0, :, :] + sum(heads(objects, action) for heads in block.heads)
    torch.testing.assert_close(output[..., 0, :, :], expected)
    assert torch.equal(output[..., 1, :, :], objects[..., 1, :, :])


def test_a_stack_is_its_blocks_in_turn(normal, generator):
    """Values; and gradients of all but the new roles, which learn from the answer alone."""
    layers = random(stack(dtype=torch.float64), generator)
    objects, action = normal(7, 2, 5, 3), normal(7, 4)
    output, expected = layers(objects, action), objects
    for block in layers.blocks:
        expected = block(expected, action)
    torch.testing.assert_close(output, expected)
    names = dict(layers.named_parameters())
    found = torch.autograd.grad(output.square().sum(), list(names.values()))
    wanted = torch.autograd.grad(expected.square().sum(), list(names.values()))
    same = {name: torch.allclose(one, other) for name, one, other in zip(names, found, wanted, strict=True)}
    assert [name for name in same if not same[name]] == ["blocks.0.heads.0.role_map"]


def test_untouched_roles_stay_exact_copies_in_a_trained_stack(normal, generator):
    """Bit for bit, also for objects unlike any that were trained with."""
    layers = stack(dtype=torch.float64)
    actions = torch.eye(4, dtype=torch.float64)[torch.arange(64) % 4]
    objects = normal(64, 2, 5, 3).detach()
    target = objects[:, 0].clone()
    for pair, acted in enumerate(actions.argmax(-1).tolist()):
        target[pair, acted] = objects[pair, 1, acted]
        if acted < 2:  # the last role depends on the first two
            target[pair, 4] = target[pair, 0] * target[pair, 1]
    optimiser = torch.optim.Adam(layers.parameters(), lr=0.01)
    losses = []
    for _ in range(300):
        loss = (layers(objects, actions)[:, 0] - target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]
    fresh = 1e3 * normal(64, 2, 5, 3).detach()
    answer = layers(fresh, actions)[:, 0]
    touched = {0: {0, 4}, 1: {1, 4}, 2: {2}, 3: {3}}
    for pair, acted in enumerate(actions.argmax(-1).tolist()):
        for role in range(5):
            assert torch.equal(answer[pair, role], fresh[pair, 0, role]) == (role not in touched[acted])


def test_what_does_not_fit_is_refused(as_users_run_it):
    heads = ActionTPRAttention(*SIZES, 2)
    with pytest.raises(
        ValueError, match=r"heads: expected one or more, all for the same .*\[4, 5, 3, 2\], \[4, 6, 3, 2\]"
    ):
        ActionTPRBlock(heads, ActionTPRAttention(4, 6, 3, 2))
    with pytest.raises(ValueError, match="heads: expected one or more"):
        ActionTPRBlock()
    with pytest.raises(ValueError, match="blocks: expected one or more"):
        ActionTPRStack(ActionTPRBlock(heads), ActionTPRBlock(ActionTPRAttention(*SIZES, 2, num_objects=3)))
    with pytest.raises(TypeError, match="heads: expected ActionHeads modules, got list"):
        ActionTPRBlock([heads])
    with pytest.raises(TypeError, match="blocks: expected ActionTPRBlock modules, got ActionTPRAttention"):
        ActionTPRStack(heads)
    for other in ("count", True, "length", ["unit"]):
        with pytest.raises(ValueError, match=r"normalise: expected None or one of \['rms', 'unit'\], got "):
            ActionTPRAttention(*SIZES, 2, normalise=other)
    with pytest.raises(ValueError, match="order: expected at least 1, got 0"):
        HigherOrderActionTPRAttention(*SIZES, 2, order=0)
    with pytest.raises(ValueError, match=r"objects: expected \[\*batch t r f\]"):
        ActionTPRStack(ActionTPRBlock(heads))(torch.ones(2, 5, 4), torch.ones(4))
    with pytest.raises(ValueError, match=r"objects: expected \[\*batch t r f\]"):
        ActionTPRStack(ActionTPRBlock(heads))(torch.ones(5), torch.ones(4))
