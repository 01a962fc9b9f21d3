"""Changes of images for controls: a bent canvas, soft edges, noise. Each is fixed, so that equal images stay equal."""

from functools import cache
from math import pi

import torch
from jaxtyping import Float, Float64, Int, Int64
from torch import Tensor

__all__ = ["add_noise", "sharpen", "soften", "source", "warp"]

SIDE = 64
SWING, WAVE = 1.5, 32.0  # how far the canvas is bent, and over which length, in pixels
NOISE = 0.1


def source(x: Float64[Tensor, "*n"], y: Float64[Tensor, "*n"]) -> tuple[Float64[Tensor, "*n"], Float64[Tensor, "*n"]]:
    r"""Which point of the flat canvas is seen at a point of the bent one.

    (x, y) <- (x + a sin(2 pi y / l), y + a sin(2 pi x / l)),    a = 1.5 and l = 32 pixels
    """
    return x + SWING * (2 * pi * y / WAVE).sin(), y + SWING * (2 * pi * x / WAVE).sin()


def warp(masks: Tensor) -> Tensor:
    """Bend the canvas; every pixel takes the value of the one at its source, so that images of 0 and 1 stay such.

    >>> dot = torch.zeros(1, 64, 64, dtype=torch.uint8)
    >>> dot[0, 32, 40] = 1
    >>> warp(dot).nonzero()  # it is seen a pixel higher
    tensor([[ 0, 31, 40]])
    """
    return masks.flatten(-2).index_select(-1, _sources()).reshape(masks.shape)


@cache
def _sources() -> Int64[Tensor, "pixels"]:
    centre = torch.arange(0.5, SIDE, dtype=torch.float64)
    y, x = torch.meshgrid(centre, centre, indexing="ij")
    columns, rows = (axis.floor().clamp(0, SIDE - 1).long() for axis in source(x, y))
    return (rows * SIDE + columns).flatten()


def soften(images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
    """Blur with the binomial weights 1, 2, 1 in both directions: edges as with anti-aliasing."""
    blur = _blur().to(images)
    return blur @ images @ blur


def sharpen(images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
    """Take back `soften`, exactly for images of 0 and 1.

    >>> images = (torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    >>> torch.equal(sharpen(soften(images)), images)
    True
    """
    undo: Tensor = torch.linalg.inv(_blur())
    return (undo @ images.double() @ undo).round().to(images)


@cache
def _blur() -> Float64[Tensor, "64 64"]:
    near = torch.ones(SIDE - 1, dtype=torch.float64) / 4
    return near.diag(-1) + near.diag(1) + torch.eye(SIDE, dtype=torch.float64) / 2


def add_noise(images: Float[Tensor, "n c h w"], seeds: Int[Tensor, "n"]) -> Float[Tensor, "n c h w"]:
    """Add normal noise of standard deviation 0.1; each image has a generator of its own with this seed."""
    noise = torch.empty(images.shape)
    for row, seed in zip(noise, seeds.tolist(), strict=True):
        row.normal_(0, NOISE, generator=torch.Generator().manual_seed(seed))
    return images + noise.to(images)
