"""A memory finds the codes that objects were made of, and draws them."""

import copy
from math import log, pi

import pytest
import torch

from tpr_attention.functional.images.phases import position_filler
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.pose_memory import FAR, PoseMemory

SIDE, FILLER = 64, 6
LOG_SCALES = torch.tensor([[-0.7, -0.4, -0.1, 0.0], [-0.5, -0.3, 0.0, 0.0]])  # of the second shape only three count
SCALES = torch.tensor([4, 3])
ANGLES = torch.tensor([-0.9, -0.5, 0.1, 0.6, 1.3])
ACROSS, DOWN = torch.tensor([20.0, 26.5, 31.0, 38.0]), torch.tensor([24.0, 33.0])
COLOURS = torch.eye(3)
COUNTS = {"shapes": 2, "scales": 4, "angles": 5, "places": 4, "colours": 3}


def readable_decoder(**options):
    """Fillers say what a pose is: entry 0 of a scale its logarithm, entries 0 and 1 of an orientation its direction.

    Outlines are steep, and the second shape is smaller.
    """
    decoder = TemplateDecoder(SIDE, 3, FILLER, **{"resolution": 33, **options})
    with torch.no_grad():
        for layer in (decoder.orientation, decoder.scale, decoder.colour):
            layer.weight.zero_()
            layer.bias.zero_()
        decoder.orientation.weight[:, :2] = torch.eye(2)
        decoder.scale.weight[0, 0] = 1
        decoder.colour.weight[:, :3] = torch.eye(3)
        decoder.templates[1] = -3
        decoder.gain.fill_(log(8))
    return decoder


def made_of(codes, noise, generator):
    """Objects whose fillers decode to these codes, but for some noise."""
    shape, scale, angle, across, down, colour = codes.unbind(1)
    objects = torch.zeros(len(codes), 5, FILLER)
    objects[:, 0] = torch.eye(FILLER)[shape]
    objects[:, 1, 0] = LOG_SCALES[shape, scale]
    objects[:, 2, 0], objects[:, 2, 1] = ANGLES[angle].cos(), ANGLES[angle].sin()
    objects[:, 3] = position_filler(2 * pi / SIDE * torch.stack([ACROSS[across], DOWN[down]], 1), FILLER)
    objects[:, 4, :3] = 2 * COLOURS[colour] - 1
    return objects + noise * torch.randn(objects.shape, generator=generator)


def drawn_codes(count, generator):
    limits = [2, 1, len(ANGLES), len(ACROSS), len(DOWN), len(COLOURS)]
    codes = torch.stack([torch.randint(limit, (count,), generator=generator) for limit in limits], 1)
    codes[:, 1] = (torch.rand(count, generator=generator) * SCALES[codes[:, 0]]).long()
    return codes


@pytest.fixture(scope="module")
def found():
    """A memory that has found the codes of 600 objects, what it found them in, and what they were made of."""
    generator = torch.Generator().manual_seed(0)
    decoder = readable_decoder()
    codes = drawn_codes(600, generator)
    objects = made_of(codes, 0.003, generator)
    memory = PoseMemory(decoder, resolution=129)
    memory.find(objects, decoder, generator)
    return memory, decoder, objects, codes


def test_nothing_is_known_before_something_is_found():
    memory = PoseMemory(readable_decoder(), resolution=8)
    assert memory.counts == dict.fromkeys(COUNTS, 0)
    assert not list(memory.parameters())


def test_as_many_codes_are_found_as_there_are(found):
    memory = found[0]
    assert memory.counts == COUNTS
    of_shapes = (memory.log_scales < FAR).sum(1)
    assert sorted(of_shapes.tolist()) == [0] * 6 + [3, 4]
    assert (memory.places < FAR).sum(1).tolist() == [4, 2]


def test_codes_are_those_that_objects_were_made_of(found):
    memory = found[0]
    torch.testing.assert_close(memory.angles[:5], ANGLES, rtol=0, atol=0.01)
    torch.testing.assert_close(memory.places[0, :4], ACROSS, rtol=0, atol=0.1)
    torch.testing.assert_close(memory.places[1, :2], DOWN, rtol=0, atol=0.1)
    for shape in range(2):
        number = torch.cdist(torch.eye(FILLER)[[shape]], memory.shapes).argmin()
        count = SCALES[shape]
        expected = LOG_SCALES[shape, :count]
        torch.testing.assert_close(memory.log_scales[number, :count], expected, rtol=0, atol=0.01)
    assert (torch.cdist(torch.eye(FILLER)[:2], memory.shapes).amin(1) < 0.02).all()
    assert (torch.cdist((4 * (2 * COLOURS - 1)).sigmoid(), memory.colours).amin(1) < 0.02).all()


