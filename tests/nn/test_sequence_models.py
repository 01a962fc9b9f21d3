"""Blocks, encoder and decoder: roles stay apart, padding does not matter, streams are the whole, and they train."""

import pytest
import torch
from torch import nn

from tpr_attention.nn import (
    CleanUp,
    FillerFeedForward,
    RoleEmbedding,
    TPRAttention,
    TPRBlock,
    TPRDecoder,
    TPREncoder,
    shifted,
)


@pytest.mark.parametrize("across_roles", [False, True])
def test_a_feed_forward_keeps_roles_apart_unless_told(across_roles, normal):
    layer, objects = FillerFeedForward(4, 3, across_roles=across_roles).double(), normal(2, 4, 3)
    reached = torch.autograd.grad(layer(objects)[:, 0].sum(), objects)[0].abs().sum((0, 2)) > 0
    assert reached.tolist() == [True, across_roles, across_roles, across_roles]
    update = FillerFeedForward(8, 16, across_roles=across_roles)(torch.randn(500, 8, 16))
    assert 0.4 < update.std().item() < 1.1


def test_a_block_adds_both_updates(normal, as_users_run_it):
    torch.manual_seed(0)
    block = TPRBlock(TPRAttention(4, 3, 2), FillerFeedForward(4, 3)).double()
    objects = normal(2, 6, 4, 3)
    inner = objects + block.attention(block.attention_norm(objects))
    expected = inner + block.feed_forward(block.feed_forward_norm(inner))
    torch.testing.assert_close(block(objects), expected)
    first, state = block.stream(objects[:, :2])
    torch.testing.assert_close(torch.cat([first, block.stream(objects[:, 2:], state)[0]], 1), expected)
    only = TPRBlock(block.attention)
    torch.testing.assert_close(only.double()(objects), objects + block.attention(block.attention_norm(objects)))
    memory = normal(2, 3, 4, 3)
    asked = block.attention(block.attention_norm(objects), memory=block.attention_norm(memory))
    torch.testing.assert_close(only(objects, memory=memory), objects + asked)
    with pytest.raises(TypeError, match="attention: expected a TPRAttention, got Linear"):
        TPRBlock(nn.Linear(3, 3))


def test_an_encoder_ignores_padding(normal):
    torch.manual_seed(0)
    encoder = TPREncoder(4, 3, 2, 2, attention={"match": "softmax"}).double()
    objects = normal(2, 5, 4, 3)
    padded = torch.cat([objects, normal(2, 2, 4, 3)], 1)
    mask = torch.tensor([[True] * 5 + [False] * 2] * 2)
    torch.testing.assert_close(encoder(padded, mask=mask)[:, :5], encoder(objects))
    seen = encoder.inspect(objects)
    assert [one.match_weights.shape for one in seen] == [(2, 2, 5, 5)] * 2
    torch.testing.assert_close(seen[0].output, encoder.blocks[0].attention(encoder.blocks[0].attention_norm(objects)))


@pytest.mark.parametrize("attention", [{}, {"match": "softmax"}, {"num_matches": 2}, {"write": "delta"}])
def test_a_decoder_streams_what_it_says_at_once(attention, generator):
    torch.manual_seed(0)
    decoder = TPRDecoder(11, 3, 4, 2, 2, attention=attention).double()
    tokens = torch.randint(11, (2, 12), generator=generator)
    expected, state, found = decoder(tokens), None, []
    for start, stop in ((0, 1), (1, 6), (6, 7), (7, 12)):
        logits, state = decoder.stream(tokens[:, start:stop], state)
        found.append(logits)
    torch.testing.assert_close(torch.cat(found, 1), expected)
    torch.testing.assert_close(decoder(tokens[:, :5]), expected[:, :5])
    padded = torch.cat([torch.full((2, 3), 7), tokens], 1)
    mask = torch.tensor([[False] * 3 + [True] * 12] * 2)
    torch.testing.assert_close(decoder(padded, mask=mask)[:, 3:], expected)
    assert state.detach().tokens.tolist() == tokens[:, -2:].tolist()
    assert len(decoder.inspect(tokens)) == 2


