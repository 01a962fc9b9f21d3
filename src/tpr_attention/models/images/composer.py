"""A model that answers with an image: it reads two images, composes their objects, and draws the result."""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.likelihood import negative_log_likelihood
from tpr_attention.functional.signature import choose
from tpr_attention.models.contract import Examples
from tpr_attention.models.images.parts import (
    COMPOSITIONS,
    DECODERS,
    ENCODERS,
    CompositionName,
    DecoderName,
    EncoderName,
)

__all__ = ["ImageComposer"]

Images = Float[Tensor, "b c h w"]

REDRAWN = 4  # of so many references in training, one is also drawn again


class ImageComposer(nn.Module):
    """Encoder, composition and decoder, trained end to end on target images alone.

    A quarter of the references of a batch is also drawn as it is read: the loss has these images beside the targets.

    Args:
        encoder: How an image becomes an object.
        decoder: How an object becomes an image.
        composition: What is done with two objects and an action.
        filler_dim: Numbers of each filler.
        clean_up: Whether a memory of clean codes is found after training; for the decoder "template".
    """

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        side: int,
        channels: int,
        encoder: EncoderName = "unbinding",
        decoder: DecoderName = "template",
        composition: CompositionName = "tpr",
        filler_dim: int = 8,
        clean_up: bool = False,
    ) -> None:
        super().__init__()
        sizes = side, channels, num_roles, filler_dim
        self.encoder = choose("encoder", encoder, ENCODERS)(*sizes)
        self.composition = choose("composition", composition, COMPOSITIONS)(num_actions, num_roles, filler_dim)
        self.decoder = choose("decoder", decoder, DECODERS)(*sizes)

    def forward(self, reference: Images, transform: Images, action: Float[Tensor, "b a"]) -> Images:
        """The answer: how likely each number is one."""
        answer: Tensor = self.decoder(self.composed(reference, transform, action)[0])
        return answer

    def with_penalty(self, reference: Images, transform: Images, action: Float[Tensor, "b a"]) -> tuple[Images, Tensor]:
        """The answers, and the loss of the references that are drawn again."""
        answers, references = self.composed(reference, transform, action)
        few = len(reference) // REDRAWN
        drawn: Tensor = self.decoder(torch.cat([answers, references[:few]]))
        again = negative_log_likelihood(drawn[len(reference) :], reference[:few]).mean() * few / len(reference)
        return drawn[: len(reference)], again

    def composed(
        self, reference: Images, transform: Images, action: Float[Tensor, "b a"]
    ) -> tuple[Float[Tensor, "b r f"], Float[Tensor, "b r f"]]:
        """The objects of the answer and of the reference."""
        read, other = self.encoder(reference), self.encoder(transform)
        return self.composition(read, other, action), read
