"""True fillers of objects that can be drawn, for decoders alone and for models that are trained with factor labels."""

from math import pi

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64
from torch import Tensor

from tpr_attention.tasks.composition.factors import Factors
from tpr_attention.tasks.images.distortions import SIDE

__all__ = ["FILLER_DIM", "true_fillers"]

FILLER_DIM = 8


def true_fillers(factors: Factors, dtype: torch.dtype = torch.float32) -> Float[Tensor, "n 5 8"]:
    r"""The fillers of shape, scale, orientation, position and colour, padded with zeros to 8 numbers.

    shape, colour: one-hot;    scale: its value;    orientation: (cos t, sin t);
    position: (cos a_x, sin a_x, cos a_y, sin a_y) with a = 2 pi p / 64

    where p is the centre of the sprite in pixels, from 16 to 48, and the centre of pixel j is at j + 1/2.

    >>> from tpr_attention.tasks.images.frames import white_grid
    >>> first = true_fillers(white_grid().rows(torch.tensor([0])))[0]
    >>> [filler[:4].round(decimals=1).abs().tolist() for filler in first[[0, 1, 3]]]
    [[1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    """
    turn, x, y = factors.value("orientation"), _angle(factors, "position_x"), _angle(factors, "position_y")
    fillers = (
        _one_hot(factors, "shape"),
        factors.value("scale")[:, None],
        torch.stack([turn.cos(), turn.sin()], -1),
        torch.stack([x.cos(), x.sin(), y.cos(), y.sin()], -1),
        _one_hot(factors, "colour"),
    )
    return torch.stack([F.pad(filler, (0, FILLER_DIM - filler.shape[1])) for filler in fillers], 1).to(dtype)


def _one_hot(factors: Factors, name: str) -> Float64[Tensor, "n k"]:
    return torch.eye(factors.grid.sizes[factors.grid.index(name)], dtype=torch.float64)[factors.column(name)]


def _angle(factors: Factors, name: str) -> Float64[Tensor, "n"]:
    steps = factors.grid.sizes[factors.grid.index(name)] - 1
    return 2 * pi * (16 + 32 * factors.column(name).double() / steps) / SIDE
