"""A model that answers with an image: it reads two images, composes their objects, and draws the result."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.images.likelihood import negative_log_likelihood
from tpr_attention.functional.signature import choose, expect_bool
from tpr_attention.models.contract import StartsAtCopy
from tpr_attention.models.images.image_model import ImageModel, Images, Objects
from tpr_attention.models.images.parts import COMPOSITIONS, Substitution
from tpr_attention.models.images.reencoding import reencoding_error

__all__ = ["EAGER", "ImageComposer"]

REDRAWN = 4  # of so many references in training, one is also drawn again
APART = 5e-5  # how much it costs that a role is changed by what another role has
REENCODED = 1e-3  # how much it costs that no role is read of what is drawn of recombined objects
LEAST_SPREAD = 1e-6  # of the fillers of a role
EAGER = 5.0
"""How much faster than the rest an update is learned that can have any size."""


class ImageComposer(ImageModel):
    """Encoder, composition and decoder, trained end to end on target images alone.

    A quarter of the references of a batch is also drawn as it is read: the loss has these images beside the targets.

    Args:
        encoder: How an image becomes an object.
        decoder: How an object becomes an image.
        composition: What is done with two objects and an action.
        filler_dim: Numbers of each filler.
        clean_up: Whether a memory of codes is found after training; for the decoder "template".
        verify: Whether codes that are read are verified by drawing them, and replaced by better ones if there are.
        reencode: Whether the encoder is also trained to read what is drawn of recombined references; see
            `reencoding_error`.
    """

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        side: int,
        channels: int,
        encoder: Literal["unbinding", "convolution", "slots"] = "unbinding",
        decoder: Literal["template", "spectrum", "deconvolution", "broadcast", "pixel"] = "template",
        composition: Literal["tpr", "swap", "linear", "interpolate", "mlp", "attention"] = "tpr",
        filler_dim: int = 8,
        clean_up: bool = False,
        verify: bool = False,
        reencode: bool = False,
    ) -> None:
        expect_bool(reencode=reencode)
        super().__init__(side, channels, num_roles, filler_dim, encoder, decoder, clean_up, verify)
        self.composition = choose("composition", composition, COMPOSITIONS)(num_actions, num_roles, filler_dim)
        self.reencode = reencode

    def forward(self, reference: Images, transform: Images, action: Float[Tensor, "b a"]) -> Images:
        """The answer: how likely each number is one."""
        return self.drawn(self.composed(reference, transform, action)[0])

    def with_penalty(self, reference: Images, transform: Images, action: Float[Tensor, "b a"]) -> tuple[Images, Tensor]:
        """The answers, and the loss of the references that are drawn again, and that of reading them recombined."""
        answers, references = self.composed(reference, transform, action)
        few = max(1, len(reference) // REDRAWN)
        drawn: Tensor = self.decoder(torch.cat([answers, references[:few]]))
        penalty = negative_log_likelihood(drawn[len(reference) :], reference[:few]).mean() * few / len(reference)
        if isinstance(self.composition, Substitution):
            penalty = penalty + APART * self.composition.across_roles()
        if self.reencode:
            penalty = penalty + REENCODED * reencoding_error(self.encoder, self.decoder, references)
        return drawn[: len(reference)], penalty

    def composed(self, reference: Images, transform: Images, action: Float[Tensor, "b a"]) -> tuple[Objects, Objects]:
        """The objects of the answer and of the reference."""
        read = self.read(reference)
        return self.compose(read, self.read(transform), action), read

    def compose(self, reference: Objects, transform: Objects, action: Float[Tensor, "b a"]) -> Objects:
        """The object of the answer; an update that can have any size is learned faster than the rest."""
        answer: Tensor = self.composition(reference, transform, action)
        return reference + EAGER * (answer - reference) if self.output_map() else answer

    def output_map(self) -> tuple[Tensor, ...]:
        """The parameters of the composition that make its update zero when they are zero."""
        return self.composition.output_map() if isinstance(self.composition, StartsAtCopy) else ()

    def composition_parameters(self) -> Sequence[nn.Parameter]:
        """Those of the composition."""
        return [*self.composition.parameters()]

    def composition_error(self, given: Sequence[Tensor]) -> Tensor:
        """The squared error of each role of the answer, as a part of how much its fillers differ; added up."""
        reference, transform, target, action = given
        off = (self.compose(reference, transform, action) - target).square().sum(2)
        spread = (target - target.mean(0)).square().sum(2).mean(0)
        error: Tensor = (off / spread.clamp_min(LEAST_SPREAD)).sum(1)
        return error
