"""Codes that are verified by drawing them: what has the fewest wrong pixels along the outline of an image is right.

An outline is drawn well at every place, also where it was never read.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.outlines import Masks, Points, border, logits_of, points_of, tables_of
from tpr_attention.nn.images.pose_memory import ACROSS, ANGLE, DOWN, FAR, SCALE, SHAPE, Codes, PoseMemory
from tpr_attention.nn.images.regularity import even_out

__all__ = ["MOST_WRONG", "drop_stand_ins", "read_images", "verified"]

MOST_WRONG = 4
"""Pixels of an outline: an image with more wrong ones has been read wrongly."""
DOUBTED = 2  # wrong pixels: codes that draw an image with more are not believed
AT_ONCE = 2**12  # codes that are drawn in a search
PASSES = 3  # in a search for better codes
STANDS_IN = 0.95  # the share of the images of a code that others must draw, to stand in for it

Tried = Int[Tensor, "b tried codes"]


@torch.no_grad()
def read_images(memory: PoseMemory, decoder: TemplateDecoder, objects: Float[Tensor, "b r f"], masks: Masks) -> Codes:
    """The codes of images whose objects are read.

    An angle that is more than a step from all codes may be another one of the same outline, as for a square that is
    turned by 90 degrees. Then the code is the one that draws the image best.
    """
    codes = memory.read(objects, decoder)
    steps = memory.angles[memory.angles < FAR].diff().abs()
    if len(steps):
        lost = (memory.turns(decoder.pose(objects)).amin(1) > steps.max()).nonzero().flatten()
        codes[lost] = _best(memory, _other_angles(memory, codes[lost]), masks[lost])[0]
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


@torch.no_grad()
def drop_stand_ins(memory: PoseMemory, masks: Masks, codes: Codes) -> None:
    """Forget shapes and angles that others can stand in for, and space the rest evenly where it nearly is.

    Others stand in if nearly all images are drawn by them with few wrong pixels, or no worse. Squares that are
    sometimes read as turned by 90 degrees have angles, and perhaps a shape, that are not needed. The rarest goes first;
    what no image has goes too.

    Args:
        masks: Enough images to have all codes that are needed.
        codes: What they were read as.
    """
    for kind in (SHAPE, ANGLE):
        while found := _stood_in_for(memory, masks, codes, kind):
            number, codes = found
            memory.drop(kind, number)
    even_out(memory)


def _stood_in_for(memory: PoseMemory, masks: Masks, codes: Codes, kind: int) -> tuple[int, Codes] | None:
    """The rarest code that others can stand in for, if there is one, and the codes of all images without it."""
    known = memory.counts["shapes" if kind == SHAPE else "angles"]
    for number in torch.bincount(codes[:, kind], minlength=known).argsort(stable=True).tolist():
        own = (codes[:, kind] == number).nonzero().flatten()
        others = _others(memory, codes[own], kind, number)
        if not others.shape[1]:
            continue
        found, least = _best(memory, others, masks[own])
        before = _wrong(memory, codes[own].unsqueeze(1), masks[own])[:, 0]
        if (least <= before.clamp_min(MOST_WRONG)).sum() >= STANDS_IN * len(own):
            replaced = codes.index_copy(0, own, found)
            replaced[:, kind] -= (replaced[:, kind] > number).long()
            return number, replaced
    return None


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


def _others(memory: PoseMemory, codes: Codes, kind: int, number: int) -> Tried:
    """All shapes with all their scales and all angles, but for one shape or angle."""
    pairs = memory.shapes_and_scales
    turns = torch.arange(memory.counts["angles"], device=codes.device)
    all_codes = torch.cat([pairs.repeat_interleave(len(turns), 0), turns.repeat(len(pairs)).unsqueeze(-1)], 1)
    all_codes = all_codes[all_codes[:, [SHAPE, SCALE, ANGLE].index(kind)] != number]
    tried = codes.unsqueeze(1).repeat(1, len(all_codes), 1)
    tried[..., [SHAPE, SCALE, ANGLE]] = all_codes
    return tried
