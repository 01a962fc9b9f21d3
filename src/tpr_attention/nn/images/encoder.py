"""An encoder that takes an image of one object apart: colour, position, and what is left."""

from typing import NamedTuple

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from tpr_attention.functional.images.phases import POSITION_DIM, moved, position_filler, spectrum
from tpr_attention.functional.signature import expect, expect_positive, expect_whole

__all__ = ["UnbindingEncoder", "Unbound"]

LEAST_MASS = 1.0  # pixels: the colour and the position of an empty image are those of nothing
LARGE = 30.0  # what waves are divided by, to be of order one
OFFSET = 0.1  # how fast offsets are learned, compared with the rest


class Unbound(NamedTuple):
    """What an encoder took out of images.

    Args:
        mask: Where the object is: the sum of all channels.
        colour: The mean of each channel over the mask.
        angles: The position, as angles of the first waves across and down, without the learned offset.
        offset: What is learned to be added to them.
        content: The waves of the mask, moved back to the origin.
    """

    mask: Float[Tensor, "*batch height width"]
    colour: Float[Tensor, "*batch channel"]
    angles: Float[Tensor, "*batch xy"]
    offset: Float[Tensor, "*batch xy"]
    content: Complex[Tensor, "*batch down across"]
    objects: Float[Tensor, "*batch r f"]


class UnbindingEncoder(nn.Module):
    r"""Reads an object from an image of it on black, by undoing what a decoder binds.

    m = sum_c I_c,    colour = W (sum I / sum m),    S = waves of m,    a = -arg (S_01, S_10),
    content = MLP(S_uv exp(i (u a_y + v a_x))),    position = code(a + offset(content))

    An image that moves changes a and nothing else, and one that is painted changes the colour and nothing else,
    whatever the parameters are. Nothing is learned before the MLP, so that no gradient passes through the image. The
    roles are those of the content, the position, and the colour, in this order.

    What is built in: one object, a black background, one colour an object, and translation.

    Args:
        num_contents: How many roles the content has.
        cutoff: The largest wave number that is read.
        hidden_dim: The width of both hidden layers.

    >>> encoder = UnbindingEncoder(side=64, channels=3, num_contents=3, filler_dim=8)
    >>> encoder(torch.rand(2, 3, 64, 64)).shape
    torch.Size([2, 5, 8])
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
        super().__init__()
        self.side, self.channels, self.num_contents, _ = expect_positive(
            side=side, channels=channels, num_contents=num_contents, hidden_dim=hidden_dim
        )
        self.filler_dim = expect_whole("filler_dim", filler_dim, POSITION_DIM)
        self.cutoff = expect_whole("cutoff", cutoff, 1, (side - 1) // 2)
        self.colour = nn.Linear(channels, filler_dim, device=device, dtype=dtype)
        waves = (2 * cutoff + 1) * (cutoff + 1)
        self.content = nn.Sequential(
            nn.Linear(2 * waves, hidden_dim, device=device, dtype=dtype),
            nn.GELU(),
            nn.Linear(hidden_dim, hidden_dim, device=device, dtype=dtype),
            nn.GELU(),
        )
        self.fillers = nn.Linear(hidden_dim, num_contents * filler_dim, device=device, dtype=dtype)
        self.offset = nn.Linear(hidden_dim, 2, device=device, dtype=dtype)
        nn.init.zeros_(self.offset.weight)
        nn.init.zeros_(self.offset.bias)

    @property
    def num_roles(self) -> int:
        """Contents, position and colour."""
        return self.num_contents + 2

    def forward(self, images: Float[Tensor, "*batch channel height width"]) -> Float[Tensor, "*batch r f"]:
        """An object for each image."""
        return self.inspect(images).objects

    def inspect(self, images: Float[Tensor, "*batch channel height width"]) -> Unbound:
        """The objects, and what was taken out of the images on the way."""
        expect(
            "images",
            images,
            "*batch channel height width",
            {"channel": self.channels, "height": self.side, "width": self.side},
        )
        mask = images.sum(-3)
        mass = mask.sum((-2, -1)).clamp_min(LEAST_MASS)
        colour = images.sum((-2, -1)) / mass.unsqueeze(-1)
        waves = spectrum(mask, self.cutoff)
        first = torch.stack([waves[..., self.cutoff, 1], waves[..., self.cutoff + 1, 0]], -1)
        angles = torch.atan2(-first.imag, first.real)
        content = moved(waves, -angles)
        hidden = self.content((torch.view_as_real(content) * self._evened(content).unsqueeze(-1)).flatten(-3))
        fillers = self.fillers(hidden).unflatten(-1, (self.num_contents, self.filler_dim))
        offset = OFFSET * self.offset(hidden)
        position = position_filler(angles + offset, self.filler_dim)
        objects = torch.cat([fillers, position.unsqueeze(-2), self.colour(colour).unsqueeze(-2)], -2)
        return Unbound(mask, colour, angles, offset, content, objects)

    def _evened(self, waves: Tensor) -> Float[Tensor, "down across"]:
        """What makes waves of all lengths about as large: those of an outline fall with their number."""
        numbers = torch.arange(-self.cutoff, self.cutoff + 1, device=waves.device, dtype=waves.real.dtype)
        length = (numbers.unsqueeze(-1).square() + numbers[self.cutoff :].square()).sqrt()
        return (1 + length) / LARGE

    def extra_repr(self) -> str:
        sizes = "side", "channels", "num_contents", "filler_dim", "cutoff"
        return ", ".join(f"{name}={getattr(self, name)}" for name in sizes)
