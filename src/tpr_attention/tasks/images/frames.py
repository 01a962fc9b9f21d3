"""Images of objects, drawn when they are needed: numbers 0 and 1, one channel a colour."""

from dataclasses import replace

import torch
from einops import rearrange
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from tpr_attention.functional.signature import expect_whole
from tpr_attention.tasks.composition.factors import Column, Factors, Grid, dsprites
from tpr_attention.tasks.composition.sprites import render
from tpr_attention.tasks.images.distortions import SIDE, warp

__all__ = ["SIDE", "as_pictures", "coloured_grid", "draw_frames", "draw_masks", "numbers_of", "white_grid"]

ANGLES = 40


def coloured_grid(angles: int = ANGLES) -> Grid:
    """The factors of dSprites and three colours, with the first orientations only; positions go from -1 to 1.

    >>> coloured_grid(9).sizes
    (3, 6, 9, 32, 32, 3)
    """
    return _with_angles(dsprites(), angles)


def white_grid(angles: int = ANGLES) -> Grid:
    """The factors of dSprites as published: positions go from 0 to 1, and the one colour is white."""
    grid = _with_angles(dsprites((0.0, 1.0)), angles)
    return replace(grid, columns=(*grid.columns[:-1], Column("colour", (1,), ("white",))))


def _with_angles(grid: Grid, angles: int) -> Grid:
    expect_whole("angles", angles, 1, ANGLES)
    columns = (
        replace(column, values=column.values[:angles]) if column.name == "orientation" else column
        for column in grid.columns
    )
    return replace(grid, columns=tuple(columns))


def numbers_of(factors: Factors) -> Int64[Tensor, "n"]:
    """The numbers of objects in their grid, of which `Grid.rows` makes factors again.

    >>> numbers_of(white_grid().rows(torch.tensor([5, 737279])))
    tensor([     5, 737279])
    """
    numbers = torch.zeros(len(factors), dtype=torch.long)
    for name, size in zip(factors.grid.names, factors.grid.sizes, strict=True):
        numbers = numbers * size + factors.column(name)
    return numbers


def draw_masks(factors: Factors, warped: bool = False) -> UInt8[Tensor, "n 64 64"]:
    """Draw white sprites, pixel for pixel those of dSprites.

    Args:
        warped: Whether the canvas is bent, see `distortions.warp`.
    """
    masks = render(factors)
    return warp(masks) if warped else masks


def draw_frames(
    factors: Factors, dtype: torch.dtype = torch.float32, warped: bool = False
) -> Float[Tensor, "n c 64 64"]:
    """Draw sprites in their colours: the channel of an object's colour has its mask, the others are zero.

    >>> draw_frames(coloured_grid().combinations(("colour",)))[:, :, 16, 16]
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """
    channels = factors.grid.sizes[factors.grid.index("colour")]
    frames = torch.zeros(len(factors), channels, SIDE, SIDE, dtype=dtype)
    frames[torch.arange(len(factors)), factors.column("colour").long()] = draw_masks(factors, warped).to(dtype)
    return frames


def as_pictures(images: Float[Tensor, "n c h w"]) -> UInt8[Tensor, "n h w 3"]:
    """Images with one or three channels for people to look at."""
    levels = (images.detach().clamp(0, 1) * 255).round().byte()
    return rearrange(levels.expand(-1, 3, -1, -1), "n c h w -> n h w c").contiguous()
