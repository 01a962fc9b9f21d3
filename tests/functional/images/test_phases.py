"""Waves against their definition, and what a shift does to them."""

import cmath
from math import pi

import pytest
import torch

from tpr_attention.functional.images.phases import (
    POSITION_DIM,
    angles_of,
    moved,
    position_filler,
    spectrum,
    waves_to_image,
)

from ..test_factored import gradients


def spectrum_by_definition(image, cutoff):
    """One wave and one pixel after the other."""
    side = len(image)
    found = torch.zeros(2 * cutoff + 1, cutoff + 1, dtype=torch.complex128)
    for u in range(-cutoff, cutoff + 1):
        for v in range(cutoff + 1):
            for row in range(side):
                for column in range(side):
                    phase = 2 * pi / side * (u * (row + 0.5) + v * (column + 0.5))
                    found[u + cutoff, v] += image[row, column].item() * cmath.exp(-1j * phase)
    return found


def image_by_definition(waves, side):
    cutoff = waves.shape[-1] - 1
    found = torch.zeros(side, side, dtype=torch.float64)
    for row in range(side):
        for column in range(side):
            for u in range(-cutoff, cutoff + 1):
                for v in range(cutoff + 1):
                    phase = 2 * pi / side * (u * (row + 0.5) + v * (column + 0.5))
                    found[row, column] += (waves[u + cutoff, v].item() * cmath.exp(1j * phase)).real
    return found


def counted(waves):
    """Waves with v > 0 twice: once for the conjugates that are not stored."""
    return torch.cat([waves[..., :1], 2 * waves[..., 1:]], -1)


@pytest.mark.parametrize(("side", "cutoff"), [(3, 1), (6, 2), (7, 3), (8, 1)])
def test_a_spectrum_is_its_definition(side, cutoff, normal):
    image = normal(side, side).detach()
    torch.testing.assert_close(spectrum(image, cutoff), spectrum_by_definition(image, cutoff), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("side", "cutoff"), [(3, 1), (6, 2), (7, 3)])
def test_an_image_of_waves_is_its_definition(side, cutoff, normal):
    waves = torch.complex(normal(2 * cutoff + 1, cutoff + 1), normal(2 * cutoff + 1, cutoff + 1)).detach()
    expected = image_by_definition(waves, side)
    torch.testing.assert_close(waves_to_image(waves, side), expected, rtol=1e-12, atol=1e-12)


def test_every_image_of_a_batch_has_the_waves_it_has_alone(normal):
    images = normal(2, 3, 8, 8)
    waves = spectrum(images, 3)
    assert waves.shape == (2, 3, 7, 4)
    torch.testing.assert_close(waves[1, 2], spectrum(images[1, 2], 3))
    torch.testing.assert_close(waves_to_image(waves, 8)[1, 2], waves_to_image(waves[1, 2], 8))


