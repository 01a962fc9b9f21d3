"""Codes that are drawn to see whether they are right, and codes that are not needed."""

import copy

import pytest
import torch

from tpr_attention.nn.images import verification
from tpr_attention.nn.images.pose_memory import ANGLE, FAR, SCALE, SHAPE
from tpr_attention.nn.images.verification import drop_stand_ins, read_images, verified

from .codes import COUNTS


@pytest.fixture
def own(found):
    """A memory of one's own, what a decoder reads of 120 objects, and their masks: two triangles without symmetry."""
    memory, decoder, objects, _ = copy.deepcopy(found)
    line = 12 * torch.linspace(-1, 1, memory.templates.shape[-1])
    u, v = line, line.unsqueeze(-1)
    for number, steep in enumerate((1.5, 4.0)):
        inside = torch.minimum(torch.minimum(8 - v, v + 7 - 2 * u), v + 9 + steep * u)
        memory.templates[number] = 4 * inside.clamp(-3, 3)
    codes = memory.read(objects[:120], decoder)
    return memory, decoder, objects[:120], codes, drawn(memory, codes)


def drawn(memory, codes):
    return (memory.field(codes) > 0).float()


@pytest.mark.parametrize("wrong", [0, 1, 2, 3, 4])
def test_codes_that_are_read_wrongly_are_found_by_drawing(wrong, own):
    """Another shape, scale or angle, or a place beside the true one."""
    memory, _, _, codes, masks = own
    given = codes.clone()
    limits = [2, 3, 5, 4, 2]
    given[::2, wrong] = (given[::2, wrong] + 1) % limits[wrong] if wrong < 3 else (given[::2, wrong] - 1).clamp_min(0)
    assert (given != codes).any()
    assert torch.equal(verified(memory, given, masks), codes)
    assert torch.equal(verified(memory, codes, masks), codes)


@pytest.mark.parametrize("count", [0, 3])
def test_images_without_an_outline_keep_their_codes(count, own):
    memory, decoder, objects, codes, masks = own
    given, black = codes[:count], torch.zeros_like(masks[:count])
    assert torch.equal(verified(memory, given, black), given)
    assert torch.equal(read_images(memory, decoder, objects[:count], black), given)


def test_wrong_pixels_are_counted_along_outlines(own, monkeypatch):
    """For every code that is tried, whatever the number of images that are drawn at once."""
    memory, _, _, codes, masks = own
    tried = torch.stack([codes, codes.roll(1, 0), codes.roll(2, 0)], 1)
    outline = verification.border(masks)
    expected = [((drawn(memory, some) != masks) & outline).sum((1, 2)) for some in tried.unbind(1)]
    least, which = torch.stack(expected, 1).min(1)
    for at_once in (21, 10_000):
        monkeypatch.setattr(verification, "AT_ONCE", at_once)
        best, errors = verification._best(memory, tried, masks)
        assert torch.equal(errors, least.float())
        assert torch.equal(best, tried[torch.arange(len(tried)), which])


def half_turns(memory):
    """Templates that look the same after half a turn."""
    line = torch.linspace(-1, 1, memory.templates.shape[-1])
    memory.templates[:2] = torch.where((line.abs() < 0.2).unsqueeze(-1) & (line.abs() < 0.6), 9.0, -9.0)


def test_an_angle_far_from_all_codes_is_that_of_the_same_outline(own):
    memory, decoder, objects, codes, _ = own
    half_turns(memory)
    objects[:, 2] = -objects[:, 2]  # half a turn
    read = read_images(memory, decoder, objects, drawn(memory, codes))
    assert torch.equal(read, codes)
    assert not torch.equal(memory.read(objects, decoder), codes)


def test_codes_that_are_needed_stay(own):
    memory, _, _, codes, masks = own
    before = {name: tensor.clone() for name, tensor in memory.named_buffers()}
    drop_stand_ins(memory, masks, codes)
    assert memory.counts == COUNTS
    for name, tensor in before.items():
        torch.testing.assert_close(memory.get_buffer(name), tensor, msg=name)


def test_a_shape_that_another_one_draws_is_dropped(own):
    """The copy has some of the images, and one scale only."""
    memory, _, _, codes, masks = own
    kept = {name: tensor.clone() for name, tensor in memory.named_buffers()}
    for table in (memory.shapes, memory.log_scales, memory.templates):
        table[2] = table[1].clone()
    memory.log_scales[1] = FAR
    memory.log_scales[1, 0] = memory.log_scales[2, 1]
    given = codes.clone()
    given[codes[:, SHAPE] == 1, SHAPE] = 2
    copied = (codes[:, SHAPE] == 1) & (codes[:, SCALE] == 1)
    given[copied, SHAPE], given[copied, SCALE] = 1, 0
    assert torch.equal(drawn(memory, given), masks)
    drop_stand_ins(memory, masks, given)
    for name in ("shapes", "templates", "log_scales"):
        torch.testing.assert_close(memory.get_buffer(name), kept[name], msg=name)


def test_an_angle_that_another_one_draws_is_dropped(own):
    """Where all outlines are the same after half a turn; of two angles the rarer one."""
    memory, _, _, codes, _ = own
    half_turns(memory)
    memory.angles[5] = memory.angles[1] + torch.pi
    masks = drawn(memory, codes)
    given = codes.clone()
    given[(codes[:, ANGLE] == 1).nonzero().flatten()[:3], ANGLE] = 5
    drop_stand_ins(memory, masks, given)
    assert memory.counts["angles"] == 5
    assert (memory.angles[:5].diff() > 0).all()
    assert memory.angles[4] < 2


def test_what_no_image_has_is_dropped(own):
    memory, _, _, codes, masks = own
    some = codes[:, ANGLE] != 3
    drop_stand_ins(memory, masks[some], codes[some])
    assert memory.counts["angles"] == 4
    now = codes[some]
    now[:, ANGLE] -= (now[:, ANGLE] > 3).long()
    assert torch.equal(drawn(memory, now), masks[some])
