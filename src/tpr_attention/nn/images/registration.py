"""Templates laid over images: which one an image shows, and in what pose, whatever an encoder reads.

The area of an image tells the scale, its centre of mass the place. Of several directions those that fit best are
corrected as in a second look.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tpr_attention.nn.images.codes.pose_memory import SHAPE, PoseMemory
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.pixels import Masks, rotated
from tpr_attention.nn.images.poses import Pose
from tpr_attention.nn.images.second_look import DIRECTIONS, Look

__all__ = ["Registered", "fillers_that_cover", "find_symmetries", "register", "symmetry_of", "turned_on"]

SPREAD = (1.0, 0.5, 0.3)  # pixels, radians, and of a scale: how far off a start may be
TRIED = 6  # directions that are corrected
AT_ONCE = 64  # images
NEARLY = 0.06  # of the pixels along an outline: with fewer wrong ones, an image is drawn
ALLOWED = 4.0  # wrong pixels, or as many
MOST_TEMPLATES = 8
COVERED = 0.95  # the share of images that templates must draw
ORDERS = (2, 3, 4, 5, 6)  # of symmetries that are looked for
SAME_ANGLE = 0.02  # radians: how far a template that was turned onto itself may turn on

Fillers = Float[Tensor, "shapes f"]


class Registered(NamedTuple):
    """What images show: the number of a template, its pose, and the pixels along the outline that are still wrong."""

    shape: Int[Tensor, "b"]
    pose: Pose
    wrong: Float[Tensor, "b"]

    def some(self, chosen: Tensor | slice) -> "Registered":
        """Those of some images."""
        return Registered(self.shape[chosen], self.pose.some(chosen), self.wrong[chosen])


@torch.no_grad()
def register(decoder: TemplateDecoder, fillers: Fillers, masks: Masks) -> Registered:
    """The template of each mask that draws it best, and its pose."""
    parts = []
    for some in torch.split(masks, AT_ONCE):
        found = [_registered(decoder, filler, some) for filler in fillers]
        wrong, shape = torch.stack([wrong for wrong, _ in found]).min(0)
        poses = torch.stack([pose for _, pose in found])
        parts.append((shape, poses[shape, torch.arange(len(some), device=shape.device)], wrong))
    shape, numbers, wrong = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return Registered(shape, Look.pose(numbers), wrong)


def _registered(
    decoder: TemplateDecoder, filler: Float[Tensor, "f"], masks: Masks
) -> tuple[Float[Tensor, "b"], Float[Tensor, "b 4"]]:
    """The wrong pixels and the pose of a template for each mask."""
    look = Look.at(decoder, filler.unsqueeze(0), masks, masks.new_tensor(SPREAD))
    starts = _starts(decoder, filler, masks)
    first = torch.stack([look.wrong(pose) for pose in starts.unbind(1)], 1)
    best = first.topk(min(TRIED, starts.shape[1]), 1, largest=False).indices
    number = torch.arange(len(masks), device=masks.device)
    found = []
    for one in best.unbind(1):
        pose = look.again(starts[number, one])
        found.append((look.wrong(pose), pose))
    wrong, which = torch.stack([one for one, _ in found]).min(0)
    return wrong, torch.stack([pose for _, pose in found])[which, number]


def _starts(decoder: TemplateDecoder, filler: Float[Tensor, "f"], masks: Masks) -> Float[Tensor, "b directions 4"]:
    """Poses in all directions with the area and the centre of mass of each mask."""
    template = (decoder.template(filler.unsqueeze(0))[0] > 0).to(masks)
    line = decoder.reach * torch.linspace(-1, 1, decoder.resolution, device=masks.device, dtype=masks.dtype)
    cell = (2 * decoder.reach / (decoder.resolution - 1)) ** 2
    pixels = torch.arange(masks.shape[-1], device=masks.device, dtype=masks.dtype) + 0.5
    area, middle = _moments(template, line)
    areas, middles = _moments(masks, pixels)
    log_scale = 0.5 * (areas.clamp_min(1) / (cell * area.clamp_min(1))).log()
    angles = torch.arange(DIRECTIONS, device=masks.device, dtype=masks.dtype) * (2 * math.pi / DIRECTIONS)
    centre = middles.unsqueeze(1) - log_scale.exp()[:, None, None] * rotated(middle, -angles)
    others = angles.expand(len(masks), -1), log_scale.unsqueeze(1).expand(-1, DIRECTIONS)
    return torch.cat([centre, torch.stack(others, -1)], -1)


def _moments(
    masks: Float[Tensor, "*b row column"], line: Float[Tensor, "row"]
) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b xy"]]:
    """How many cells are on, and their centre of mass."""
    area = masks.sum((-2, -1))
    middle = torch.stack([masks.sum(-2) @ line, masks.sum(-1) @ line], -1)
    return area, middle / area.clamp_min(1).unsqueeze(-1)


@torch.no_grad()
def turned_on(
    decoder: TemplateDecoder, fillers: Fillers, masks: Masks, found: Registered, turns: Float[Tensor, "b"]
) -> Registered:
    """What was found, turned by angles after which shapes are the same: places and scales are found anew."""
    numbers = Look.numbers(found.pose)
    for number, filler in enumerate(fillers):
        some = ((found.shape == number) & (turns != 0)).nonzero().flatten()
        for part in torch.split(some, AT_ONCE):
            look = Look.at(decoder, filler.unsqueeze(0), masks[part], masks.new_tensor(SPREAD))
            start = numbers[part]
            start[:, 2] += turns[part]
            numbers[part] = look.again(start)
    return found._replace(pose=Look.pose(numbers))


@torch.no_grad()
def fillers_that_cover(decoder: TemplateDecoder, objects: Float[Tensor, "b r f"], masks: Masks) -> Fillers:
    """Fillers of shape whose templates draw nearly all of these images, in whatever pose.

    One after the other is taken from the image that its own object draws best, of those that no other draws yet, as
    long as that one is drawn well.
    """
    look = Look.at(decoder, objects[:, 0], masks, masks.new_tensor(SPREAD))
    own, enough = look.wrong(Look.numbers(decoder.pose(objects))), _enough(look)
    undrawn = torch.ones(len(masks), dtype=torch.bool, device=masks.device)
    chosen: list[Tensor] = []
    while undrawn.sum() > (1 - COVERED) * len(masks) and len(chosen) < MOST_TEMPLATES:
        best = own.where(undrawn, torch.inf).argmin()
        if chosen and own[best] > enough[best]:  # nothing that is read draws what is left
            break
        chosen.append(objects[best, 0])
        undrawn &= register(decoder, chosen[-1].unsqueeze(0), masks).wrong > enough
        undrawn[best] = False
    return torch.stack(chosen)


def _enough(look: Look) -> Float[Tensor, "b"]:
    """With how many wrong pixels an image counts as drawn."""
    return (NEARLY * look.pixels.there.sum(1)).clamp_min(ALLOWED)


@torch.no_grad()
def symmetry_of(decoder: TemplateDecoder, filler: Float[Tensor, "f"], pose: Pose) -> int:
    """How often a template fits onto itself in a turn, as seen in a pose: four times for a square, once for a heart."""
    obj = filler.new_zeros(1, decoder.num_contents + 2, decoder.filler_dim)
    obj[0, 0] = filler
    mask = (decoder.field(decoder.posed(obj, pose)) > 0).to(filler)
    look, start = Look.at(decoder, filler.unsqueeze(0), mask, filler.new_tensor(SPREAD)), Look.numbers(pose)
    for order in sorted(ORDERS, reverse=True):
        beside = start + start.new_tensor([0, 0, 2 * math.pi / order, 0])
        found = look.again(beside)
        if (found - beside)[0, 2].abs() < SAME_ANGLE and look.wrong(found) <= _enough(look):
            return order
    return 1


@torch.no_grad()
def find_symmetries(memory: PoseMemory, decoder: TemplateDecoder, objects: Float[Tensor, "b r f"]) -> None:
    """Let a memory know how often each of its shapes is the same in a turn, as the largest of its objects shows."""
    shape, pose = memory.read(objects, decoder)[:, SHAPE], decoder.pose(objects)
    for number in range(memory.counts["shapes"]):
        largest = pose.log_scale.where(shape == number, -torch.inf).argmax().unsqueeze(0)
        memory.orders[number] = symmetry_of(decoder, memory.shapes[number], pose.some(largest))
