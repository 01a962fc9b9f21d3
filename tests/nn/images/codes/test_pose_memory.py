"""A memory finds the codes that objects were made of, and draws them."""

import copy
from math import pi

import torch

from tpr_attention.nn.images.codes.pose_memory import FAR, PoseMemory

from .known_codes import (
    ACROSS,
    ANGLES,
    COLOURS,
    COUNTS,
    DOWN,
    FILLER,
    LOG_SCALES,
    SCALES,
    drawn_codes,
    made_of,
    readable_decoder,
)


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


def test_objects_of_codes_are_read_as_these(found):
    memory, decoder, objects, _ = found
    read = memory.read(objects, decoder)
    other = read[torch.randperm(len(read), generator=torch.Generator().manual_seed(1))]
    other[:, 5] = read[:, 5]
    with torch.no_grad():
        made = memory.objects(other, objects, decoder)
        assert torch.equal(memory.read(made, decoder), other)
    assert torch.equal(made[:, 4], objects[:, 4])
