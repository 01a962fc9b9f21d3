"""The fillers of the paper's task (App. E), with and without interacting factors."""

from collections.abc import Callable, Mapping, Sequence
from math import pi

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor

from tpr_attention.data.encoding import FillerTable
from tpr_attention.data.factors import Grid

__all__ = ["INTERACTIONS", "MIXINGS", "dsprites_fillers", "scale_pos", "shape_col"]

FILLER_DIM = 3

MIXINGS: dict[str, Callable[[tuple[int, ...], torch.Generator], Tensor]] = {
    "normal": lambda shape, generator: torch.randn(shape, generator=generator, dtype=torch.float64),
    "uniform": lambda shape, generator: 2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1,
}
"""How the random tensor of the categorical interaction may be drawn. All have mean zero."""


def dsprites_fillers(
    grid: Grid, *, scale_angles: Sequence[float] | None = None, azimuth: float = pi / 4
) -> tuple[FillerTable, ...]:
    r"""The fillers of the five factors.

    shape, colour: one-hot;    orientation: (cos t, sin t, 0);    position: (x, y, 1 - sqrt(x^2 + y^2));
    scale: (cos t_s, sin t_s cos phi, sin t_s sin phi)                                          (App. E)

    Args:
        scale_angles: t_s, one for each scale; evenly spaced from 0 to pi / 2 if not given (decision 0008).
        azimuth: phi (decision 0008).

    >>> from tpr_attention.data.factors import dsprites
    >>> {table.role: len(table.fillers) for table in dsprites_fillers(dsprites())}
    {'shape': 3, 'scale': 6, 'orientation': 40, 'position': 1024, 'colour': 3}
    """
    scales = len(_values(grid, "scale"))
    angles = torch.linspace(0, pi / 2, scales, dtype=torch.float64)
    if scale_angles is not None:
        angles = torch.tensor(scale_angles, dtype=torch.float64)
    if angles.shape != (scales,):
        raise ValueError(f"scale_angles: expected {scales}, one for each scale, got {list(angles.shape)}")
    turn, phi = _values(grid, "orientation"), torch.tensor(azimuth, dtype=torch.float64)
    x, y = (axis.flatten() for axis in torch.meshgrid(*(_values(grid, f"position_{a}") for a in "xy"), indexing="ij"))
    identity = torch.eye(FILLER_DIM, dtype=torch.float64)
    return (
        FillerTable("shape", ("shape",), identity),
        FillerTable(
            "scale",
            ("scale",),
            torch.stack([angles.cos(), angles.sin() * phi.cos(), angles.sin() * phi.sin()], -1),
        ),
        FillerTable("orientation", ("orientation",), torch.stack([turn.cos(), turn.sin(), torch.zeros_like(turn)], -1)),
        FillerTable("position", ("position_x", "position_y"), torch.stack([x, y, 1 - torch.hypot(x, y)], -1)),
        FillerTable("colour", ("colour",), identity),
    )


def scale_pos(tables: Mapping[str, FillerTable], mixing: Callable[[tuple[int, ...]], Tensor]) -> FillerTable:
    r"""A filler that scale and position share: the numerical interaction.

    normalize(f_scale + f_pos)                                                                  (App. E)
    """
    scale, position = tables["scale"], tables["position"]
    total = (scale.fillers[:, None] + position.fillers).flatten(0, 1)
    length = total.norm(dim=-1, keepdim=True)
    if length.min() < 1e-6:
        raise ValueError("scale_angles: a scale and a position whose fillers add up to zero have no direction")
    return FillerTable("scale_pos", scale.columns + position.columns, total / length)


def shape_col(tables: Mapping[str, FillerTable], mixing: Callable[[tuple[int, ...]], Tensor]) -> FillerTable:
    r"""A filler that shape and colour share: the categorical interaction.

    f[k] = sum_ij f_shape[i] M[k, i, j] f_colour[j]                                             (App. E)

    M is random, so a combination that was never seen cannot be known; the best guess is the mean of M, zero.
    """
    shape, colour = tables["shape"], tables["colour"]
    tensor = mixing((FILLER_DIM, FILLER_DIM, FILLER_DIM))
    fillers = einsum(shape.fillers, tensor, colour.fillers, "s i, k i j, c j -> s c k").flatten(0, 1)
    return FillerTable("shape_col", shape.columns + colour.columns, fillers, guess=torch.zeros(FILLER_DIM).double())


INTERACTIONS: dict[str, Callable[[Mapping[str, FillerTable], Callable[[tuple[int, ...]], Tensor]], FillerTable]] = {
    "scale_pos": scale_pos,
    "shape_col": shape_col,
}
"""Each adds a role whose filler depends on two factors."""


def _values(grid: Grid, name: str) -> Float[Tensor, "k"]:
    return torch.tensor(grid.columns[grid.index(name)].values, dtype=torch.float64)
