"""Codes that are verified by drawing them: what has the fewest wrong pixels along the outline of an image is right.

An outline is drawn well at every place, also where it was never read. Drawing also tells angles apart that a
continuous encoder does not: those of a square, which hardly changes when it is turned by 90 degrees.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tpr_attention.nn.images.codes.outlines import Points, logits_of, points_of, tables_of
from tpr_attention.nn.images.codes.pose_memory import ACROSS, ANGLE, DOWN, SCALE, SHAPE, Codes, PoseMemory
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.pixels import Masks, border

__all__ = ["MOST_WRONG", "codes_of", "verified"]

MOST_WRONG = 4
"""Pixels of an outline: an image with more wrong ones has been read wrongly."""
DOUBTED = 2  # wrong pixels: codes that draw an image with more are not believed
AT_ONCE = 2**12  # codes that are drawn in a search
PASSES = 3  # in a search for better codes

Tried = Int[Tensor, "b tried codes"]


@torch.no_grad()
def codes_of(memory: PoseMemory, decoder: TemplateDecoder, objects: Float[Tensor, "b r f"], masks: Masks) -> Codes:
    """The codes of images, as their objects are read.

    Where angles of a shape look alike, all are drawn, and the one with the fewest wrong pixels is taken; of several the
    first.
    """
    masks = (masks > 0.5).to(masks)  # soft or noisy ones have outlines everywhere
    codes = memory.read(objects, decoder)
    alike = memory.look_alike[codes[:, SHAPE]].nonzero().flatten()
    if len(alike):
        codes[alike] = _best(memory, _other_angles(memory, codes[alike]), masks[alike])[0]
    return codes


@torch.no_grad()
def verified(memory: PoseMemory, codes: Codes, masks: Masks) -> Codes:
    """Better codes of images that these draw badly: analysis by synthesis.

    All other angles, shapes with their scales, or neighbouring places are drawn, and what has the fewest wrong pixels
    is kept; and again from there.
    """
    best, wrong = codes.clone(), _wrong(memory, codes.unsqueeze(1), masks)[:, 0]
    for _ in range(PASSES):
        doubted = (wrong > DOUBTED).nonzero().flatten()
        kinds = _other_angles, _other_shapes, _other_places
        tried = torch.cat([others(memory, best[doubted]) for others in kinds], 1)
        found, least = _best(memory, tried, masks[doubted])
        better = least < wrong[doubted]
        best[doubted[better]] = found[better]
        wrong[doubted] = torch.minimum(wrong[doubted], least)
    return best


def _best(memory: PoseMemory, tried: Tried, masks: Masks) -> tuple[Codes, Float[Tensor, "b"]]:
    """Of several codes for each image the best, and how many pixels along the outline it has wrong."""
    images = max(1, AT_ONCE // tried.shape[1])
    parts = zip(torch.split(tried, images), torch.split(masks, images), strict=True)
    least, which = torch.cat([_wrong(memory, *part) for part in parts]).min(1)
    return tried[torch.arange(len(tried), device=which.device), which], least


def _wrong(memory: PoseMemory, tried: Tried, masks: Masks) -> Float[Tensor, "b tried"]:
    """Wrong pixels along the outline of each image, for each of its codes."""
    image, points = points_of(masks, tried[:, 0], border(masks))
    count = tried.shape[1]
    pixels, labels = (tensor.repeat_interleave(count, 0) for tensor in points[1:])
    each = Points(tried[image].flatten(0, 1), pixels, labels)
    is_wrong = (logits_of(memory, each, **tables_of(memory)) > 0) != (labels > 0.5)
    return masks.new_zeros(len(masks), count).index_add_(0, image, is_wrong.view(-1, count).to(masks))


def _other_shapes(memory: PoseMemory, codes: Codes) -> Tried:
    pairs = memory.shapes_and_scales
    tried = codes.unsqueeze(1).repeat(1, len(pairs), 1)
    tried[..., [SHAPE, SCALE]] = pairs
    return tried


def _other_angles(memory: PoseMemory, codes: Codes) -> Tried:
    tried = codes.unsqueeze(1).repeat(1, memory.counts["angles"], 1)
    tried[..., ANGLE] = torch.arange(tried.shape[1], device=codes.device)
    return tried


def _other_places(memory: PoseMemory, codes: Codes) -> Tried:
    steps = torch.arange(-1, 2, device=codes.device)
    tried = codes.unsqueeze(1).repeat(1, 9, 1)
    tried[..., [ACROSS, DOWN]] += torch.cartesian_prod(steps, steps)
    tried[..., [ACROSS, DOWN]] = tried[..., [ACROSS, DOWN]].clamp_min(0).minimum(memory.place_counts - 1)
    return tried
