"""Codes that are drawn to see whether they are right."""

import copy
from math import pi

import pytest
import torch

from tpr_attention.nn.images.codes import verification
from tpr_attention.nn.images.codes.pose_memory import ANGLE, SHAPE, PoseMemory
from tpr_attention.nn.images.codes.verification import codes_of, verified

from .known_codes import readable_decoder


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


@pytest.fixture(scope="module")
def turned():
    """A memory of a square and a kite, both at 39 angles, the decoder it belongs to, and its codes at one place."""
    decoder = readable_decoder()
    memory = PoseMemory(decoder, resolution=129)
    memory.shapes[:2] = torch.eye(2, memory.shapes.shape[1])
    memory.log_scales[:2, 0] = 0.0
    memory.angles[:39] = 2 * pi / 39 * torch.arange(39) - 3
    memory.places[:, 0] = torch.tensor([31.3, 30.8])
    memory.colours[0] = 1.0
    memory.reach.fill_(16.0)
    line = 16 * torch.linspace(-1 - 2 / 126, 1 + 2 / 126, 129)
    u, v = line, line.unsqueeze(-1)
    square = torch.minimum(13.3 - u.abs(), 13.3 - v.abs())
    kite = torch.minimum(8 - v, v + 10 - 2 * u.abs())
    memory.templates[:2] = 4 * torch.stack([square, kite]).clamp(-3, 3)
    memory.orders[:2] = torch.tensor([4, 1])
    codes = torch.zeros(78, 6, dtype=torch.long)
    codes[:, SHAPE], codes[:, ANGLE] = torch.arange(78) // 39, torch.arange(78) % 39
    return memory, decoder, codes


def test_angles_that_look_alike_are_told_apart_by_drawing(turned):
    """Whichever of them was read. Turned by ten steps, a square is a quarter of a step from where it was."""
    memory, decoder, codes = turned
    masks = drawn(memory, codes)
    assert len(masks[:39].unique(dim=0)) == 39
    others = torch.randn(78, 5, decoder.filler_dim, generator=torch.Generator().manual_seed(0))
    for steps in (0, 10, 20):
        given = codes.clone()
        given[:39, ANGLE] = (given[:39, ANGLE] + steps) % 39
        read = memory.objects(given, others, decoder)
        assert torch.equal(codes_of(memory, decoder, read, masks), codes)


def test_nothing_is_drawn_where_no_angles_look_alike(turned, monkeypatch):
    memory, decoder, codes = copy.deepcopy(turned)
    memory.angles[9:] = 1e6
    assert not memory.look_alike.any()
    monkeypatch.delattr(verification, "_best")
    few = codes[codes[:, ANGLE] < 9]
    read = memory.objects(few, torch.ones(len(few), 5, decoder.filler_dim), decoder)
    assert torch.equal(codes_of(memory, decoder, read, drawn(memory, few)), few)


@pytest.mark.parametrize(("count", "alike"), [(0, []), (1, []), (9, []), (10, [0]), (20, [0, 2]), (39, [0, 2])])
def test_angles_look_alike_beyond_the_symmetry_of_a_shape(count, alike, turned):
    """In whatever order they are, and if one was found twice. Shapes that are not there have none."""
    memory = copy.deepcopy(turned[0])
    memory.angles[count:] = 1e6
    memory.shapes[2] = 3.0
    memory.orders[:4] = torch.tensor([4, 1, 2, 4])
    expected = torch.zeros(len(memory.orders), dtype=torch.bool)
    expected[alike] = True
    assert torch.equal(memory.look_alike, expected)
    memory.angles[:count] = memory.angles[:count].flip(0)
    assert torch.equal(memory.look_alike, expected)
    if count > 2:
        memory.angles[count] = memory.angles[0] + 1e-3
        assert torch.equal(memory.look_alike, expected)


def test_angles_between_those_of_a_symmetry_do_not_look_alike(turned):
    """They are as far apart as others are: of 0, 10 and 130 degrees, 40 are left of the last modulo 90."""
    memory = copy.deepcopy(turned[0])
    memory.angles.fill_(1e6)[:3] = torch.tensor([0.0, 10.0, 130.0]).deg2rad()
    assert not memory.look_alike.any()


def test_outlines_are_those_of_pixels_that_are_on(turned):
    """However soft an image is."""
    memory, decoder, codes = turned
    masks = drawn(memory, codes)
    read = memory.objects(codes, torch.ones(len(codes), 5, decoder.filler_dim), decoder)
    soft = 0.1 + 0.8 * masks + 0.1 * torch.rand(masks.shape, generator=torch.Generator().manual_seed(0))
    assert torch.equal(codes_of(memory, decoder, read, soft), codes)
