r"""A second look at an image: the pose that was read, corrected by what a template decoder draws of it.

    max_z  sum_p log sigmoid(y_p d_p(z) / tau) - sum_i ((z_i - z'_i) / s_i)^2 / 2

The pose z is a centre, an angle and the logarithm of a scale; z' is what was read, and s how far that may be off. A
pixel p that is on has y_p = 1, one that is off -1; d_p is how far inside of the outline its centre is. An outline that
is a few hundredths of a pixel off has pixels on the wrong side: an image tells more of a position than a network reads.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.signature import expect
from tpr_attention.nn.images.decoders import Pose, TemplateDecoder
from tpr_attention.nn.images.outlines import border, in_frame

__all__ = ["second_look"]

SOFTNESS = (0.1, 0.05, 0.03, 0.03)  # pixels: tau, in each of the steps
LEAST_SLOPE = 1e-3  # of a field, for a pixel: less is no outline
MOST = (0.3, 0.3, 0.03, 0.03)  # pixels, radians, and of a scale: how far one step goes


class _Pixels(NamedTuple):
    """Pixels along the outline of each image: where they are, whether they are on, and whether there is one.

    Images have different numbers of them; what is left of a row is none.
    """

    places: Float[Tensor, "b p xy"]
    on: Float[Tensor, "b p"]
    there: Float[Tensor, "b p"]


@torch.no_grad()
def second_look(
    decoder: TemplateDecoder,
    objects: Float[Tensor, "b r f"],
    masks: Float[Tensor, "b height width"],
    spread: Float[Tensor, "3"],
) -> Float[Tensor, "b r f"]:
    """Objects whose poses fit these masks better.

    Args:
        spread: How far what was read may be off: in pixels for the position, radians for the angle, and for the
            logarithm of the scale.

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
    pixels = _pixels(masks)
    templates = _with_slopes(decoder.template(objects[:, 0]))
    read = _numbers(decoder.pose(objects))
    precision = spread[[0, 0, 1, 2]] ** -2
    most, found = read.new_tensor(MOST), read
    for softness in SOFTNESS:
        distance, slopes = _distances(decoder, templates, _pose(found), pixels.places)
        on, slopes = torch.sigmoid(distance / softness), slopes / softness
        weights, errors = on * (1 - on) * pixels.there, (pixels.on - on) * pixels.there
        curvature = torch.einsum("bpi,bp,bpj->bij", slopes, weights, slopes) + torch.diag(precision)
        gradient = torch.einsum("bpi,bp->bi", slopes, errors) - precision * (found - read)
        step, _ = torch.linalg.solve_ex(curvature, gradient)  # what is not finite stays so
        found = found + torch.minimum(torch.maximum(step, -most), most)
    return decoder.posed(objects, _pose(found))


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


def _distances(
    decoder: TemplateDecoder,
    templates: Float[Tensor, "b 3 row column"],
    pose: Pose,
    places: Float[Tensor, "b p xy"],
) -> tuple[Float[Tensor, "b p"], Float[Tensor, "b p 4"]]:
    """How far inside of the outline pixels are, and how that changes with the pose."""
    each = Pose(*(tensor.unsqueeze(1) for tensor in pose))
    cells = in_frame(each, places, decoder.reach)
    read = F.grid_sample(templates, cells.unsqueeze(1), "bilinear", "border", align_corners=True)
    field, by_u, by_v = read.squeeze(2).unbind(1)
    (u, v), (cos, sin) = cells.unbind(-1), each.direction.unbind(-1)
    size = torch.exp(-each.log_scale) / decoder.reach  # of a pixel
    slope = (by_u.square() + by_v.square()).sqrt() * size + LEAST_SLOPE
    slopes = (
        -(cos * by_u + sin * by_v) * size,
        (sin * by_u - cos * by_v) * size,
        u * by_v - v * by_u,
        -(u * by_u + v * by_v),
    )
    return field / slope, torch.stack(slopes, -1) / slope.unsqueeze(-1)


def _numbers(pose: Pose) -> Float[Tensor, "b 4"]:
    return torch.cat([pose.centre, pose.angle.unsqueeze(-1), pose.log_scale.unsqueeze(-1)], 1)


def _pose(numbers: Float[Tensor, "b 4"]) -> Pose:
    return Pose.at_angle(numbers[:, :2], numbers[:, 2], numbers[:, 3])