@pytest.mark.parametrize("side", [3, 7, 9])
def test_all_waves_of_an_odd_side_give_the_image_back(side, normal):
    """The waves of a side that is even leave out one wave in each direction."""
    image = normal(side, side)
    again = waves_to_image(counted(spectrum(image, (side - 1) // 2)), side) / side**2
    torch.testing.assert_close(again, image, rtol=1e-12, atol=1e-12)


def test_a_band_of_waves_is_a_projection(normal):
    """To leave out what was left out changes nothing, and what is left out has nothing in common with what is kept."""
    image = normal(8, 8).detach()
    kept = waves_to_image(counted(spectrum(image, 2)), 8) / 64
    again = waves_to_image(counted(spectrum(kept, 2)), 8) / 64
    torch.testing.assert_close(again, kept, rtol=1e-12, atol=1e-12)
    assert abs(float(((image - kept) * kept).sum())) < 1e-12
    assert float((image - kept).abs().max()) > 0.1


@pytest.mark.parametrize(("right", "down"), [(1, 0), (0, 1), (-3, 2), (8, 8)])
def test_an_image_that_is_rolled_has_waves_that_are_moved(right, down, normal):
    image = normal(2, 8, 8)
    angles = 2 * pi / 8 * torch.tensor([right, down], dtype=torch.float64).expand(2, 2)
    expected = spectrum(image.roll((down, right), (-2, -1)), 3)
    torch.testing.assert_close(moved(spectrum(image, 3), angles), expected, rtol=1e-12, atol=1e-12)


def test_moves_add_up_and_keep_lengths(normal):
    waves, first, second = spectrum(normal(2, 8, 8), 3), normal(2, 2), normal(2, 2)
    torch.testing.assert_close(moved(moved(waves, first), second), moved(waves, first + second))
    torch.testing.assert_close(moved(waves, first).abs(), waves.abs())


def test_gradients(normal):
    image, angles = normal(5, 5), normal(2)
    waves = torch.complex(normal(5, 3), normal(5, 3)).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda image: torch.view_as_real(spectrum(image, 2)), (image,))
    assert torch.autograd.gradcheck(lambda waves: waves_to_image(waves, 5), (waves,))
    assert torch.autograd.gradcheck(lambda *x: torch.view_as_real(moved(*x)), (waves, angles))
    assert torch.autograd.gradcheck(lambda angles: angles_of(position_filler(angles, 5)), (angles,))


def test_many_at_once_are_as_one_after_the_other(normal):
    """Under vmap, with gradients, as a stack of models calls them."""
    images, angles = normal(3, 2, 6, 6), normal(3, 2, 2)

    def drawn(image, angle):
        return waves_to_image(moved(spectrum(image, 2), angle), 6)

    together = torch.vmap(drawn)(images, angles)
    one_by_one = torch.stack([drawn(*one) for one in zip(images, angles, strict=True)])
    torch.testing.assert_close(together, one_by_one)
    inputs = [images, angles]
    for found, expected in zip(gradients([together], inputs, 0), gradients([one_by_one], inputs, 0), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("filler_dim", [POSITION_DIM, 7])
def test_a_position_code_is_two_points_on_circles_and_zeros(filler_dim, normal):
    angles = normal(3, 2, 2).detach().clamp(-3, 3)
    filler = position_filler(angles, filler_dim)
    for row in range(3):
        for column in range(2):
            x, y = angles[row, column]
            expected = torch.stack([x.cos(), x.sin(), y.cos(), y.sin()])
            torch.testing.assert_close(filler[row, column, :4], expected)
    assert filler.shape == (3, 2, filler_dim)
    assert not filler[..., 4:].any()
    torch.testing.assert_close(angles_of(filler), angles)
    torch.testing.assert_close(angles_of(2.5 * filler), angles)  # the length of the code does not matter


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: spectrum(torch.ones(4, 5), 1), ValueError, "images: expected square ones, got 4 x 5"),
        (lambda: spectrum(torch.ones(0, 0), 1), ValueError, "expected at least one entry"),
        (lambda: spectrum(torch.ones(5), 1), ValueError, "images: expected "),
        (lambda: spectrum(torch.ones(4, 4, dtype=torch.long), 1), TypeError, "images: expected a floating-point"),
        (lambda: spectrum(torch.ones(4, 4), 2), ValueError, "cutoff: expected less than half of the side, 4, got 2"),
        (lambda: spectrum(torch.ones(4, 4), 0), ValueError, "cutoff: expected at least 1, got 0"),
        (lambda: spectrum(torch.ones(4, 4), 1.5), TypeError, "cutoff: expected a whole number, got 1.5"),
        (lambda: waves_to_image(torch.ones(3, 2) + 0j, 2), ValueError, "cutoff: expected less than half of the side"),
        (lambda: waves_to_image(torch.ones(3, 2) + 0j, 0), ValueError, "side: expected at least 1, got 0"),
        (lambda: position_filler(torch.zeros(2), 3), ValueError, "filler_dim: expected at least 4, got 3"),
    ],
)
def test_errors_name_the_argument(call, error, message, as_users_run_it):
    with pytest.raises(error, match=message):
        call()
