"""The parts of image models by name: encoders, decoders, and what is done with two objects and an action."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.action import read_map, update_map, write_map
from tpr_attention.models.composition.classical_roles import ClassicalRoles
from tpr_attention.models.composition.montero import Interpolate, Linear
from tpr_attention.models.composition.resnet import ResNet
from tpr_attention.models.images.convolution import (
    BroadcastDecoder,
    ConvolutionEncoder,
    DeconvolutionDecoder,
    PixelDecoder,
)
from tpr_attention.models.images.slots import SlotEncoder
from tpr_attention.nn.action_attention import ActionTPRAttention
from tpr_attention.nn.images.decoders import SpectrumDecoder, TemplateDecoder
from tpr_attention.nn.images.encoder import UnbindingEncoder

__all__ = ["COMPOSITIONS", "CONTENTS", "DECODERS", "ENCODERS"]

CONTENTS = 3
"""Roles besides position and colour: shape, scale and orientation."""

TINY = 1e-12  # keeps the gradient of a length of zero finite

Make = Callable[[int, int, int, int], nn.Module]
"""From side, channels, number of roles and filler size."""

ENCODERS: dict[str, Make] = {
    "unbinding": lambda side, channels, roles, filler: UnbindingEncoder(side, channels, roles - 2, filler),
    "convolution": ConvolutionEncoder,
    "slots": SlotEncoder,
}

DECODERS: dict[str, Make] = {
    "template": lambda side, channels, roles, filler: TemplateDecoder(side, channels, filler),
    "spectrum": lambda side, channels, roles, filler: SpectrumDecoder(side, channels, roles - 2, filler),
    "deconvolution": DeconvolutionDecoder,
    "broadcast": BroadcastDecoder,
    "pixel": PixelDecoder,
}


class Substitution(nn.Module):
    """Heads of appendix D, with filler maps that start at the identity, added to the reference."""

    def __init__(self, num_actions: int, num_roles: int, filler_dim: int) -> None:
        super().__init__()
        self.attention = ActionTPRAttention(num_actions, num_roles, filler_dim, num_heads=4)

    def forward(
        self, reference: Float[Tensor, "b r f"], transform: Float[Tensor, "b r f"], action: Float[Tensor, "b a"]
    ) -> Float[Tensor, "b r f"]:
        """The reference, changed as the action asks."""
        update: Tensor = self.attention(torch.stack([reference, transform], -3), action)
        return reference + update

    def output_map(self) -> tuple[Tensor, ...]:
        """What makes the update zero when it is zero."""
        return (self.attention.role_map,)

    def across_roles(self) -> Float[Tensor, ""]:
        """How much roles are changed by what other roles have: the lengths of these blocks of the update, added up.

        Without it a unit of scale may be that of a shape, and a third role makes up for it.
        """
        layer = self.attention
        reads, writes = read_map(layer.id_query, layer.query_map), write_map(layer.filler_map, layer.role_map)
        lengths = (update_map(reads, writes).square().sum((-3, -1)) + TINY).sqrt()
        other = 1 - torch.eye(layer.num_roles, device=lengths.device, dtype=lengths.dtype)
        total: Tensor = (lengths * other).sum()
        return total


class Swap(nn.Module):
    """The oracle: the role that the action names comes from the transform ("fixint" of Montero et al. 2022)."""

    def __init__(self, num_actions: int, num_roles: int, filler_dim: int) -> None:
        super().__init__()

    def forward(
        self, reference: Float[Tensor, "b r f"], transform: Float[Tensor, "b r f"], action: Float[Tensor, "b a"]
    ) -> Float[Tensor, "b r f"]:
        """The reference with one role of the transform."""
        return reference + action.unsqueeze(-1) * (transform - reference)


COMPOSITIONS: dict[str, Callable[[int, int, int], nn.Module]] = {
    "tpr": Substitution,
    "swap": Swap,
    "linear": Linear,
    "interpolate": Interpolate,
    "mlp": ResNet,
    "attention": ClassicalRoles,
}
"""From numbers of actions and roles and the filler size: to be called as `model(reference, transform, action)`."""
