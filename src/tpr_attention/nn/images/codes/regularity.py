"""Codes of a pose memory made regular: evenly spaced where they nearly are, and scales in one unit for all shapes."""

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.nn.images.codes.pose_memory import FAR, PoseMemory

__all__ = ["complete", "even_out", "units_of"]

NEARLY = 0.1  # of a step: how far codes may be from evenly spaced ones, and scales of shapes apart, but for a factor
FEW = 0.1  # of the codes: how many may be missing, or there twice


@torch.no_grad()
def complete(memory: PoseMemory) -> None:
    """Add places and angles that are missing in a row of nearly even ones, and drop those that are there twice.

    Where images are few, a code may not be found, and another one twice. Rows in which no distance is unusual stay as
    they are.

    >>> from tpr_attention.nn.images.decoders import TemplateDecoder
    >>> memory = PoseMemory(TemplateDecoder(side=64, channels=3, filler_dim=8))
    >>> memory.angles[:21] = torch.tensor([*range(10), 9.03, *range(11, 21)])
    >>> complete(memory)
    >>> memory.counts["angles"], float(memory.angles[10].round(decimals=1))
    (21, 10.0)
    """
    for row in (memory.angles, *memory.places):
        _complete(row)


def _complete(codes: Float[Tensor, "most"]) -> None:
    """Put an evenly spaced code wherever there should be one, in place; codes are in order."""
    used = int((codes < FAR).sum())
    found = codes[:used].double()
    if used < 3 or (found.diff() <= 0).any():
        return
    steps = (found.diff() / found.diff().median()).round()
    count = int(steps.sum()) + 1
    if not 0 < (steps - 1).abs().sum() <= FEW * used or count > len(codes):
        return
    number = torch.cat([steps.new_zeros(1), steps.cumsum(0)])
    off = number - number.mean()
    step = (off @ found) / off.square().sum()
    if (found - found.mean() - step * off).abs().max() <= NEARLY * step:
        codes.fill_(FAR)
        every = torch.arange(count, device=codes.device, dtype=torch.float64)
        codes[:count] = (found.mean() + step * (every - number.mean())).to(codes)


@torch.no_grad()
def even_out(memory: PoseMemory) -> None:
    """Space places, angles and scales evenly where they nearly are: by the line of least squares through them.

    >>> from tpr_attention.nn.images.decoders import TemplateDecoder
    >>> memory = PoseMemory(TemplateDecoder(side=64, channels=3, filler_dim=8))
    >>> memory.angles[:4] = torch.tensor([0.0, 1.01, 1.99, 3.0])
    >>> even_out(memory)
    >>> memory.angles[:4].diff()
    tensor([0.9980, 0.9980, 0.9980])
    """
    for row in (memory.angles, *memory.places):
        _even(row)
    for row in memory.log_scales:
        scales = torch.where(row < FAR, row.exp(), FAR)
        _even(scales)
        row.copy_(torch.where(row < FAR, scales.log(), FAR))


def _even(codes: Float[Tensor, "most"]) -> None:
    """Even out the codes that are used, in place; they are in order."""
    used = int((codes < FAR).sum())
    found = codes[:used].double()
    if used < 3 or (found.diff() <= 0).any():
        return
    number = torch.arange(used, device=codes.device, dtype=torch.float64)
    number = number - number.mean()
    step = (number @ found) / number.square().sum()
    line = found.mean() + step * number
    if (found - line).abs().max() <= NEARLY * step:
        codes[:used] = line.to(codes)


def units_of(memory: PoseMemory) -> Float[Tensor, "clusters"]:
    """How much larger than in the mean the logarithms of scales of each shape are, if they differ in nothing else.

    How large a template is at scale one is free, and another for each shape, as long as objects are drawn by the scales
    of their own shape. Less these units, the scale of one object can be given to another of any shape.
    """
    known = memory.counts["shapes"]
    units = torch.zeros_like(memory.units)
    used = memory.log_scales[:known] < FAR
    if (used != used[:1]).any():
        return units
    scales = memory.log_scales[:known, used[0]]
    found = scales.mean(1) - scales.mean()
    common = scales - found.unsqueeze(-1)
    if scales.shape[1] < 2 or (common - common.mean(0)).abs().max() <= NEARLY * common.mean(0).diff().min():
        units[:known] = found
    return units
