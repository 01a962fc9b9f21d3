"""Decoders that bind: the position moves what the content draws, and the colour paints it."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float
from torch import Tensor, nn

from tpr_attention.functional.images.phases import POSITION_DIM, angles_of, moved, position_filler, waves_to_image
from tpr_attention.functional.signature import expect, expect_number, expect_positive, expect_whole
from tpr_attention.nn.images.poses import Pose, own_frame

__all__ = ["BindingDecoder", "BoundTemplate", "BoundWaves", "SpectrumDecoder", "TemplateDecoder"]

GAIN = 4.0  # of colours and fields: how large their logarithms of odds are for fillers of order one
MOST_LOG = 20.0  # of a scale: beyond, a template is one point or the whole image
BACKGROUND = -3.0  # the logarithm of odds of a pixel that nothing is known of


class BoundWaves(NamedTuple):
    """What a spectrum decoder bound into images.

    Args:
        colour: How likely each channel is one where the object is.
        waves: What the content draws, at the origin.
        angles: The position, as angles of the first waves across and down, by which all waves are moved.
        field: The logarithm of the odds that a pixel is on: the waves that were moved, and the background.
        images: The outer product of the colour and the sigmoid of the field.
    """

    colour: Float[Tensor, "b channel"]
    waves: Complex[Tensor, "b down across"]
    angles: Float[Tensor, "b xy"]
    field: Float[Tensor, "b height width"]
    images: Float[Tensor, "b channel height width"]


class BoundTemplate(NamedTuple):
    """What a template decoder bound into images.

    Args:
        colour: How likely each channel is one where the object is.
        template: What the shape draws, in its own frame.
        pose: Where and how the template is drawn.
        field: The logarithm of the odds that a pixel is on: the template, read in the frame of the pose.
        images: The outer product of the colour and the sigmoid of the field.
    """

    colour: Float[Tensor, "b channel"]
    template: Float[Tensor, "b row column"]
    pose: Pose
    field: Float[Tensor, "b height width"]
    images: Float[Tensor, "b channel height width"]


class BindingDecoder(nn.Module, ABC):
    """What both decoders share: an image is the outer product of a colour and a mask.

    I = sigmoid(W f_colour) (x) sigmoid(field)

    The roles are those of `UnbindingEncoder`: contents, position, colour.
    """

    def __init__(
        self,
        side: int,
        channels: int,
        num_contents: int,
        filler_dim: int,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.side, self.channels, self.num_contents = expect_positive(
            side=side, channels=channels, num_contents=num_contents
        )
        self.filler_dim = expect_whole("filler_dim", filler_dim, POSITION_DIM)
        self.colour = nn.Linear(filler_dim, channels, device=device, dtype=dtype)

    @abstractmethod
    def field(self, objects: Float[Tensor, "b r f"]) -> Float[Tensor, "b height width"]:
        """The logarithm of the odds that a pixel is on."""

    @abstractmethod
    def inspect(self, objects: Float[Tensor, "b r f"]) -> BoundWaves | BoundTemplate:
        """The images, and what was bound on the way."""

    def forward(self, objects: Float[Tensor, "b r f"]) -> Float[Tensor, "b channel height width"]:
        """Images: how likely each number is one."""
        return self.inspect(objects).images

    def middle(self) -> Float[Tensor, "r f"]:
        """An object in the middle of the image; all fillers but its position are zero."""
        weight = self.colour.weight
        obj = weight.new_zeros(self.num_contents + 2, self.filler_dim)
        obj[self.num_contents] = position_filler(weight.new_full((2,), math.pi), self.filler_dim)
        return obj

    def colours(self, objects: Float[Tensor, "b r f"]) -> Float[Tensor, "b channel"]:
        """The colour of each object."""
        found: Tensor = (GAIN * self.colour(objects[..., -1, :])).sigmoid()
        return found

    def _expect(self, objects: Tensor) -> None:
        expect("objects", objects, "b r f", {"r": self.num_contents + 2, "f": self.filler_dim})

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in ("side", "channels", "num_contents", "filler_dim"))


class SpectrumDecoder(BindingDecoder):
    r"""Draws waves that the content decides, with phases that the position turns.

    field = sum_uv MLP(content)_uv exp(i w (u y + v x)) exp(-i (u a_y + v a_x)) + b,    w = 2 pi / side

    What is built in: translation, and one colour an object.

    Args:
        cutoff: The largest wave number.
        hidden_dim: The width of the last hidden layer; the first has half of it.

    >>> decoder = SpectrumDecoder(side=64, channels=3, num_contents=3, filler_dim=8)
    >>> decoder(torch.randn(2, 5, 8)).shape
    torch.Size([2, 3, 64, 64])
    """

    def __init__(
        self,
        side: int,
        channels: int,
        num_contents: int,
        filler_dim: int,
        *,
        cutoff: int = 16,
        hidden_dim: int = 512,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(side, channels, num_contents, filler_dim, device, dtype)
        self.cutoff = expect_whole("cutoff", cutoff, 1, (side - 1) // 2)
        expect_whole("hidden_dim", hidden_dim, 2)
        last = nn.Linear(hidden_dim, 2 * (2 * cutoff + 1) * (cutoff + 1), device=device, dtype=dtype)
        with torch.no_grad():
            last.weight.mul_(0.1)
            last.bias.zero_()
        self.waves = nn.Sequential(
            nn.Linear(num_contents * filler_dim, hidden_dim // 2, device=device, dtype=dtype),
            nn.GELU(),
            nn.Linear(hidden_dim // 2, hidden_dim, device=device, dtype=dtype),
            nn.GELU(),
            last,
        )
        self.background = nn.Parameter(torch.full((), BACKGROUND, device=device, dtype=dtype))

    def field(self, objects: Float[Tensor, "b r f"]) -> Float[Tensor, "b height width"]:
        """The logarithm of the odds that a pixel is on."""
        return self._moved(*self._drawn(objects))

    def inspect(self, objects: Float[Tensor, "b r f"]) -> BoundWaves:
        """The images, and what was bound on the way."""
        self._expect(objects)
        colour, (waves, angles) = self.colours(objects), self._drawn(objects)
        field = self._moved(waves, angles)
        return BoundWaves(colour, waves, angles, field, _painted(colour, field))

    def _drawn(self, objects: Float[Tensor, "b r f"]) -> tuple[Complex[Tensor, "b down across"], Float[Tensor, "b xy"]]:
        """What the content draws, and where it is moved."""
        numbers = self.waves(objects[..., : self.num_contents, :].flatten(-2))
        waves = torch.view_as_complex(numbers.unflatten(-1, (2 * self.cutoff + 1, self.cutoff + 1, 2)).contiguous())
        return waves, angles_of(objects[..., self.num_contents, :])

    def _moved(
        self, waves: Complex[Tensor, "b down across"], angles: Float[Tensor, "b xy"]
    ) -> Float[Tensor, "b height width"]:
        return GAIN * waves_to_image(moved(waves, angles), self.side) + self.background


class TemplateDecoder(BindingDecoder):
    r"""Draws a template that the first content decides, in a frame that scale, orientation and position decide.

    field(x) = template(f_shape)(R(f_orientation) (x - p) / s(f_scale)),    template = t_0 + sum_d f_d t_d

    The contents are shape, scale and orientation. The template is a grid of numbers that is read with bilinear
    interpolation; beyond its border it goes on with what the border has.

    What is built in: translation, rotation, scale, and one colour an object.

    Args:
        resolution: Rows and columns of the template.
        reach: How far the template goes from its centre at scale one, in pixels.

    >>> decoder = TemplateDecoder(side=64, channels=3, filler_dim=8)
    >>> decoder(torch.randn(2, 5, 8)).shape
    torch.Size([2, 3, 64, 64])
    """

    def __init__(
        self,
        side: int,
        channels: int,
        filler_dim: int,
        *,
        resolution: int = 96,
        reach: float = 16.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(side, channels, 3, filler_dim, device, dtype)
        self.resolution, self.reach = expect_whole("resolution", resolution, 2), expect_number("reach", reach)
        line = torch.linspace(-1, 1, resolution, device=device, dtype=dtype)
        distance = reach * (line.square() + line.square().unsqueeze(-1)).sqrt()
        disc = (reach / 2 - distance).clamp(-6, 6)  # half the window, with a soft border
        self.base = nn.Parameter(disc)
        self.templates = nn.Parameter(torch.zeros(filler_dim, resolution, resolution, device=device, dtype=dtype))
        self.orientation = nn.Linear(filler_dim, 2, device=device, dtype=dtype)
        self.scale = nn.Linear(filler_dim, 1, device=device, dtype=dtype)
        self.gain = nn.Parameter(torch.zeros((), device=device, dtype=dtype))
        with torch.no_grad():
            self.orientation.weight.mul_(0.5)
            self.orientation.bias.copy_(torch.tensor([1.0, 0.0], device=device, dtype=dtype))
            self.scale.weight.mul_(0.2)
            self.scale.bias.fill_(math.log(0.75))

    def pose(self, objects: Float[Tensor, "b r f"]) -> Pose:
        """Where and how the template of each object is drawn."""
        angles = angles_of(objects[..., 3, :])
        centre = torch.remainder(angles * self.side / (2 * math.pi), self.side)
        direction = F.normalize(self.orientation(objects[..., 2, :]), dim=-1)
        return Pose(centre, direction, self.scale(objects[..., 1, :])[..., 0])

    def posed(self, objects: Float[Tensor, "b r f"], pose: Pose) -> Float[Tensor, "b r f"]:
        """Objects with this pose: the least change of fillers of scale and orientation, and the position's code.

        >>> decoder = TemplateDecoder(side=64, channels=3, filler_dim=8)
        >>> objects, other = torch.randn(2, 4, 5, 8)
        >>> same = [torch.allclose(*both, atol=1e-3) for both in zip(
        ...     decoder.pose(decoder.posed(objects, decoder.pose(other))), decoder.pose(other), strict=True)]
        >>> same
        [True, True, True]
        """
        scale, orientation = objects[..., 1, :], objects[..., 2, :]
        now = self.orientation(orientation)
        turn = pose.direction * now.norm(dim=-1, keepdim=True) - now
        grow = pose.log_scale.unsqueeze(-1) - self.scale(scale)
        place = position_filler(pose.centre * (2 * math.pi / self.side), self.filler_dim)
        fillers = (
            objects[..., 0, :],
            scale + grow @ torch.linalg.pinv(self.scale.weight).mT,
            orientation + turn @ torch.linalg.pinv(self.orientation.weight).mT,
            place,
            objects[..., 4, :],
        )
        return torch.stack(fillers, -2)

    def template(self, shape: Float[Tensor, "b f"]) -> Float[Tensor, "b row column"]:
        """The template of each filler of shape."""
        return (self.base + torch.einsum("...d,duv->...uv", shape, self.templates)) * self.gain.exp()

    def seen(self, shape: Float[Tensor, "b f"]) -> Float[Tensor, "b entries"]:
        """Where the templates of fillers of shape point: as far apart as these are, whatever their contrast."""
        basis = torch.cat([self.base.unsqueeze(0), self.templates]).flatten(1)
        left, sizes, _ = torch.linalg.svd(basis, full_matrices=False)
        found: Tensor = F.normalize(F.pad(shape, (1, 0), value=1.0) @ (left * sizes), dim=-1)
        return found

    def field(self, objects: Float[Tensor, "b r f"]) -> Float[Tensor, "b height width"]:
        """The logarithm of the odds that a pixel is on."""
        return self._read(self.template(objects[..., 0, :]), self.pose(objects))

    def inspect(self, objects: Float[Tensor, "b r f"]) -> BoundTemplate:
        """The images, and what was bound on the way."""
        self._expect(objects)
        colour, pose, template = self.colours(objects), self.pose(objects), self.template(objects[..., 0, :])
        field = self._read(template, pose)
        return BoundTemplate(colour, template, pose, field, _painted(colour, field))

    def _read(self, template: Float[Tensor, "b row column"], pose: Pose) -> Float[Tensor, "b height width"]:
        """The template, read in the frame of the pose."""
        centre, direction, log_scale = pose
        # What is not finite stays so in the field, but not in coordinates: there it would end the process.
        finite = Pose(centre.nan_to_num(), direction.nan_to_num(), log_scale.nan_to_num().clamp(-MOST_LOG, MOST_LOG))
        doubt = 0 * (centre.sum(-1) + direction.sum(-1) + log_scale)
        cells = own_frame(finite, self.side, self.reach)
        read = F.grid_sample(template.unsqueeze(-3), cells, "bilinear", "border", align_corners=True)
        return read.squeeze(-3) + doubt[..., None, None]


def _painted(
    colour: Float[Tensor, "b channel"], field: Float[Tensor, "b height width"]
) -> Float[Tensor, "b channel height width"]:
    return colour[..., None, None] * field.sigmoid().unsqueeze(-3)
