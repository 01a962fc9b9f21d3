"""Pixels of images: those along an outline, and where the frame of an object has them."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tpr_attention.nn.images.poses import Pose

__all__ = ["Masks", "border", "in_frame", "rotated"]

Masks = Float[Tensor, "b height width"]


def in_frame(pose: Pose, pixels: Float[Tensor, "*p xy"], reach: float) -> Float[Tensor, "*p xy"]:
    """Where single pixels are in the frame of their objects, as `own_frame` has it for all pixels."""
    near = (pixels - pose.centre) * (torch.exp(-pose.log_scale) / reach).unsqueeze(-1)
    cos, sin = pose.direction.unbind(-1)
    across, down = near.unbind(-1)
    return torch.stack([cos * across - sin * down, sin * across + cos * down], -1)


def rotated(points: Float[Tensor, "*points xy"], angle: Float[Tensor, "*angles"]) -> Float[Tensor, "*both xy"]:
    """From pixels to the directions of the frame of an object with this angle, and with minus the angle back."""
    across, down = points.unbind(-1)
    return torch.stack([angle.cos() * across - angle.sin() * down, angle.sin() * across + angle.cos() * down], -1)


def border(masks: Masks) -> Bool[Tensor, "b height width"]:
    """Pixels some of whose neighbours are on and some are off."""
    return _among_neighbours(masks, torch.maximum) != _among_neighbours(masks, torch.minimum)


def _among_neighbours(masks: Masks, better: Callable[[Tensor, Tensor], Tensor]) -> Masks:
    """The best of the nine pixels around each; faster than pooling."""
    for axis in (-1, -2):
        count = masks.shape[axis] - 1
        pairs = better(masks.narrow(axis, 0, count), masks.narrow(axis, 1, count))
        between = better(pairs.narrow(axis, 0, count - 1), pairs.narrow(axis, 1, count - 1))
        masks = torch.cat([pairs.narrow(axis, 0, 1), between, pairs.narrow(axis, count - 1, 1)], axis)
    return masks
