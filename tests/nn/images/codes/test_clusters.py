"""Clusters that are there are found, and how many there are."""

from math import pi

import pytest
import torch

from tpr_attention.nn.images.codes.clusters import MOST_CENTRES, centres_of, modes_around, modes_of


def noisy(centres, each, noise, generator):
    """As many points around every centre, in random order."""
    points = centres.repeat_interleave(each, 0)
    points = points + noise * torch.randn(points.shape, generator=generator, dtype=points.dtype)
    return points[torch.randperm(len(points), generator=generator)]


def in_order(centres):
    return centres[centres[:, 0].argsort()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [2, 3, 5, MOST_CENTRES])
def test_centres_and_their_number_are_found(count, dtype, generator):
    centres = torch.randn(count, 4, generator=generator, dtype=dtype)
    while torch.cdist(centres, centres).add(9 * torch.eye(count)).min() < 1:
        centres = torch.randn(count, 4, generator=generator, dtype=dtype)
    found = centres_of(noisy(centres, 60, 0.02, generator), generator)
    assert found.dtype == dtype
    assert found.shape == centres.shape
    torch.testing.assert_close(in_order(found), in_order(centres), rtol=0, atol=0.02)


def test_centres_are_means_of_what_is_nearest(generator):
    points = noisy(torch.eye(3, dtype=torch.float64), 40, 0.05, generator)
    centres = centres_of(points, generator)
    nearest = torch.cdist(points, centres).argmin(1)
    for number, centre in enumerate(centres):
        torch.testing.assert_close(centre, points[nearest == number].mean(0))


def test_clusters_of_different_sizes(generator):
    large, small = (torch.eye(2)[[k]] for k in (0, 1))
    points = torch.cat([noisy(large, 300, 0.02, generator), noisy(small, 10, 0.02, generator)])
    found = in_order(centres_of(points, generator))
    torch.testing.assert_close(found, torch.eye(2).flip(0), rtol=0, atol=0.03)


def test_points_without_noise(generator):
    """The error of the right number is zero, and that of more is too."""
    found = centres_of(torch.eye(3).repeat(10, 1), generator)
    assert torch.equal(in_order(found).sort(0).values, torch.eye(3).sort(0).values)


def test_equal_points_have_equal_centres(generator):
    found = centres_of(torch.full((20, 3), 0.7), generator)
    torch.testing.assert_close(found, torch.full_like(found, 0.7))


def test_the_same_seed_finds_the_same_centres(generator):
    points = noisy(torch.eye(4), 30, 0.05, generator)
    first, again = (centres_of(points, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, again)


@pytest.mark.parametrize("count", [1, 2, 6, 9, 32])
def test_modes_and_their_number_are_found(count, generator):
    """Evenly spaced ones, as scales, angles and places are."""
    modes = torch.linspace(-1.5, 30, 32)[:count]
    found = modes_of(noisy(modes, 100, 0.05, generator))
    assert found.shape == modes.shape
    torch.testing.assert_close(found, modes, rtol=0, atol=0.03)


def test_modes_with_gaps_and_of_different_weight(generator):
    modes, shares = torch.tensor([0.0, 1.0, 4.0, 5.0, 6.5]), (200, 60, 150, 100, 80)
    numbers = torch.cat([noisy(modes[[k]], share, 0.05, generator) for k, share in enumerate(shares)])
    torch.testing.assert_close(modes_of(numbers), modes, rtol=0, atol=0.03)


def test_a_mode_is_a_median(generator):
    """So that what is far off does not move it."""
    numbers = torch.cat([noisy(torch.arange(3.0), 100, 0.01, generator), torch.tensor([2.3, 2.3, 2.3])])
    found = modes_of(numbers)
    torch.testing.assert_close(found, torch.arange(3.0), rtol=0, atol=0.01)
    assert found[0] == numbers[numbers < 0.5].median()


@pytest.mark.parametrize("numbers", [[0.3], [0.3] * 10, [-2.0, -2.0]])
def test_equal_numbers_are_one_mode(numbers):
    assert modes_of(torch.tensor(numbers)).tolist() == pytest.approx(numbers[:1])


def test_numbers_without_noise():
    assert modes_of(torch.arange(7.0).repeat(20)).tolist() == list(range(7))


def test_more_modes_than_there_may_be_are_not_found(generator):
    numbers = noisy(torch.arange(20.0), 50, 0.03, generator)
    assert len(modes_of(numbers)) == 20
    assert len(modes_of(numbers, most=20)) == 20
    for most in (19, 5, 1):
        assert 1 <= len(modes_of(numbers, most=most)) <= most


@pytest.mark.parametrize("seed", [8, 17, 19, 22, 52])
def test_waves_that_wide_kernels_leave_are_no_modes(seed):
    """In these numbers three to eight of them stay the same over more widths than the 32 modes do."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randint(32, (700,), generator=generator) + 0.17 * torch.randn(700, generator=generator)
    torch.testing.assert_close(modes_of(numbers), torch.arange(32.0), rtol=0, atol=0.3)


def test_modes_do_not_depend_on_order_place_or_unit(generator):
    numbers = noisy(torch.arange(5.0, dtype=torch.float64), 60, 0.05, generator)
    found = modes_of(numbers)
    assert torch.equal(modes_of(numbers.flip(0)), found)
    torch.testing.assert_close(modes_of(8 * numbers - 4), 8 * found - 4)


def test_two_of_three_clusters_that_are_alike_are_told_apart():
    """The error falls most at the first of two steps; the last fall counts."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.tensor([[0.0, 0.0], [0.2, 0.0], [10.0, 0.0]])
    points = centres.repeat(60, 1) + 0.005 * torch.randn(180, 2, generator=generator)
    assert len(centres_of(points, generator)) == 3


def test_equal_points_are_one_cluster():
    assert len(centres_of(torch.ones(20, 2), torch.Generator().manual_seed(0))) == 1


@pytest.mark.parametrize("first", [0.0, 1.0, pi, -pi + 0.001])
@pytest.mark.parametrize(("count", "step"), [(39, 2 * pi / 39), (7, 0.2), (1, 1.0)])
def test_modes_of_angles_are_found_wherever_the_circle_is_cut(count, step, first, generator):
    """All around, or a part of the way; angles are given between -pi and pi."""
    modes = first + step * torch.arange(count, dtype=torch.float64)
    angles = noisy(modes, 50, 0.01, generator)
    found = modes_around(torch.atan2(angles.sin(), angles.cos()))
    assert len(found) == count
    assert (found.diff() > 0).all()
    nearest = (modes.unsqueeze(-1) - found + pi).remainder(2 * pi).sub(pi).abs().amin(1)
    assert nearest.max() < 0.01
