"""Pixels along the outlines of images, and what the templates of a pose memory say of them."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tpr_attention.functional.images.splines import read_splines
from tpr_attention.nn.images.codes.pose_memory import SHAPE, Codes, PoseMemory
from tpr_attention.nn.images.pixels import Masks, border, in_frame

__all__ = [
    "TABLES",
    "Outlines",
    "Points",
    "logits_of",
    "outlines_of",
    "points_of",
    "tables_of",
    "widened",
]

TABLES = ("templates", "log_scales", "angles", "places")
"""What decides where the outlines of a memory are."""


class Points(NamedTuple):
    """Pixels of images: the codes of the images, the centres of the pixels, and whether they are on.

    Gathered ones have the numbers of columns and rows instead of centres, and codes as bytes.
    """

    codes: Int[Tensor, "p codes"]
    pixels: Float[Tensor, "p xy"]
    labels: Float[Tensor, "p"]

    def some(self, chosen: Tensor) -> "Points":
        """Those that are chosen, by a mask or by their numbers."""
        return Points(*(tensor[chosen] for tensor in self))

    def split(self, size: int) -> "Iterator[Points]":
        """Parts of this size."""
        return (Points(*part) for part in zip(*(torch.split(tensor, size) for tensor in self), strict=True))


def widened(points: Points, memory: PoseMemory) -> Points:
    """Gathered pixels as they are fitted."""
    like = memory.templates
    return Points(points.codes.long(), points.pixels.to(like) + 0.5, points.labels.to(like))


def tables_of(memory: PoseMemory) -> dict[str, Tensor]:
    """The tables of a memory by name."""
    return {name: getattr(memory, name) for name in TABLES}


def logits_of(
    memory: PoseMemory, points: Points, templates: Tensor, log_scales: Tensor, angles: Tensor, places: Tensor
) -> Float[Tensor, "p"]:
    """The logarithms of the odds that pixels are on, by these tables."""
    pose = memory.pose(points.codes, log_scales, angles, places)
    return read_splines(templates, points.codes[:, SHAPE], in_frame(pose, points.pixels, float(memory.reach)))


def points_of(masks: Masks, codes: Codes, chosen: Bool[Tensor, "b height width"]) -> tuple[Int[Tensor, "p"], Points]:
    """Chosen pixels, and the number of the image of each."""
    image, row, column = chosen.nonzero(as_tuple=True)
    centres = torch.stack([column, row], -1).to(masks) + 0.5
    return image, Points(codes[image], centres, masks[image, row, column])


class Outlines(NamedTuple):
    """The pixels along the outlines of images, as a memory draws them.

    Args:
        image: The number of the image that each pixel is of.
        is_wrong: Whether it is drawn on the wrong side.
        counts: How many wrong ones each image has.
    """

    image: Int[Tensor, "p"]
    points: Points
    logits: Float[Tensor, "p"]
    is_wrong: Bool[Tensor, "p"]
    counts: Float[Tensor, "b"]


@torch.no_grad()
def outlines_of(memory: PoseMemory, masks: Masks, codes: Codes) -> Outlines:
    """What a memory draws along the outlines of images."""
    image, points = points_of(masks, codes, border(masks))
    logits = logits_of(memory, points, **tables_of(memory))
    is_wrong = (logits > 0) != (points.labels > 0.5)
    return Outlines(image, points, logits, is_wrong, torch.bincount(image, is_wrong, len(masks)).to(masks))
