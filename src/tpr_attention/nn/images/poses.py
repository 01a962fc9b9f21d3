"""Poses of templates, and the frames that they give to images."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Pose", "own_frame"]


class Pose(NamedTuple):
    """Where a template is drawn: the centre in pixels, the direction (cos, sin) and the logarithm of the scale."""

    centre: Float[Tensor, "*batch xy"]
    direction: Float[Tensor, "*batch cos_sin"]
    log_scale: Float[Tensor, "*batch"]

    @classmethod
    def at_angle(
        cls,
        centre: Float[Tensor, "*batch xy"],
        angle: Float[Tensor, "*batch"],
        log_scale: Float[Tensor, "*batch"],
    ) -> "Pose":
        """A pose whose direction has this angle."""
        return cls(centre, torch.stack([angle.cos(), angle.sin()], -1), log_scale)

    @property
    def angle(self) -> Float[Tensor, "*batch"]:
        """The angle of the direction."""
        return torch.atan2(self.direction[..., 1], self.direction[..., 0])

    def some(self, chosen: Tensor | slice) -> "Pose":
        """Some of several poses."""
        return Pose(*(part[chosen] for part in self))


def own_frame(pose: Pose, side: int, reach: float) -> Float[Tensor, "b height width uv"]:
    """Where the centres of all pixels are in the frame of each object; its template goes from -1 to 1."""
    centres = torch.arange(side, device=pose.centre.device, dtype=pose.centre.dtype) + 0.5
    near = (centres - pose.centre.unsqueeze(-1)) * (torch.exp(-pose.log_scale) / reach)[..., None, None]
    across, down = near[..., 0, None, :], near[..., 1, :, None]
    cos, sin = pose.direction[..., 0, None, None], pose.direction[..., 1, None, None]
    return torch.stack([cos * across - sin * down, sin * across + cos * down], -1)
