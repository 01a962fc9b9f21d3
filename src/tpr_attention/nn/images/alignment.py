r"""One frame for all shapes: templates turned, moved and scaled until properties can be exchanged between objects.

    T'_s(u) = T_s(exp(-g_s) R(a_s) u + v_s)

How a template lies in its own frame is free, and training may leave each shape with an angle a_s, a size g_s and a
middle v_s of its own, or one shape with several templates. What composition does with them tells: where an answer has
another shape than the reference, all else is the same, and so must the pose be. Every shape is compared with one that
has the least symmetry; what is symmetric has several angles, of which the one that the others have is taken. Where that
one has another angle in the answer, its place is the same: this tells around which point of its template it turns.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.pixels import Masks, rotated
from tpr_attention.nn.images.poses import Pose
from tpr_attention.nn.images.registration import Registered, fillers_that_cover, register, symmetry_of, turned_on

__all__ = ["align"]

SEARCHED = 200  # images in which templates are sought
FEWEST = 0.02  # the share of images that a template must have, to be kept
FEWEST_PAIRS = 3
MOST_APART = (0.1, 0.05, 0.5)  # radians, of a size, and pixels: how far pairs may be from their frame, in the median
TURNED = 0.3  # radians: pairs with less between their angles do not tell around which point
NEAR = 0.25  # pixels: a middle that is nearer to this point is left where it is, as outlines are refined later
SURE = 0.01  # of the images of the anchor: an angle that fewer have may be read wrongly
FEWEST_SURE = 3
STEPS = 60  # angles that are tried at once

Objects = Float[Tensor, "b r f"]


class _Frame(NamedTuple):
    """How a template lies in its own frame, compared with another: its angle, the logarithm of its size, its middle."""

    angle: Tensor
    log_size: Tensor
    middle: Tensor


@torch.no_grad()
def align(
    decoder: TemplateDecoder, objects: Sequence[Objects], masks: Sequence[Masks]
) -> Float[Tensor, "images r f"] | None:
    """Give all templates of a decoder one frame, in place. Returns the objects of all images in it.

    Nothing is changed, and nothing returned, where examples do not tell how some shape lies compared with another.

    Args:
        objects: What is read of the images of examples: those of inputs, and those of targets last. The first of the
            inputs is the one whose properties the target has, but for one.
        masks: The images.
    """
    if len(masks) < 2:
        return None
    everything, seen = torch.cat(tuple(objects)), torch.cat(tuple(masks))
    fillers, found = _registered(decoder, everything, seen)
    orders = _orders(decoder, fillers, found, seen)
    if min(orders) > 1:  # each angle could as well be another one
        return None
    anchor, count = orders.index(1), len(masks[0])
    others = [number for number in range(len(orders)) if number != anchor]
    pairs = {number: _Pairs.of(found, count, number, anchor) for number in others}
    if any(len(one.own.log_scale) < FEWEST_PAIRS for one in pairs.values()):
        return None
    angles = seen.new_zeros(len(orders))
    for number, one in pairs.items():
        angles[number] = one.angle(2 * math.pi / orders[number])
    found = turned_on(decoder, fillers, seen, found, _turns_to(anchor, found, angles, orders))
    common = _Frame(angles, torch.zeros_like(angles), seen.new_zeros(len(orders), 2))
    common.middle[anchor] = _Pairs.of(found, count, anchor, anchor).middle()
    about = found._replace(pose=_moved(found, common.middle))
    for number in others:
        frame, agree = _Pairs.of(about, count, number, anchor).frame(angles[number])
        if not agree:
            return None
        for table, value in zip(common, frame, strict=True):
            table[number] = value
    common.angle.add_(_upright(decoder.template(fillers[anchor : anchor + 1])[0]))
    _reframe(decoder, fillers, common)
    return decoder.posed(torch.cat([fillers[found.shape].unsqueeze(1), everything[:, 1:]], 1), _reframed(found, common))


def _registered(
    decoder: TemplateDecoder, objects: Objects, masks: Masks
) -> tuple[Float[Tensor, "shapes f"], Registered]:
    """Fillers of shape whose templates draw images, sought among the larger half, and what all images show of them."""
    large = masks.sum((1, 2)).argsort(descending=True, stable=True)[: len(masks) // 2]
    some = large[:: max(1, len(large) // SEARCHED)]
    fillers = fillers_that_cover(decoder, objects[some], masks[some])
    found = register(decoder, fillers, masks)
    is_rare = torch.bincount(found.shape, minlength=len(fillers)) < FEWEST * len(masks)
    if not is_rare.any():
        return fillers, found
    return fillers[~is_rare], register(decoder, fillers[~is_rare], masks)


def _orders(decoder: TemplateDecoder, fillers: Float[Tensor, "shapes f"], found: Registered, masks: Masks) -> list[int]:
    """The symmetry of each template, as its largest image shows it."""
    areas = masks.sum((1, 2))
    largest = [int(areas.where(found.shape == number, -1).argmax()) for number in range(len(fillers))]
    poses = [found.pose.some(slice(image, image + 1)) for image in largest]
    return [symmetry_of(decoder, filler, pose) for filler, pose in zip(fillers, poses, strict=True)]


class _Pairs(NamedTuple):
    """Poses of one shape and of the anchor, of examples where the answer has the one and the reference the other."""

    own: Pose
    other: Pose

    @classmethod
    def of(cls, found: Registered, count: int, number: int, anchor: int) -> "_Pairs":
        """The pairs among references and targets, which are the first and the last images."""
        first, last = found.some(slice(count)), found.some(slice(-count, None))
        poses = []
        for one, two in ((first, last), (last, first)):
            both = (one.shape == number) & (two.shape == anchor)
            poses.append((one.pose.some(both), two.pose.some(both)))
        return cls(*(Pose(*map(torch.cat, zip(*parts, strict=True))) for parts in zip(*poses, strict=True)))

    def angle(self, turn: float) -> Float[Tensor, ""]:
        """By what angle the shape is turned, modulo a part of a turn: of all pairs the one nearest to the others."""
        differences = self.own.angle - self.other.angle
        apart = _around(differences.unsqueeze(-1) - differences, turn).abs().sum(0)
        return _around(differences[apart.argmin()], turn)

    def frame(self, angle: Float[Tensor, ""]) -> tuple[_Frame, bool]:
        """The frame of the shape, whose angle is nearly known, and whether most pairs agree on it."""
        own, other = self
        turns = _around(own.angle - other.angle - angle, 2 * math.pi)
        away = rotated(other.centre - own.centre, own.angle) * torch.exp(-own.log_scale).unsqueeze(-1)
        each = _Frame(turns, own.log_scale - other.log_scale, away)
        turn, log_size, middle = _Frame(*(part.median(0).values for part in each))
        apart = [(part - one).abs().median() for part, one in zip(each, (turn, log_size, middle), strict=True)]
        agree = all(bool(one <= most) for one, most in zip(apart, MOST_APART, strict=True))
        return _Frame(angle + turn, log_size, middle), agree

    def middle(self) -> Float[Tensor, "2"]:
        """Around which point of its template a shape turns that has the same place in both images of each pair.

        The origin, if that is near, or if pairs do not agree.
        """
        turned = _around(self.own.angle - self.other.angle, 2 * math.pi).abs() > TURNED
        own, other = self.own.some(turned), self.other.some(turned)
        origin = own.centre.new_zeros(2)
        if len(own.centre) < FEWEST_PAIRS:
            return origin
        each = torch.linalg.solve(_onto_pixels(own) - _onto_pixels(other), other.centre - own.centre)
        found = each.median(0).values
        agree = (each - found).abs().median() <= MOST_APART[-1]
        return found if agree and found.norm() > NEAR else origin


def _turns_to(
    anchor: int, found: Registered, angles: Float[Tensor, "shapes"], orders: Sequence[int]
) -> Float[Tensor, "b"]:
    """Turns after which shapes are the same, and the angle of each image is nearest to those of the anchor."""
    angle = found.pose.angle - angles[found.shape]
    known, turns = angle[found.shape == anchor], torch.zeros_like(angle)
    nearest = min(len(known), max(FEWEST_SURE, int(SURE * len(known))))
    for number, order in enumerate(orders):
        own = found.shape == number
        ways = torch.arange(order, device=angle.device, dtype=angle.dtype) * (2 * math.pi / order)
        far = _around((angle[own].unsqueeze(-1) + ways).unsqueeze(-1) - known, 2 * math.pi).abs()
        turns[own] = ways[far.kthvalue(nearest, -1).values.argmin(1)]
    return turns


def _reframed(found: Registered, frames: _Frame) -> Pose:
    """Poses in the frame of all."""
    pose = _moved(found, frames.middle)
    return Pose.at_angle(
        pose.centre, pose.angle - frames.angle[found.shape], pose.log_scale - frames.log_size[found.shape]
    )


def _moved(found: Registered, middles: Float[Tensor, "shapes 2"]) -> Pose:
    """Poses whose centres are where templates have their middles."""
    pose = found.pose
    away = torch.exp(pose.log_scale).unsqueeze(-1) * rotated(middles[found.shape], -pose.angle)
    return pose._replace(centre=pose.centre + away)


def _onto_pixels(pose: Pose) -> Float[Tensor, "b 2 2"]:
    """Matrices that take points of templates to pixels, but for the centre."""
    axes = torch.eye(2, device=pose.angle.device, dtype=pose.angle.dtype)
    turned = rotated(axes, -pose.angle.unsqueeze(-1)).mT
    return torch.exp(pose.log_scale)[:, None, None] * turned


def _upright(template: Float[Tensor, "row column"]) -> Float[Tensor, ""]:
    """The angle a for which T(R(a) u) is most like its image in an upright mirror."""
    middle, step, cells = template.new_zeros(()), math.pi, _cells(template)
    for _ in range(3):  # finer and finer
        step /= STEPS
        angles = middle + step * torch.arange(-STEPS // 2, STEPS // 2 + 1, device=template.device, dtype=middle.dtype)
        places = rotated(cells, angles[:, None, None])
        seen = F.grid_sample(template.expand(len(angles), 1, -1, -1), places, "bilinear", "border", align_corners=True)
        soft = seen.squeeze(1).sigmoid()
        middle = angles[(soft - soft.flip(-1)).square().sum((1, 2)).argmin()]
    return middle


def _reframe(decoder: TemplateDecoder, fillers: Float[Tensor, "shapes f"], frames: _Frame) -> None:
    """Let these fillers have templates in the frame of all, with the least change of what is learned."""
    now = decoder.template(fillers)
    moved = torch.exp(-frames.log_size)[:, None, None, None] * rotated(_cells(now), frames.angle[:, None, None])
    moved = moved + frames.middle[:, None, None] / decoder.reach
    wanted = F.grid_sample(now.unsqueeze(1), moved, "bilinear", "border", align_corners=True).squeeze(1)
    change = torch.linalg.pinv(F.pad(fillers, (1, 0), value=1.0)) @ ((wanted - now) / decoder.gain.exp()).flatten(1)
    decoder.base.add_(change[0].view_as(decoder.base))
    decoder.templates.add_(change[1:].view_as(decoder.templates))


def _cells(templates: Float[Tensor, "*b row column"]) -> Float[Tensor, "row column uv"]:
    """Where the numbers of a template are in its own frame."""
    line = torch.linspace(-1, 1, templates.shape[-1], device=templates.device, dtype=templates.dtype)
    return torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)


def _around(angle: Tensor, turn: float) -> Tensor:
    """Angles between minus and plus half a turn."""
    return (angle + turn / 2).remainder(turn) - turn / 2
