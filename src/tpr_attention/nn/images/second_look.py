r"""A second look at an image: the pose that was read, corrected by what a template decoder draws of it.

    max_z  sum_p log sigmoid(y_p d_p(z) / tau) - sum_i ((z_i - z'_i) / s_i)^2 / 2

The pose z is a centre, an angle and the logarithm of a scale; z' is what was read, and s how far that may be off. A
pixel p that is on has y_p = 1, one that is off -1; d_p is how far inside of the outline its centre is. An outline that
is a few hundredths of a pixel off has pixels on the wrong side: an image tells more of a position than a network reads.
As many poses draw the same image, the mean over those around the best is taken.

An angle may be far off: networks are continuous, and angles of a square are not, as it is the same when turned by 90
degrees. Where an image is still drawn badly, other directions can be tried.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tpr_attention.functional.signature import expect, expect_whole
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.pixels import border, in_frame
from tpr_attention.nn.images.poses import Pose

__all__ = ["DIRECTIONS", "Look", "second_look"]

SOFTNESS = (0.1, 0.05, 0.03, 0.03)  # pixels: tau, in each of the steps
LEAST_SLOPE = 1e-3  # of a field, for a pixel: less is no outline
MOST = (0.3, 0.3, 0.03, 0.03)  # pixels, radians, and of a scale: how far one step goes
LOST = 3  # wrong pixels along an outline: images with more are looked at from other directions
DIRECTIONS = 24
"""As many as are needed to find an angle that may be any."""
LOOKS = 3  # how often a pose in another direction is corrected
AVERAGED, SHARP = 32, 0.01  # poses, and the softness by which they are weighted, in pixels
AT_ONCE = 8  # images that are looked at from all directions


class _Pixels(NamedTuple):
    """Pixels along the outline of each image: where they are, whether they are on, and whether there is one.

    Images have different numbers of them; what is left of a row is none.
    """

    places: Float[Tensor, "b p xy"]
    on: Float[Tensor, "b p"]
    there: Float[Tensor, "b p"]


Numbers = Float[Tensor, "b 4"]


@torch.no_grad()
def second_look(
    decoder: TemplateDecoder,
    objects: Float[Tensor, "b r f"],
    masks: Float[Tensor, "b height width"],
    spread: Float[Tensor, "3"],
    directions: int = 1,
) -> Float[Tensor, "b r f"]:
    """Objects whose poses fit these masks better.

    Args:
        spread: How far what was read may be off: in pixels for the position, radians for the angle, and for the
            logarithm of the scale.
        directions: How many there are to start from, for images that are drawn badly otherwise. With more than the one
            that was read, a square may be found turned by 90 degrees: do this if objects are only drawn again.

    >>> decoder = TemplateDecoder(side=64, channels=3, filler_dim=8)
    >>> true = torch.randn(4, 5, 8, generator=torch.Generator().manual_seed(0))
    >>> masks = (decoder.field(true) > 0).float()
    >>> pose = decoder.pose(true)
    >>> read = decoder.posed(true, pose._replace(centre=pose.centre + 0.1))
    >>> found = decoder.pose(second_look(decoder, read, masks, torch.tensor([0.1, 0.02, 0.01])))
    >>> bool((found.centre - pose.centre).abs().mean() < 0.05)
    True
    """
    expect("objects", objects, "b r f", {"r": decoder.num_contents + 2, "f": decoder.filler_dim})
    expect("masks", masks, "b height width", {"b": len(objects), "height": decoder.side, "width": decoder.side})
    if spread.shape != (3,) or not (spread > 0).all():
        raise ValueError(f"spread: expected three positive numbers, got {spread.tolist()}")
    expect_whole("directions", directions, 1)
    looked = Look.at(decoder, objects[:, 0], masks, spread)
    read = Look.numbers(decoder.pose(objects))
    found = looked.corrected(read)
    if directions > 1:
        lost = (looked.wrong(found) > LOST).nonzero().flatten()
        for some in torch.split(lost, AT_ONCE):
            better, turned = looked.some(some).turned(read[some], found[some], directions)
            read[some[better]] = found[some[better]] = turned[better]
    return decoder.posed(objects, Look.pose(looked.averaged(found, read)))


class Look(NamedTuple):
    """What is looked at, and how sure one is of what was read. There may be one template for all images."""

    decoder: TemplateDecoder
    templates: Float[Tensor, "templates 3 row column"]
    pixels: _Pixels
    precision: Float[Tensor, "4"]

    @classmethod
    def at(
        cls,
        decoder: TemplateDecoder,
        shapes: Float[Tensor, "templates f"],
        masks: Float[Tensor, "b height width"],
        spread: Float[Tensor, "3"],
    ) -> "Look":
        """A look at masks, each with the template of its filler of shape, or all with the same one."""
        return cls(decoder, _with_slopes(decoder.template(shapes)), _pixels(masks), spread[[0, 0, 1, 2]] ** -2)

    @staticmethod
    def numbers(pose: Pose) -> Numbers:
        """A pose as numbers that steps can be added to."""
        return torch.cat([pose.centre, pose.angle.unsqueeze(-1), pose.log_scale.unsqueeze(-1)], 1)

    @staticmethod
    def pose(numbers: Numbers) -> Pose:
        """The pose that has these numbers."""
        return Pose.at_angle(numbers[:, :2], numbers[:, 2], numbers[:, 3])

    def some(self, chosen: Int[Tensor, "chosen"]) -> "Look":
        """A look at some of the images."""
        pixels = _Pixels(*(tensor[chosen] for tensor in self.pixels))
        is_shared = len(self.templates) == 1
        return self._replace(templates=self.templates if is_shared else self.templates[chosen], pixels=pixels)

    def corrected(self, read: Numbers) -> Numbers:
        """Newton steps from what was read."""
        most, found = read.new_tensor(MOST), read
        for softness in SOFTNESS:
            gradient, curvature = self._slopes(found, read, softness)
            step, _ = torch.linalg.solve_ex(curvature, gradient)  # what is not finite stays so
            found = found + torch.minimum(torch.maximum(step, -most), most)
        return found

    def again(self, pose: Numbers) -> Numbers:
        """Correct a pose several times, each time from the last result."""
        for _ in range(LOOKS):
            pose = self.corrected(pose)
        return pose

    def turned(self, read: Numbers, found: Numbers, directions: int) -> tuple[Bool[Tensor, "b"], Numbers]:
        """The best of poses that are corrected from all directions, each again and again from where it is then.

        Also, whether they have fewer wrong pixels than what was found before.
        """
        number = torch.arange(len(read), device=read.device)
        every = number.repeat_interleave(directions)
        looked, pose = self.some(every), read[every]
        pose[:, 2] += torch.arange(directions, device=read.device).repeat(len(read)) * (2 * math.pi / directions)
        pose = looked.again(pose)
        least, best = looked.wrong(pose).view(-1, directions).min(1)
        return least < self.wrong(found), pose.view(-1, directions, 4)[number, best]

    def wrong(self, pose: Numbers) -> Float[Tensor, "b"]:
        """How many pixels along the outline are on the wrong side."""
        distance, _ = self._distances(pose)
        return (((distance > 0) != (self.pixels.on > 0.5)) * self.pixels.there).sum(1)

    def averaged(self, found: Numbers, read: Numbers) -> Numbers:
        """The mean of poses around what was found, weighted by how likely they are.

        Many poses draw the same image. The mean has the least squared error.
        """
        _, curvature = self._slopes(found, read, SOFTNESS[-1])
        root, _ = torch.linalg.cholesky_ex(torch.linalg.inv_ex(curvature).inverse)
        weights, poses = [], []
        for point in _normal_points(found):
            pose = found + root @ point
            distance, _ = self._distances(pose)
            fit = (F.logsigmoid((2 * self.pixels.on - 1) * distance / SHARP) * self.pixels.there).sum(1)
            prior = (self.precision * (pose - read).square()).sum(1) / 2
            weights.append(fit - prior + point.square().sum() / 2)
            poses.append(pose)
        shares = torch.stack(weights).softmax(0).unsqueeze(-1)
        return (shares * torch.stack(poses)).sum(0)

    def _distances(self, pose: Numbers) -> tuple[Float[Tensor, "b p"], Float[Tensor, "b p 4"]]:
        """How far inside of the outline pixels are, and how that changes with the pose."""
        each, reach = Pose(*(tensor.unsqueeze(1) for tensor in self.pose(pose))), self.decoder.reach
        cells = in_frame(each, self.pixels.places, reach)
        shared = len(self.templates) == 1
        read = F.grid_sample(
            self.templates, cells.unsqueeze(0 if shared else 1), "bilinear", "border", align_corners=True
        )
        field, by_u, by_v = read[0] if shared else read.squeeze(2).unbind(1)
        (u, v), (cos, sin) = cells.unbind(-1), each.direction.unbind(-1)
        size = torch.exp(-each.log_scale) / reach  # of a pixel
        slope = (by_u.square() + by_v.square()).sqrt() * size + LEAST_SLOPE
        slopes = (
            -(cos * by_u + sin * by_v) * size,
            (sin * by_u - cos * by_v) * size,
            u * by_v - v * by_u,
            -(u * by_u + v * by_v),
        )
        return field / slope, torch.stack(slopes, -1) / slope.unsqueeze(-1)

    def _slopes(self, pose: Numbers, read: Numbers, softness: float) -> tuple[Numbers, Float[Tensor, "b 4 4"]]:
        """The gradient of what is maximised, and its curvature."""
        distance, slopes = self._distances(pose)
        pixels, on, slopes = self.pixels, torch.sigmoid(distance / softness), slopes / softness
        weights, errors = on * (1 - on) * pixels.there, (pixels.on - on) * pixels.there
        curvature = torch.einsum("bpi,bp,bpj->bij", slopes, weights, slopes) + torch.diag(self.precision)
        return torch.einsum("bpi,bp->bi", slopes, errors) - self.precision * (pose - read), curvature


def _pixels(masks: Float[Tensor, "b height width"]) -> _Pixels:
    image, row, column = border(masks).nonzero(as_tuple=True)
    counts = torch.bincount(image, minlength=len(masks))
    number = torch.arange(len(image), device=image.device) - (counts.cumsum(0) - counts)[image]
    values = torch.stack([column + 0.5, row + 0.5, masks[image, row, column] > 0.5, torch.ones_like(image)], -1)
    rows = masks.new_zeros(len(masks), int(counts.max()) if len(counts) else 0, 4)
    rows[image, number] = values.to(masks)
    return _Pixels(rows[..., :2], rows[..., 2], rows[..., 3])


def _with_slopes(templates: Float[Tensor, "b row column"]) -> Float[Tensor, "b 3 row column"]:
    """Templates, and their slopes to the right and downwards, where a template goes from -1 to 1."""
    twice = 4 / (templates.shape[-1] - 1)
    across = F.pad((templates[..., 2:] - templates[..., :-2]) / twice, (1, 1))
    down = F.pad((templates[..., 2:, :] - templates[..., :-2, :]) / twice, (0, 0, 1, 1))
    return torch.stack([templates, across, down], 1)


def _normal_points(like: Tensor) -> Float[Tensor, "points 4"]:
    """Points of a normal distribution, spread evenly, each with its opposite."""
    engine = torch.quasirandom.SobolEngine(4, scramble=True, seed=0)  # type: ignore[no-untyped-call]
    points = ((2 * engine.draw(AVERAGED // 2) - 1).erfinv() * math.sqrt(2)).to(like)
    return torch.cat([points, -points])
