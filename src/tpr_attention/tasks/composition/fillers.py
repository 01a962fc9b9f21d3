"""The fillers of the paper's five factors (App. E)."""

from collections.abc import Sequence
from math import isfinite, pi

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.tasks.composition.encoding import FillerTable
from tpr_attention.tasks.composition.factors import Grid

__all__ = ["dsprites_fillers"]

FILLER_DIM = 3


def dsprites_fillers(
    grid: Grid, *, scale_angles: Sequence[float] | None = None, azimuth: float = pi / 4
) -> tuple[FillerTable, ...]:
    r"""The fillers of the five factors.

    shape, colour: one-hot;    orientation: (cos t, sin t, 0);    position: (x, y, 1 - sqrt(x^2 + y^2));
    scale: (cos t_s, sin t_s cos phi, sin t_s sin phi)                                          (App. E)

    Args:
        scale_angles: t_s, one for each scale; evenly spaced from 0 to pi / 2 if not given (decision 0008).
        azimuth: phi (decision 0008).

    >>> from tpr_attention.tasks.composition.factors import dsprites
    >>> {table.role: len(table.fillers) for table in dsprites_fillers(dsprites())}
    {'shape': 3, 'scale': 6, 'orientation': 40, 'position': 1024, 'colour': 3}
    """
    scales = len(_values(grid, "scale"))
    angles = torch.linspace(0, pi / 2, scales, dtype=torch.float64)
    if scale_angles is not None:
        angles = torch.tensor(scale_angles, dtype=torch.float64)
    if angles.shape != (scales,) or not angles.isfinite().all():
        raise ValueError(f"scale_angles: expected {scales} finite numbers, one for each scale, got {scale_angles}")
    if not isfinite(azimuth):
        raise ValueError(f"azimuth: expected a finite number, got {azimuth}")
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


def _values(grid: Grid, name: str) -> Float[Tensor, "k"]:
    return torch.tensor(grid.columns[grid.index(name)].values, dtype=torch.float64)
