r"""Images as waves: a shift is a change of phase, so that a position can be taken out of an image and put back.

    S_uv = sum_yx m_yx exp(-i w (u y + v x)),    w = 2 pi / side,    |u|, |v| <= cutoff

An image that moves by p keeps |S| and turns its phases: S_uv exp(-i w (u p_y + v p_x)). A position is therefore known
by two angles, a = w p, and written as the filler (cos a_x, sin a_x, cos a_y, sin a_y): the position code.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float
from torch import Tensor

from tpr_attention.functional.signature import checked, expect_some, expect_whole

__all__ = ["POSITION_DIM", "angles_of", "moved", "position_filler", "spectrum", "waves_to_image"]

POSITION_DIM = 4
"""Numbers of a position code."""


@checked
def spectrum(images: Float[Tensor, "*batch height width"], cutoff: int) -> Complex[Tensor, "*batch down across"]:
    """The waves of square images: u from -cutoff to cutoff, v from 0 on; the others are conjugates of these.

    >>> point = torch.zeros(8, 8)
    >>> point[2, 3] = 1
    >>> spectrum(point, 2).shape, spectrum(point, 2).abs().round(decimals=4).unique()
    (torch.Size([5, 3]), tensor([1.]))
    """
    side = _expect_square(images)
    cutoff = _expect_cutoff(cutoff, side)
    down, across = _waves(side, cutoff, images)
    rows = torch.complex(images @ across.cos(), -(images @ across.sin()))
    return torch.complex(down.cos(), -down.sin()).mT @ rows


def waves_to_image(waves: Complex[Tensor, "*batch down across"], side: int) -> Float[Tensor, "*batch height width"]:
    """The real part of a sum of waves, at the centres of the pixels of a square image.

    Of the spectrum of an image, waves with v > 0 counted twice, this is `side ** 2` times that image without what
    `cutoff` leaves out.
    """
    side = expect_whole("side", side, 1)
    cutoff = _expect_cutoff(waves.shape[-1] - 1, side)
    down, across = _waves(side, cutoff, waves.real)
    columns = waves @ torch.complex(across.cos(), across.sin()).mT
    return down.cos() @ columns.real - down.sin() @ columns.imag


def moved(
    waves: Complex[Tensor, "*batch down across"], angles: Float[Tensor, "*batch xy"]
) -> Complex[Tensor, "*batch down across"]:
    """The waves of an image moved by angles a_x, a_y; by their negatives, back.

    >>> waves = spectrum(torch.eye(8), 2)
    >>> back = moved(moved(waves, torch.tensor([0.3, 0.5])), torch.tensor([-0.3, -0.5]))
    >>> torch.allclose(back, waves, atol=1e-5)
    True
    """
    cutoff = waves.shape[-1] - 1
    numbers = torch.arange(-cutoff, cutoff + 1, device=angles.device, dtype=angles.dtype)
    across, down = angles[..., :1] * numbers[cutoff:], angles[..., 1:] * numbers
    return (
        waves
        * torch.polar(torch.ones_like(down), -down)[..., None]
        * torch.polar(torch.ones_like(across), -across).unsqueeze(-2)
    )


@checked
def position_filler(angles: Float[Tensor, "*batch xy"], filler_dim: int) -> Float[Tensor, "*batch f"]:
    """The position code of two angles, and zeros.

    >>> position_filler(torch.zeros(2), 5)
    tensor([1., 0., 1., 0., 0.])
    """
    code = torch.stack([angles.cos(), angles.sin()], -1).flatten(-2)
    return F.pad(code, (0, expect_whole("filler_dim", filler_dim, POSITION_DIM) - POSITION_DIM))


@checked
def angles_of(filler: Float[Tensor, "*batch f"]) -> Float[Tensor, "*batch xy"]:
    """The angles of a position code, of whatever length.

    >>> angles_of(position_filler(torch.tensor([0.3, -0.2]), 8))
    tensor([ 0.3000, -0.2000])
    """
    cos_x, sin_x, cos_y, sin_y = filler[..., :POSITION_DIM].unbind(-1)
    return torch.stack([torch.atan2(sin_x, cos_x), torch.atan2(sin_y, cos_y)], -1)


def _waves(side: int, cutoff: int, like: Tensor) -> tuple[Float[Tensor, "height down"], Float[Tensor, "width across"]]:
    """The phases of waves at the centres of pixels, down and across."""
    centres = torch.arange(side, device=like.device, dtype=like.dtype) + 0.5
    numbers = torch.arange(-cutoff, cutoff + 1, device=like.device, dtype=like.dtype)
    phases = 2 * math.pi / side * centres.unsqueeze(-1) * numbers
    return phases, phases[:, cutoff:]


def _expect_square(images: Tensor) -> int:
    height, width = images.shape[-2:]
    if height != width:
        raise ValueError(f"images: expected square ones, got {height} x {width}")
    expect_some(h=height)
    return height


def _expect_cutoff(cutoff: int, side: int) -> int:
    cutoff = expect_whole("cutoff", cutoff, 1)
    if 2 * cutoff >= side:
        raise ValueError(f"cutoff: expected less than half of the side, {side}, got {cutoff}")
    return cutoff
