"""Images are the frames of dSprites in one channel, and distortions change them as they say."""

import pytest
import torch

from tpr_attention.tasks.composition.sprites import colour, render
from tpr_attention.tasks.images.distortions import add_noise, soften, source, warp
from tpr_attention.tasks.images.fillers import true_fillers
from tpr_attention.tasks.images.frames import (
    as_pictures,
    coloured_grid,
    draw_frames,
    draw_masks,
    numbers_of,
    white_grid,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_frames_are_the_coloured_sprites(dtype, generator):
    factors = coloured_grid().sample(100, generator)
    frames = draw_frames(factors, dtype)
    assert frames.dtype == dtype
    assert torch.equal((frames * 255).byte().permute(0, 2, 3, 1), colour(render(factors), factors))
    assert torch.equal(as_pictures(frames), colour(render(factors), factors))


def test_white_frames_have_one_channel(generator):
    factors = white_grid(9).sample(50, generator)
    frames = draw_frames(factors)
    assert frames.shape == (50, 1, 64, 64)
    assert torch.equal(frames[:, 0].byte(), render(factors))
    assert torch.equal(as_pictures(frames)[..., 2], render(factors) * 255)


def test_no_objects_give_no_frames():
    assert draw_frames(coloured_grid().rows(torch.arange(0))).shape == (0, 3, 64, 64)


@pytest.mark.parametrize("grid", [coloured_grid(9), white_grid(40)])
def test_numbers_are_those_of_the_grid(grid, generator):
    numbers = torch.randint(len(grid), (200,), generator=generator)
    assert torch.equal(numbers_of(grid.rows(numbers)), numbers)


@pytest.mark.parametrize("angles", [0, 41])
def test_other_numbers_of_angles_are_refused(angles):
    with pytest.raises(ValueError, match=r"^angles: expected at (least 1|most 40), got "):
        coloured_grid(angles)


def test_the_first_angles_are_those_of_all():
    columns = [grid.columns[grid.index("orientation")].values for grid in (coloured_grid(9), coloured_grid())]
    assert columns[0] == columns[1][:9]


def test_a_warped_canvas_shows_the_pixel_at_the_source_of_each(generator):
    masks = draw_masks(coloured_grid().sample(5, generator))
    warped, point = warp(masks), torch.full((), 0.5, dtype=torch.float64)
    for row in range(64):
        for column in range(64):
            x, y = source(column + point, row + point)
            there = masks[:, min(max(int(y // 1), 0), 63), min(max(int(x // 1), 0), 63)]
            assert torch.equal(warped[:, row, column], there)
    assert not torch.equal(warped, masks)


def test_a_warp_cuts_off_no_sprite():
    largest = coloured_grid().combinations(("shape", "orientation", "position_x", "position_y"))
    factors = largest[(largest.column("position_x") % 31 == 0) & (largest.column("position_y") % 31 == 0)]
    factors.columns["scale"][:] = torch.full((len(factors),), 5)
    masks = draw_masks(factors, warped=True)
    edge = torch.cat([masks[:, 0], masks[:, -1], masks[:, :, 0], masks[:, :, -1]], 1)
    assert not edge.any()


def test_softened_images_are_weighted_means_of_neighbours(generator):
    image = draw_frames(coloured_grid().sample(1, generator))
    soft, weights = soften(image), {-1: 0.25, 0: 0.5, 1: 0.25}
    for row, column in torch.randint(1, 63, (50, 2), generator=generator).tolist():
        mean = sum(a * b * image[0, :, row + i, column + j] for i, a in weights.items() for j, b in weights.items())
        assert torch.equal(soft[0, :, row, column], mean)


def test_noise_follows_its_seed():
    images = torch.zeros(3, 6, 64, 64)
    noisy = add_noise(images, torch.tensor([1, 2, 1]))
    assert torch.equal(noisy[0], noisy[2])
    assert not torch.equal(noisy[0], noisy[1])
    assert noisy.std().item() == pytest.approx(0.1, rel=0.02)
    assert torch.equal(add_noise(images[:1].double(), torch.tensor([2]))[0], noisy[1].double())


def test_true_fillers_say_each_factor():
    grid = coloured_grid()
    factors = grid.table(torch.tensor([[1, 5, 3, 31, 0, 2]]))
    shape, scale, orientation, position, paint = true_fillers(factors, torch.float64)[0]
    turn = 3 * 2 * torch.pi / 39
    expected = [
        [0, 1, 0],
        [1],
        [torch.cos(torch.tensor(turn).double()), torch.sin(torch.tensor(turn).double())],
        [0, -1, 0, 1],  # three quarters of the canvas to the right, one quarter down
        [0, 0, 1],
    ]
    for filler, numbers in zip((shape, scale, orientation, position, paint), expected, strict=True):
        padded = torch.zeros(8, dtype=torch.float64)
        padded[: len(numbers)] = torch.tensor(numbers, dtype=torch.float64)
        torch.testing.assert_close(filler, padded)
    assert true_fillers(white_grid().rows(torch.tensor([7])))[0, 4].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
