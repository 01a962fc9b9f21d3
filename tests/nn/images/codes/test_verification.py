"""Codes that are drawn to see whether they are right."""

import copy

import pytest
import torch

from tpr_attention.nn.images.codes import verification
from tpr_attention.nn.images.codes.verification import verified


@pytest.fixture
def own(found):
    """A memory of one's own, the codes of 120 objects, and their masks: two triangles without symmetry."""
    memory, decoder, objects, _ = copy.deepcopy(found)
    line = 12 * torch.linspace(-1, 1, memory.templates.shape[-1])
    u, v = line, line.unsqueeze(-1)
    for number, steep in enumerate((1.5, 4.0)):
        inside = torch.minimum(torch.minimum(8 - v, v + 7 - 2 * u), v + 9 + steep * u)
        memory.templates[number] = 4 * inside.clamp(-3, 3)
    codes = memory.read(objects[:120], decoder)
    return memory, codes, drawn(memory, codes)


def drawn(memory, codes):
    return (memory.field(codes) > 0).float()


@pytest.mark.parametrize("wrong", [0, 1, 2, 3, 4])
def test_codes_that_are_read_wrongly_are_found_by_drawing(wrong, own):
    """Another shape, scale or angle, or a place beside the true one."""
    memory, codes, masks = own
    given = codes.clone()
    limits = [2, 3, 5, 4, 2]
    given[::2, wrong] = (given[::2, wrong] + 1) % limits[wrong] if wrong < 3 else (given[::2, wrong] - 1).clamp_min(0)
    assert (given != codes).any()
    assert torch.equal(verified(memory, given, masks), codes)
    assert torch.equal(verified(memory, codes, masks), codes)


@pytest.mark.parametrize("count", [0, 3])
def test_images_without_an_outline_keep_their_codes(count, own):
    memory, codes, masks = own
    given, black = codes[:count], torch.zeros_like(masks[:count])
    assert torch.equal(verified(memory, given, black), given)


def test_wrong_pixels_are_counted_along_outlines(own, monkeypatch):
    """For every code that is tried, whatever the number of images that are drawn at once."""
    memory, codes, masks = own
    tried = torch.stack([codes, codes.roll(1, 0), codes.roll(2, 0)], 1)
    outline = verification.border(masks)
    expected = [((drawn(memory, some) != masks) & outline).sum((1, 2)) for some in tried.unbind(1)]
    least, which = torch.stack(expected, 1).min(1)
    for at_once in (21, 10_000):
        monkeypatch.setattr(verification, "AT_ONCE", at_once)
        best, errors = verification._best(memory, tried, masks)
        assert torch.equal(errors, least.float())
        assert torch.equal(best, tried[torch.arange(len(tried)), which])
