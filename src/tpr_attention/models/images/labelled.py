"""A model that is told the factors of its inputs in training: what encoders and decoders can do with labels."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.models.images.image_model import ImageModel, Images, Objects
from tpr_attention.models.images.parts import Swap

__all__ = ["ImageLabelled"]


class ImageLabelled(ImageModel):
    """Encoder and decoder, each trained on true fillers by itself.

    In training the encoder is asked for the true fillers of both inputs, and the decoder draws those of the target:
    labels say which role is which, so that these are a substitution. An answer is made without labels: both images are
    read, the role that the action names is exchanged, and the result is drawn.

    Args:
        encoder: How an image becomes an object.
        decoder: How an object becomes an image.
    """

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        side: int,
        channels: int,
        filler_dim: int,
        encoder: Literal["unbinding", "convolution", "slots"] = "unbinding",
        decoder: Literal["template", "spectrum", "deconvolution", "broadcast", "pixel"] = "template",
    ) -> None:
        super().__init__(side, channels, num_roles, filler_dim, encoder, decoder, clean_up=False, verify=False)
        self.composition = Swap(num_actions, num_roles, filler_dim)

    def forward(self, reference: Images, transform: Images, action: Float[Tensor, "b a"], *labels: Objects) -> Images:
        """The answer to images and an action, whatever the labels are: how likely each number is one."""
        return self.drawn(self.composition(self.encoder(reference), self.encoder(transform), action))

    def with_penalty(
        self,
        reference: Images,
        transform: Images,
        action: Float[Tensor, "b a"],
        reference_fillers: Objects,
        transform_fillers: Objects,
    ) -> tuple[Images, Tensor]:
        """What is drawn of the target's true fillers, and the squared error of the fillers that are read.

        Encoder and decoder share no parameter, so that the error needs no weight.
        """
        read = self.encoder(torch.cat([reference, transform]))
        error = (read - torch.cat([reference_fillers, transform_fillers])).square().mean()
        return self.drawn(self.composition(reference_fillers, transform_fillers, action)), error
