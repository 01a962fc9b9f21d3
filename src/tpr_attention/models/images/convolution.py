"""Encoders and decoders that know nothing of objects: convolutions, and an image drawn pixel by pixel."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = [
    "PATCH",
    "WIDTH",
    "BroadcastDecoder",
    "ConvolutionEncoder",
    "DeconvolutionDecoder",
    "PixelDecoder",
    "coordinates",
]

WIDTH = 64
HIDDEN = 256
PATCH = 4  # pixels: the first two strides of the usual network in one layer, for speed
AT_ONCE = 4  # images whose pixels are drawn together: more of them leave the cache, which takes three times as long


class ConvolutionEncoder(nn.Module):
    """Strided convolutions and two dense layers, about the size of that of Montero et al. (2021)."""

    def __init__(self, side: int, channels: int, num_roles: int, filler_dim: int) -> None:
        super().__init__()
        self.num_roles, self.filler_dim = num_roles, filler_dim
        self.net = nn.Sequential(
            nn.Conv2d(channels, WIDTH // 2, PATCH, PATCH),
            nn.ReLU(),
            nn.Conv2d(WIDTH // 2, WIDTH, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 4, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(WIDTH * (side // (4 * PATCH)) ** 2, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, num_roles * filler_dim),
        )

    def forward(self, images: Float[Tensor, "b channel height width"]) -> Float[Tensor, "b r f"]:
        """An object for each image."""
        objects: Tensor = self.net(images).unflatten(-1, (self.num_roles, self.filler_dim))
        return objects

    @torch.no_grad()
    def start_at(self, obj: Float[Tensor, "r f"]) -> None:
        """Read about this object of every image, before anything is learned."""
        last = self.net[-1]
        assert isinstance(last, nn.Linear)
        last.bias.copy_(obj.flatten())


class DeconvolutionDecoder(nn.Module):
    """Dense layers and transposed convolutions: the mirror image of `ConvolutionEncoder`."""

    def __init__(self, side: int, channels: int, num_roles: int, filler_dim: int) -> None:
        super().__init__()
        small = side // (4 * PATCH)
        self.net = nn.Sequential(
            nn.Linear(num_roles * filler_dim, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, WIDTH * small**2),
            nn.ReLU(),
            nn.Unflatten(-1, (WIDTH, small, small)),
            nn.ConvTranspose2d(WIDTH, WIDTH, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(WIDTH, WIDTH, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, channels * PATCH**2, 1),
            nn.PixelShuffle(PATCH),
        )

    def forward(self, objects: Float[Tensor, "b r f"]) -> Float[Tensor, "b channel height width"]:
        """Images: how likely each number is one."""
        images: Tensor = self.net(objects.flatten(-2)).sigmoid()
        return images


class BroadcastDecoder(nn.Module):
    """A spatial broadcast decoder (Watters et al. 2019): the object at every place, with its coordinates.

    It broadcasts to a quarter of the side, and the last layer draws a patch at each place.
    """

    def __init__(self, side: int, channels: int, num_roles: int, filler_dim: int) -> None:
        super().__init__()
        self.places = side // PATCH
        self.net = nn.Sequential(
            nn.Conv2d(num_roles * filler_dim + 2, WIDTH, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 3, 1, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 3, 1, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, channels * PATCH**2, 1),
            nn.PixelShuffle(PATCH),
        )

    def forward(self, objects: Float[Tensor, "b r f"]) -> Float[Tensor, "b channel height width"]:
        """Images: how likely each number is one."""
        places = coordinates(self.places, objects).permute(2, 0, 1).expand(len(objects), -1, -1, -1)
        everywhere = objects.flatten(-2)[..., None, None].expand(-1, -1, self.places, self.places)
        images: Tensor = self.net(torch.cat([everywhere, places], 1)).sigmoid()
        return images


class PixelDecoder(nn.Module):
    """Every pixel by itself: an MLP of the object and the pixel's coordinates.

    The first layer is a sum of a map of the object and one of the coordinates, so that the object is mapped once.
    """

    def __init__(self, side: int, channels: int, num_roles: int, filler_dim: int) -> None:
        super().__init__()
        self.side = side
        self.of_object = nn.Linear(num_roles * filler_dim, WIDTH)
        self.of_place = nn.Linear(2, WIDTH)
        self.net = nn.Sequential(nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, channels))

    def forward(self, objects: Float[Tensor, "b r f"]) -> Float[Tensor, "b channel height width"]:
        """Images: how likely each number is one."""
        places = self.of_place(coordinates(self.side, objects))
        mapped = self.of_object(objects.flatten(-2))[:, None, None]
        images = torch.cat([self.net(some + places) for some in mapped.split(AT_ONCE)]).sigmoid()
        return images.permute(0, 3, 1, 2)


def coordinates(side: int, like: Tensor) -> Float[Tensor, "height width xy"]:
    """Coordinates from -1 to 1."""
    line = torch.linspace(-1, 1, side, device=like.device, dtype=like.dtype)
    return torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)
