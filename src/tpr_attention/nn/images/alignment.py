r"""One frame for all shapes: templates turned, moved and scaled until properties can be exchanged between objects.

    T'_s(u) = T_s(exp(-g_s) R(a_s) u + v_s)

How a template lies in its own frame is free, and training may leave each shape with an angle a_s, a size g_s and a
middle v_s of its own, or one shape with several templates. What composition does with them tells: where an answer has
another shape than the reference, all else is the same, and so must the pose be. Every shape is compared with one that
has the least symmetry; what is symmetric has several angles, of which the one that the others have is taken.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tpr_attention.nn.images.decoders import Pose, TemplateDecoder
from tpr_attention.nn.images.pixels import Masks
from tpr_attention.nn.images.registration import Registered, fillers_that_cover, register, symmetry_of, turned

__all__ = ["align"]

SEARCHED = 200  # images in which templates are sought
FEWEST = 0.02  # the share of images that a template must have, to be kept
FEWEST_PAIRS = 3
DOUBTED = 0.1  # radians: what differs more between pairs is no angle of a shape
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
    areas = seen.sum((1, 2))
    large = areas.argsort(descending=True, stable=True)[: len(seen) // 2]
    some = large[:: max(1, len(large) // SEARCHED)]
    fillers = fillers_that_cover(decoder, everything[some], seen[some])
    found = register(decoder, fillers, seen)
    is_rare = torch.bincount(found.shape, minlength=len(fillers)) < FEWEST * len(seen)
    if is_rare.any():
        fillers = fillers[~is_rare]
        found = register(decoder, fillers, seen)
    largest = [int(areas.where(found.shape == number, -1).argmax()) for number in range(len(fillers))]
    poses = [found.pose.some(slice(image, image + 1)) for image in largest]
    orders = [symmetry_of(decoder, filler, pose) for filler, pose in zip(fillers, poses, strict=True)]
    anchor = orders.index(min(orders))
    pairs = [_Pairs.of(found, len(masks[0]), number, anchor) for number in range(len(orders))]
    if any(len(one.own.log_scale) < FEWEST_PAIRS for one in pairs):
        return None
    turns = [2 * math.pi / order for order in orders]
    angles = torch.stack([one.angle(turn) for one, turn in zip(pairs, turns, strict=True)])
    if any(one.doubt(*of_shape) > DOUBTED for one, *of_shape in zip(pairs, angles, turns, strict=True)):
        return None
    found = turned(decoder, fillers, seen, found, _turns_to(anchor, found, angles, orders))
    frames = [_Pairs.of(found, len(masks[0]), number, anchor).frame(angle) for number, angle in enumerate(angles)]
    common = _Frame(*map(torch.stack, zip(*frames, strict=True)))
    common = common._replace(angle=common.angle + _upright(decoder.template(fillers[anchor : anchor + 1])[0]))
    _reframe(decoder, fillers, common)
    return decoder.posed(torch.cat([fillers[found.shape].unsqueeze(1), everything[:, 1:]], 1), _reframed(found, common))


class _Pairs(NamedTuple):
    """Poses of one shape and of the anchor, of examples where the answer has the one and the reference the other."""

    own: Pose
    other: Pose

    @classmethod
    def of(cls, found: Registered, count: int, number: int, anchor: int) -> "_Pairs":
        """The pairs among references and targets, the first and the last images. The anchor has pairs with itself."""
        first, last = found.some(slice(count)), found.some(slice(-count, None))
        poses = []
        for one, two in ((first, last), (last, first)):
            both = (one.shape == number) & (two.shape == anchor)
            poses.append((one.pose.some(both), (one if number == anchor else two).pose.some(both)))
        return cls(*(Pose(*map(torch.cat, zip(*parts, strict=True))) for parts in zip(*poses, strict=True)))

    def angle(self, turn: float) -> Float[Tensor, ""]:
        """By what angle the shape is turned, modulo a part of a turn: of all pairs the one nearest to the others."""
        differences = self.own.angle - self.other.angle
        apart = _around(differences.unsqueeze(-1) - differences, turn).abs().sum(0)
        return _around(differences[apart.argmin()], turn)

    def doubt(self, angle: Float[Tensor, ""], turn: float) -> float:
        """How far other pairs are from this angle, in the median."""
        return float(_around(self.own.angle - self.other.angle - angle, turn).abs().median())

    def frame(self, angle: Float[Tensor, ""]) -> _Frame:
        """The frame of the shape, whose angle is nearly known."""
        own, other = self
        turn = _around(own.angle - other.angle - angle, 2 * math.pi).median()
        away = _turned(other.centre - own.centre, own.angle) * torch.exp(-own.log_scale).unsqueeze(-1)
        return _Frame(angle + turn, (own.log_scale - other.log_scale).median(), away.median(0).values)


def _turns_to(
    anchor: int, found: Registered, angles: Float[Tensor, "shapes"], orders: Sequence[int]
) -> Float[Tensor, "b"]:
    """Turns after which shapes are the same, and the angle of each image is nearest to those of the anchor."""
    angle = found.pose.angle - angles[found.shape]
    known, turns = angle[found.shape == anchor], torch.zeros_like(angle)
    for number, order in enumerate(orders):
        own = found.shape == number
        ways = torch.arange(order, device=angle.device) * (2 * math.pi / order)
        far = _around((angle[own].unsqueeze(-1) + ways).unsqueeze(-1) - known, 2 * math.pi).abs().amin(-1)
        turns[own] = ways[far.argmin(1)]
    return turns


def _reframed(found: Registered, frames: _Frame) -> Pose:
    """Poses in the frame of all."""
    angle, log_size, middle = (part[found.shape] for part in frames)
    pose = found.pose
    centre = pose.centre + torch.exp(pose.log_scale).unsqueeze(-1) * _turned(middle, -pose.angle)
    return Pose.at_angle(centre, pose.angle - angle, pose.log_scale - log_size)


def _upright(template: Float[Tensor, "row column"]) -> Float[Tensor, ""]:
    """By what angle a template is turned from where it is most like its own image in an upright mirror."""
    middle, step, cells = template.new_zeros(()), math.pi, _cells(template)
    for _ in range(3):  # finer and finer
        step /= STEPS
        angles = middle + step * torch.arange(-STEPS // 2, STEPS // 2 + 1, device=template.device)
        places = _turned(cells, angles[:, None, None])
        seen = F.grid_sample(template.expand(len(angles), 1, -1, -1), places, "bilinear", "border", align_corners=True)
        soft = seen.squeeze(1).sigmoid()
        middle = angles[(soft - soft.flip(-1)).square().sum((1, 2)).argmin()]
    return middle


def _reframe(decoder: TemplateDecoder, fillers: Float[Tensor, "shapes f"], frames: _Frame) -> None:
    """Let these fillers have templates in the frame of all, with the least change of what is learned."""
    now = decoder.template(fillers)
    moved = torch.exp(-frames.log_size)[:, None, None, None] * _turned(_cells(now), frames.angle[:, None, None])
    moved = moved + frames.middle[:, None, None] / decoder.reach
    wanted = F.grid_sample(now.unsqueeze(1), moved, "bilinear", "border", align_corners=True).squeeze(1)
    change = torch.linalg.pinv(F.pad(fillers, (1, 0), value=1.0)) @ ((wanted - now) / decoder.gain.exp()).flatten(1)
    decoder.base.add_(change[0].view_as(decoder.base))
    decoder.templates.add_(change[1:].view_as(decoder.templates))


def _cells(templates: Float[Tensor, "*b row column"]) -> Float[Tensor, "row column uv"]:
    """Where the numbers of a template are in its own frame."""
    line = torch.linspace(-1, 1, templates.shape[-1], device=templates.device, dtype=templates.dtype)
    return torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)


def _turned(points: Float[Tensor, "*points xy"], angle: Float[Tensor, "*angles"]) -> Float[Tensor, "*both xy"]:
    """From pixels to the own frame of an object with this angle."""
    across, down = points.unbind(-1)
    return torch.stack([angle.cos() * across - angle.sin() * down, angle.sin() * across + angle.cos() * down], -1)


def _around(angle: Tensor, turn: float) -> Tensor:
    """Angles between minus and plus half a turn."""
    return (angle + turn / 2).remainder(turn) - turn / 2