def test_a_decoder_starts_with_induction_heads(generator):
    """Before any training, the first head finds what followed the last time that this token was there."""
    torch.manual_seed(0)
    decoder = TPRDecoder(16, 2, 16, 1, 1)
    tokens = torch.stack([torch.randperm(16, generator=generator) for _ in range(8)])
    again = torch.cat([tokens, tokens[:, 3:4]], 1)
    seen = decoder.inspect(again)[0]
    assert (seen.match_weights[:, 0, -1].argmax(-1) == 4).all()
    found = seen.extracted[:, -1, 0] @ decoder.embedding.fillers.T
    assert torch.equal(found.argmax(-1), tokens[:, 4])


def test_tokens_that_are_refused(as_users_run_it):
    embedding = RoleEmbedding(5, 2, 3)
    for tokens, error, words in (
        (torch.ones(4, 2), TypeError, "tokens: expected whole numbers from -1 to 4 .* got torch.float32"),
        ([[0, 1]], TypeError, "tokens: .* got list"),
        (torch.ones(4, 3, dtype=torch.long), ValueError, r"tokens: .* with r=2, got shape \[4, 3\]"),
        (torch.tensor([[5, 0]]), ValueError, "tokens: .* got 5"),
        (torch.tensor([[-2, 0]]), ValueError, "tokens: .* got -2"),
    ):
        with pytest.raises(error, match=words):
            embedding(tokens)
    assert shifted(torch.tensor([[1, 2]]), 3).tolist() == [[[1, -1, -1], [2, 1, -1]]]


@pytest.mark.parametrize("options", [{}, {"match": "softmax"}, {"num_matches": 1, "unit_fillers": True}])
def test_the_layer_learns_to_recall_at_once(options, generator, as_users_run_it):
    """Keys with values, then keys alone: with its default start the layer finds all values after 80 steps."""
    torch.manual_seed(0)
    embedding, layer, answer = RoleEmbedding(40, 2, 32), TPRAttention(2, 32, 2, **options), nn.Linear(64, 20)
    parameters = [*embedding.parameters(), *layer.parameters(), *answer.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=1e-2)
    for _ in range(80):
        keys = torch.rand(32, 20, generator=generator).argsort(1)[:, :10]
        values = torch.randint(20, (32, 10), generator=generator)
        empty = torch.full_like(keys, -1)
        tokens = torch.cat([torch.stack([keys, 20 + values], -1), torch.stack([keys, empty], -1)], 1)
        objects = embedding(tokens)
        logits = answer((objects + layer(objects))[:, 10:].flatten(-2))
        optimiser.zero_grad()
        nn.functional.cross_entropy(logits.flatten(0, 1), values.flatten()).backward()
        optimiser.step()
    assert (logits.argmax(-1) == values).float().mean().item() > 0.98


@pytest.mark.parametrize("options", [{"form": "parallel"}, {"match": "softmax"}])
def test_exports_with_a_length_that_may_vary(options, generator, as_users_run_it):
    torch.manual_seed(0)
    block = TPRBlock(TPRAttention(4, 3, 2, **options), FillerFeedForward(4, 3)).eval()
    length = torch.export.Dim("length", min=2, max=512)
    objects = torch.randn(2, 9, 4, 3, generator=generator)
    exported = torch.export.export(block, (objects,), dynamic_shapes=({1: length},)).module()
    for steps in (2, 9, 100):
        objects = torch.randn(2, steps, 4, 3, generator=generator)
        torch.testing.assert_close(exported(objects), block(objects))


def test_a_code_book_repairs_what_noise_did(generator):
    """The codes are the heads' roles, as the documentation says."""
    codes = torch.eye(8)
    clean_up = CleanUp(num_roles=2, filler_dim=8, num_codes=8)
    with torch.no_grad():
        clean_up.codes.copy_(codes.expand(2, 8, 8))
        clean_up.sharpness.fill_(4.0)
    layer = TPRAttention(2, 8, 2, clean_up=clean_up, normalise="unit", exclude_self=True)
    objects = codes[torch.randint(8, (4, 6, 2), generator=generator)]
    noisy = objects + 0.15 * torch.randn(objects.shape, generator=generator)
    extracted = layer.inspect(noisy).extracted[:, 1:]
    assert (extracted.square().sum(-1).sqrt() - 1).abs().median() < 0.05
