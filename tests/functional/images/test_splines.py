"""Splines are sums of their basis functions, and linear functions are splines."""

import itertools

import pytest
import torch

from tpr_attention.functional.images.splines import halving, knots, read_splines, spline_taps

SIZE = 7


def basis(t):
    t = t.abs()
    return torch.where(t <= 1, 2 / 3 - t.square() + t**3 / 2, (2 - t).clamp(min=0) ** 3 / 6)


def literal(coefficients, which, points):
    """The definition: every coefficient times its basis function, around its knot."""
    places = knots(SIZE, points)
    step = places[1] - places[0]
    total = 0
    for row, column in itertools.product(range(SIZE), range(SIZE)):
        near = (points.clamp(-1, 1) - torch.stack([places[column], places[row]])) / step
        total = total + coefficients[which, row, column] * basis(near[:, 0]) * basis(near[:, 1])
    return total


@pytest.fixture
def points(generator):
    """Some inside, some beyond the border, and all corners."""
    corners = torch.tensor(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))
    return torch.cat([2.4 * torch.rand(60, 2, generator=generator) - 1.2, corners]).double()


def test_splines_are_sums_of_their_basis_functions(points, normal, generator):
    """Values and gradients, by coefficients and by points."""
    coefficients, points = normal(3, SIZE, SIZE), points.requires_grad_()
    which = torch.randint(3, (len(points),), generator=generator)
    found, expected = read_splines(coefficients, which, points), literal(coefficients, which, points)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, generator=generator, dtype=found.dtype)
    inside = (points.abs() < 0.99).all(-1).unsqueeze(-1)  # at the border the slope depends on the side
    of_coefficients, of_points = zip(
        *(torch.autograd.grad(y, [coefficients, points], weights) for y in (found, expected)), strict=True
    )
    torch.testing.assert_close(*of_coefficients)
    torch.testing.assert_close(*(slope * inside for slope in of_points))


def test_taps_are_the_rows_of_the_same_map(points, normal):
    coefficients = normal(1, SIZE, SIZE)
    places, weights = spline_taps(points, SIZE)
    found = (coefficients.flatten()[places] * weights).sum(-1)
    torch.testing.assert_close(found, read_splines(coefficients, torch.zeros(len(points), dtype=torch.long), points))
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(points), dtype=torch.float64))


def test_linear_functions_are_splines(points):
    across = knots(SIZE, points)
    plane = (3 * across + across.unsqueeze(-1) - 0.5).unsqueeze(0)
    x, y = points.clamp(-1, 1).unbind(-1)
    found = read_splines(plane, torch.zeros(len(points), dtype=torch.long), points)
    torch.testing.assert_close(found, 3 * x + y - 0.5)


@pytest.mark.parametrize("size", [4, 5, SIZE])
def test_a_spline_is_one_with_cells_half_as_long(size, points, normal):
    coefficients, which = normal(1, size, size), torch.zeros(len(points), dtype=torch.long)
    matrix = halving(size, points)
    assert matrix.shape == (2 * size - 3, size)
    finer = matrix @ coefficients @ matrix.mT
    torch.testing.assert_close(read_splines(finer, which, points), read_splines(coefficients, which, points))


@pytest.mark.parametrize("shape", [(1, 3, 3), (1, 5, 6)])
def test_splines_are_square_and_have_four_coefficients_or_more(shape):
    with pytest.raises(ValueError, match=r"^coefficients: expected as many rows as columns, at least 4"):
        read_splines(torch.zeros(shape), torch.zeros(1, dtype=torch.long), torch.zeros(1, 2))
