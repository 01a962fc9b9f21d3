"""A cure for encoders: they are trained to read what the decoder draws of combinations that no example has."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.models.images.image_model import Objects

__all__ = ["recombined", "reencoding_error"]

LEAST_SPREAD = 1.0  # what fillers have when they are learned; with less, untrained encoders may follow themselves away


def recombined(objects: Objects) -> Objects:
    """Objects whose roles come from different examples: role r of example b is that of example b - r.

    Examples are drawn independently, so that no further randomness is needed.

    >>> objects = torch.arange(4.0).reshape(4, 1, 1).expand(4, 3, 1)
    >>> recombined(objects)[:, :, 0]
    tensor([[0., 3., 2.],
            [1., 0., 3.],
            [2., 1., 0.],
            [3., 2., 1.]])
    """
    return torch.stack([fillers.roll(role, 0) for role, fillers in enumerate(objects.unbind(1))], 1)


def reencoding_error(encoder: nn.Module, decoder: nn.Module, objects: Objects) -> Float[Tensor, ""]:
    r"""The squared error of an encoder on images that the decoder draws of recombined objects (Wiedemer et al. 2024).

    error = mean_r  mean_b |E(D(o_b))_r - o_br|^2 / (1 + mean_b |o_br - mean o_r|^2)

    A role that is not read at all costs at most one. Only the encoder has a gradient, by what it reads and not by what
    it should read. Images are rounded: inputs are zeros and ones, and soft edges would be a second code of the object,
    which no input has.
    """
    wanted = recombined(objects.detach())
    with torch.no_grad():
        images = (decoder(wanted) > 0.5).to(wanted.dtype)
    error = (encoder(images) - wanted).square().mean(0).sum(-1)
    spread = wanted.var(0, correction=0).sum(-1)
    normalised: Tensor = error / (LEAST_SPREAD + spread)
    return normalised.mean()
