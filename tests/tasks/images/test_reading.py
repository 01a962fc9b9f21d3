"""Images are read as the object whose frame is nearest."""

import pytest
import torch

from tpr_attention.tasks.images import reading
from tpr_attention.tasks.images.frames import coloured_grid, draw_frames, draw_masks, numbers_of, white_grid
from tpr_attention.tasks.images.reading import frames_of, read_frames

GRID = coloured_grid(2)


def every_content(grid, generator):
    """All shapes, scales and orientations, at random places in random colours."""
    factors = grid.combinations(("shape", "scale", "orientation"))
    for name in ("position_x", "position_y", "colour"):
        size = grid.sizes[grid.index(name)]
        factors.columns[name] = torch.randint(size, (len(factors),), generator=generator, dtype=torch.int32)
    return factors


def flipped(images, count, generator):
    """So many numbers of each image are others."""
    images = images.clone()
    for image in images:
        places = torch.randperm(image.numel(), generator=generator)[:count]
        image.view(-1)[places] = 1 - image.view(-1)[places]
    return images


@pytest.mark.parametrize("warped", [False, True])
def test_exact_frames_are_read_as_what_they_are(warped, generator):
    for grid in (GRID, white_grid(1)):
        truth = every_content(grid, generator)
        found = read_frames(draw_frames(truth, warped=warped), grid, warped)
        assert torch.equal(found.factors.classes, truth.classes)
        assert found.seen.all()


@pytest.mark.parametrize("warped", [False, True])
def test_frames_with_a_few_other_pixels_are_read_as_well(warped, generator):
    truth = GRID.sample(40, generator)
    truth.columns["scale"].clamp_(min=2)  # the smallest are a few pixels from each other
    found = read_frames(flipped(draw_frames(truth, warped=warped), 3, generator), GRID, warped)
    assert torch.equal(found.factors.classes, truth.classes)


def test_what_is_found_is_nearest_among_all_frames(generator):
    grid = white_grid(1)
    everything = frames_of(grid, False).everything
    masks = draw_masks(everything).flatten(1).bool()
    truth = grid.sample(3, generator)
    images = flipped(draw_frames(truth), 12, generator)
    wanted = [(image.flatten().bool() ^ masks).sum(1) for image in images]
    found = read_frames(images, grid).factors
    for row, distances in enumerate(wanted):
        assert int(numbers_of(found)[row]) == int(distances.argmin())
    numbers, distances = frames_of(grid, False).compare(images[:, 0].bool())
    for row, right in enumerate(wanted):
        assert torch.equal(distances[row], right[numbers[row]])
        assert (numbers[row].diff() > 0).all()


def test_blocks_change_nothing(monkeypatch, generator):
    images = flipped(draw_frames(GRID.sample(5, generator)), 6, generator)
    found = read_frames(images, GRID).factors.classes
    monkeypatch.setattr(reading, "IMAGES", 2)
    assert torch.equal(read_frames(images, GRID).factors.classes, found)


def test_an_empty_image_is_object_zero_and_not_seen(generator):
    images = draw_frames(GRID.sample(3, generator))
    images[1] = 0.5
    found = read_frames(images, GRID)
    assert found.seen.tolist() == [True, False, True]
    assert numbers_of(found.factors)[1] == 0
    assert len(read_frames(images[:0], GRID).factors) == 0


def test_of_equal_frames_the_lowest_number_is_read():
    grid = white_grid(11)
    places = grid.combinations(("position_x", "position_y"))
    upright = draw_masks(places)
    places.columns["orientation"] = torch.full((1024,), 10, dtype=torch.int32)  # a square turned by 92 degrees
    equal = (draw_masks(places) == upright).flatten(1).all(1)
    assert equal.any()
    assert not equal.all()
    frames = reading.Frames(white_grid(2), False)
    frames.hashes, frames.order = frames.hashes[:0], frames.order[:1]  # so that nothing is found by its hash
    frames.bits[1024:2048] = frames.bits[:1024]  # as if a second angle were drawn as the first
    masks = draw_masks(white_grid(2).combinations(("position_x",)))[:4].bool()
    assert frames.nearest(masks).tolist() == [0, 32, 64, 96]


def equal_frames(grid, numbers):
    """How many of these objects have the frame of another of them."""
    masks = draw_masks(grid.rows(numbers)).flatten(1)
    return len(masks) - len(masks.unique(dim=0))


@pytest.mark.parametrize("place", [(0, 0), (16, 16), (3, 29), (31, 7)])
def test_contents_of_nine_angles_are_all_different(place):
    grid = white_grid(9)
    numbers = torch.arange(3 * 6 * 9) * 1024 + place[0] * 32 + place[1]
    assert equal_frames(grid, numbers) == 0


def test_squares_of_eleven_angles_are_not():
    numbers = torch.tensor([0, 10])[:, None] * 1024 + torch.arange(1024)
    assert equal_frames(white_grid(11), numbers.flatten()) > 0
    assert equal_frames(white_grid(11), (numbers - numbers // 10240 * 1024).flatten()) == 0  # k = 9, the tenth
