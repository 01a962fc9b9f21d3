"""Levels of splines: their sum, its gradient, and which coefficients become free."""

import pytest
import torch

from tpr_attention.functional.images.splines import knots, read_splines
from tpr_attention.nn.images.codes.levels import Levels


def test_a_smooth_template_is_kept():
    """A linear function has the same coefficients on every grid, but beyond its border."""
    line = knots(123, torch.zeros((), dtype=torch.float64))
    levels = Levels((2 * line + line.unsqueeze(-1)).unsqueeze(0))
    points = 1.8 * torch.rand(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.9
    found = read_splines(levels.templates(), torch.zeros(50, dtype=torch.long), points)
    assert [len(part[0]) for part in levels.parts] == [33, 63, 123]
    torch.testing.assert_close(found, 2 * points[:, 0] + points[:, 1])


def test_slopes_are_the_gradient_by_free_coefficients(normal, generator):
    levels = Levels(normal(2, 63, 63).detach())
    levels.free[1] = torch.rand(2, 63, 63, generator=generator) < 0.1
    weights = normal(2, 63, 63).detach()
    parts = [part.clone().requires_grad_() for part in levels.parts]
    matrix = levels.halvings[0]
    gradients = torch.autograd.grad((weights * (matrix @ parts[0] @ matrix.mT + parts[1])).sum(), parts)
    expected = torch.cat([gradient[free] for gradient, free in zip(gradients, levels.free, strict=True)])
    torch.testing.assert_close(levels.slopes(weights), expected)


def blob(number, resolution=63):
    """A square, a bar, an arrow that points upwards, and a triangle without symmetry."""
    u = torch.linspace(-1, 1, resolution, dtype=torch.float64).expand(resolution, -1)
    v = u.mT
    return [
        0.6 - torch.maximum(u.abs(), v.abs()),
        torch.minimum(0.7 - u.abs(), 0.3 - v.abs()),
        torch.minimum(0.6 - v, v + 0.7 - 2 * u.abs()),
        torch.minimum(torch.minimum(0.6 - v, v + 0.5 - 2 * u), v + 0.7 + 1.5 * u),
    ][number]


@pytest.mark.parametrize(("number", "count"), [(0, 8), (1, 4), (2, 2), (3, 1)])
def test_symmetric_templates_stay_exactly_so(number, count, normal):
    """Whatever the coefficients are; and slopes are the gradient by the free ones."""
    levels = Levels(blob(number).unsqueeze(0) + 0.001 * normal(1, 63, 63).detach())
    assert len(levels.symmetries[0]) == count
    parts = [part.detach().requires_grad_() for part in (normal(1, 33, 33), normal(1, 63, 63))]
    levels.parts = parts
    levels.free = [torch.ones_like(part, dtype=torch.bool) for part in parts]
    found, weights = levels.templates(), normal(1, 63, 63).detach()
    same = {
        (turns, mirrored)
        for turns in range(4)
        for mirrored in (False, True)
        if torch.allclose(torch.rot90(found[0].flip(-1) if mirrored else found[0], turns), found[0])
    }
    assert same == set(levels.symmetries[0])
    expected = torch.autograd.grad((weights * found).sum(), parts)
    torch.testing.assert_close(levels.slopes(weights), torch.cat([one.flatten() for one in expected]))


def test_what_is_nearly_symmetric_in_too_few_ways_is_so_in_a_group():
    """A bar whose mirror images are within the limit, but not what it is after half a turn."""
    bar = blob(1)
    bar[22:25, 31] = bar[31, 10:13] = -1.0  # a mirror changes six cells of about 800, and half a turn twelve
    levels = Levels(bar.unsqueeze(0))
    found = levels.templates()[0]
    assert 1 < len(levels.symmetries[0]) < 4
    for turns, mirrored in levels.symmetries[0]:
        torch.testing.assert_close(torch.rot90(found.flip(-1) if mirrored else found, turns), found)


def test_wrong_pixels_count_wherever_a_symmetric_template_has_them():
    levels = Levels(torch.stack([blob(0), blob(3)]))
    wrong = torch.zeros(2, 63, 63, dtype=torch.float64)
    wrong[:, 20, 30] = wrong[:, 30, 20] = 1.0  # a mirror image of each other
    levels.open(1, wrong)
    assert levels.free[1][0, 20, 30]
    assert levels.free[1][0, 42, 32]
    assert not levels.free[1][1].any()


def test_free_coefficients_are_stored_where_they_are_free(generator):
    levels = Levels(torch.zeros(1, 63, 63))
    levels.free[1][0, 5, 7] = True
    numbers = torch.randn(33 * 33 + 1, generator=generator)
    levels.store(numbers)
    assert torch.equal(levels.numbers, numbers)
    assert levels.parts[1].nonzero().tolist() == [[0, 5, 7]]
    levels.steepen(2.0)
    assert torch.equal(levels.numbers, 2 * numbers)


def test_coefficients_become_free_around_wrong_pixels():
    levels = Levels(torch.zeros(2, 63, 63))
    wrong = torch.zeros(2, 63, 63)
    wrong[0, 20, 30], wrong[0, 50, 50] = 4.0, 1.0  # one knot with several, one with too few
    levels.open(1, wrong)
    free = levels.free[1].nonzero()
    assert free.amin(0).tolist() == [0, 19, 29]
    assert free.amax(0).tolist() == [0, 21, 31]
    assert levels.free[0].all()


def test_a_grid_that_cannot_be_halved_has_one_level():
    assert len(Levels(torch.zeros(1, 64, 64))) == 1
    assert len(Levels(torch.zeros(1, 9, 9))) == 1