def test_objects_are_read_as_the_codes_they_were_made_of(found):
    """Shapes and colours have numbers of the memory's own; the others go from low to high."""
    memory, decoder, objects, codes = found
    read = memory.read(objects, decoder)
    assert torch.equal(read[:, 1:5], codes[:, 1:5])
    for column, count in ((0, 2), (5, 3)):
        pairs = {*zip(codes[:, column].tolist(), read[:, column].tolist(), strict=True)}
        assert len(pairs) == count
        assert {own for _, own in pairs} == set(range(count))


def test_an_angle_is_the_same_after_a_whole_turn(found):
    memory, decoder, objects, codes = found
    turned = copy.deepcopy(memory)
    turned.angles[:2] += 2 * pi
    assert torch.equal(turned.read(objects, decoder), memory.read(objects, decoder))
    assert torch.equal(memory.read(objects, decoder)[:, 2], codes[:, 2])


def test_what_is_drawn_is_what_the_decoder_draws_without_noise(found):
    """But for templates that are read in other places."""
    memory, decoder, objects, codes = found
    few = slice(40)
    with torch.no_grad():
        expected = decoder(made_of(codes[few], 0.0, torch.Generator()))
    drawn = memory.draw(memory.read(objects[few], decoder))
    torch.testing.assert_close(drawn, expected, rtol=0, atol=0.1)
    assert (drawn - expected).abs().mean() < 1e-3
    assert float(memory.reach) < decoder.reach  # the window is as large as the larger shape needs


def test_what_is_drawn_depends_on_codes_alone(found):
    """Objects with other noise are drawn bit by bit alike."""
    memory, decoder, objects, codes = found
    others = made_of(codes, 0.003, torch.Generator().manual_seed(9))
    few = slice(10)
    first, again = (memory.draw(memory.read(some[few], decoder)) for some in (objects, others))
    assert torch.equal(first, again)


def test_objects_that_are_found_again_replace_what_was_known(found):
    memory, decoder, objects, codes = found
    again = copy.deepcopy(memory)
    some = codes[:, 4] == 0
    again.find(objects[some], decoder, torch.Generator().manual_seed(0))
    assert (again.places < FAR).sum(1).tolist() == [4, 1]
    assert again.places[1, 1] == FAR


def test_the_same_seed_finds_the_same_bits(found):
    memory, decoder, objects, _ = found
    again = PoseMemory(decoder, resolution=129)
    generator = torch.Generator().manual_seed(0)
    made_of(drawn_codes(600, generator), 0.003, generator)  # which the memory's generator had drawn before
    again.find(objects, decoder, generator)
    for (name, one), (_, other) in zip(memory.named_buffers(), again.named_buffers(), strict=True):
        assert torch.equal(one, other), name


@pytest.mark.parametrize("wrong", [0, 1, 2, 3, 4])
def test_codes_that_are_read_wrongly_are_found_by_drawing(wrong, found):
    """Another shape, scale or angle, or a place beside the true one."""
    memory, decoder, objects, _ = found
    codes = memory.read(objects[:60], decoder)
    masks = (memory.field(codes) > 0).float()
    given = codes.clone()
    limits = [2, 3, 5, 4, 2]
    given[::2, wrong] = (given[::2, wrong] + 1) % limits[wrong] if wrong < 3 else (given[::2, wrong] - 1).clamp_min(0)
    assert (given != codes).any()
    again = memory.verified(given, masks)
    assert ((memory.field(again) > 0).float() == masks).all()
    assert torch.equal(memory.verified(codes, masks), codes)


def test_objects_of_codes_are_read_as_these(found):
    memory, decoder, objects, _ = found
    read = memory.read(objects, decoder)
    other = read[torch.randperm(len(read), generator=torch.Generator().manual_seed(1))]
    other[:, 5] = read[:, 5]
    with torch.no_grad():
        made = memory.objects(other, objects, decoder)
        assert torch.equal(memory.read(made, decoder), other)
    assert torch.equal(made[:, 4], objects[:, 4])


def test_an_angle_far_from_all_codes_is_that_of_the_same_outline(found):
    """A template that looks the same after half a turn: its angle is read modulo that."""
    memory, decoder = copy.deepcopy(found[0]), copy.deepcopy(found[1])
    line = torch.linspace(-1, 1, memory.templates.shape[-1])
    flat = torch.where((line.abs() < 0.2).unsqueeze(-1) & (line.abs() < 0.6), 9.0, -9.0)
    memory.templates[:2] = flat
    resolution = torch.linspace(-1, 1, decoder.resolution) * decoder.reach / float(memory.reach)
    with torch.no_grad():
        decoder.base.copy_(torch.where((resolution.abs() < 0.2).unsqueeze(-1) & (resolution.abs() < 0.6), 9.0, -9.0))
        decoder.templates.zero_()
        objects = found[2][:40].clone()
        expected = memory.read(objects, decoder)
        objects[:, 2] = -objects[:, 2]  # half a turn
        assert torch.equal(memory.read(objects, decoder)[:, 2], expected[:, 2])
