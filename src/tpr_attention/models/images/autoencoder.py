"""Models that draw what they are given: an image through its object, or the object itself."""

from typing import Literal

from torch import nn

from tpr_attention.functional.signature import choose
from tpr_attention.models.images.image_model import ImageModel, Images, Objects
from tpr_attention.models.images.parts import DECODERS

__all__ = ["ImageAutoencoder", "ImageDecoder"]


class ImageAutoencoder(ImageModel):
    """Reads an image and draws it again.

    Args:
        encoder: How an image becomes an object.
        decoder: How an object becomes an image.
        filler_dim: Numbers of each filler.
        clean_up: Whether a memory of codes is found after training; for the decoder "template".
        verify: Whether codes that are read are verified by drawing them, and replaced by better ones if there are.
    """

    def __init__(
        self,
        num_roles: int,
        side: int,
        channels: int,
        encoder: Literal["unbinding", "convolution", "slots"] = "unbinding",
        decoder: Literal["template", "spectrum", "deconvolution", "broadcast", "pixel"] = "template",
        filler_dim: int = 8,
        clean_up: bool = False,
        verify: bool = False,
    ) -> None:
        super().__init__(side, channels, num_roles, filler_dim, encoder, decoder, clean_up, verify)

    def forward(self, images: Images) -> Images:
        """The same images: how likely each number is one."""
        return self.drawn(self.read(images))


class ImageDecoder(nn.Module):
    """Draws true fillers: what a decoder can do alone.

    Args:
        decoder: How an object becomes an image.
    """

    def __init__(
        self,
        num_roles: int,
        side: int,
        channels: int,
        filler_dim: int,
        decoder: Literal["template", "spectrum", "deconvolution", "broadcast", "pixel"] = "template",
    ) -> None:
        super().__init__()
        self.decoder = choose("decoder", decoder, DECODERS)(side, channels, num_roles, filler_dim)

    def forward(self, objects: Objects) -> Images:
        """Images: how likely each number is one."""
        images: Images = self.decoder(objects)
        return images
