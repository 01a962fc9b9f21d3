r"""Cubic splines over the plane: smooth functions with few numbers, read at any point.

    s(x, y) = sum_ij c_ij B(x - i) B(y - j),    B(t) = 2/3 - t^2 + |t|^3 / 2    for |t| <= 1
                                                B(t) = (2 - |t|)^3 / 6          for 1 <= |t| <= 2

Points go from -1 to 1, to the right and downwards. The grid of coefficients reaches one step further on each side, so
that every point has sixteen of them around it. Linear functions are splines: a straight outline is exactly one. And a
spline is one on a grid with cells half as long, too: B(t) = sum_k b_k B(2 t - k) with b = (1, 4, 6, 4, 1) / 8.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["halving", "knots", "read_splines", "spline_cells", "spline_taps"]

LEAST_SIZE = 4
HALVES = (1 / 8, 4 / 8, 6 / 8, 4 / 8, 1 / 8)


def knots(size: int, like: Tensor) -> Float[Tensor, "size"]:
    """Where the coefficients of a row are: the first and the last are one step outside of -1 and 1.

    >>> knots(5, torch.zeros(()))
    tensor([-2., -1.,  0.,  1.,  2.])
    """
    return (torch.arange(size, device=like.device, dtype=like.dtype) - 1) * (2 / (size - 3)) - 1


def halving(size: int, like: Tensor) -> Float[Tensor, "fine size"]:
    """The matrix H that gives a spline with cells half as long: H c H^T has the values of c, and 2 size - 3 rows.

    >>> halving(4, torch.zeros(()))
    tensor([[0.5000, 0.5000, 0.0000, 0.0000],
            [0.1250, 0.7500, 0.1250, 0.0000],
            [0.0000, 0.5000, 0.5000, 0.0000],
            [0.0000, 0.1250, 0.7500, 0.1250],
            [0.0000, 0.0000, 0.5000, 0.5000]])
    """
    matrix = torch.zeros(2 * size + 1, size, device=like.device, dtype=like.dtype)
    for column in range(size):
        matrix[2 * column : 2 * column + 5, column] = matrix.new_tensor(HALVES)[: 2 * (size - column) + 1]
    return matrix[3:-1]


def read_splines(
    coefficients: Float[Tensor, "clusters row column"], which: Int[Tensor, "p"], points: Float[Tensor, "p xy"]
) -> Float[Tensor, "p"]:
    """The value of one of several splines at each point; beyond -1 and 1, that of the border.

    >>> slope = knots(6, torch.zeros(())).expand(1, 6, 6)
    >>> read_splines(slope, torch.tensor([0, 0]), torch.tensor([[0.25, 0.9], [3.0, 0.0]]))
    tensor([0.2500, 1.0000])
    """
    size = _expect_size(coefficients)
    first, across, down = _cells(which, points, size)
    flat = coefficients.flatten()
    found = torch.zeros_like(points[:, 0])
    for j, weight in enumerate(down):
        row = first + j * size
        found = found + weight * sum(flat[row + i] * share for i, share in enumerate(across))
    return found


def spline_taps(points: Float[Tensor, "p xy"], size: int) -> tuple[Int[Tensor, "p 16"], Float[Tensor, "p 16"]]:
    """Which coefficients of one spline a point reads, and with what weights: a row of a sparse matrix.

    >>> places, weights = spline_taps(torch.zeros(1, 2), 5)
    >>> places[0, :4], round(weights.sum().item(), 5)
    (tensor([6, 7, 8, 9]), 1.0)
    """
    first, across, down = _cells(torch.zeros(len(points), dtype=torch.long, device=points.device), points, size)
    steps = torch.arange(4, device=points.device)
    places = first.unsqueeze(-1) + (steps.unsqueeze(-1) * size + steps).flatten()
    weights = torch.stack(down, -1).unsqueeze(-1) * torch.stack(across, -1).unsqueeze(-2)
    return places, weights.flatten(-2)


def spline_cells(points: Float[Tensor, "*p xy"], size: int) -> tuple[Int[Tensor, "*p xy"], Float[Tensor, "*p xy"]]:
    """The numbers of the cell that each point is in, and how far it is in there, from 0 to 1.

    >>> spline_cells(torch.tensor([[0.25, 1.0]]), 7)
    (tensor([[2, 3]]), tensor([[0.5000, 1.0000]]))
    """
    place = (points.clamp(-1, 1) + 1) * ((size - 3) / 2)
    corner = place.detach().floor().clamp(max=size - 4)
    return corner.long(), place - corner


def _cells(
    which: Int[Tensor, "p"], points: Float[Tensor, "p xy"], size: int
) -> tuple[Int[Tensor, "p"], list[Tensor], list[Tensor]]:
    """The first of the sixteen coefficients of each point, and the weights of four columns and four rows."""
    corner, shares = spline_cells(points, size)
    column, row = corner.unbind(-1)
    across, down = (_weights(share) for share in shares.unbind(-1))
    return (which * size + row) * size + column, across, down


def _weights(share: Float[Tensor, "p"]) -> list[Tensor]:
    """B at the four knots around a point, which is this share of a step behind the second."""
    rest = 1 - share
    return [
        rest**3 / 6,
        2 / 3 - share.square() * (1 - share / 2),
        2 / 3 - rest.square() * (1 - rest / 2),
        share**3 / 6,
    ]


def _expect_size(coefficients: Tensor) -> int:
    rows, columns = coefficients.shape[-2:]
    if rows != columns or columns < LEAST_SIZE:
        raise ValueError(f"coefficients: expected as many rows as columns, at least 4, got {rows} x {columns}")
    return columns
