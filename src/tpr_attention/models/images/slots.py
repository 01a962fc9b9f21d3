"""An encoder by slot attention, with one slot for each role."""

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.models.images.convolution import PATCH, WIDTH, coordinates

__all__ = ["SlotEncoder"]

ROUNDS = 3
LEAST = 1e-8  # what a slot has of a place, at least: a mean needs some weight


class SlotEncoder(nn.Module):
    r"""Slots that share an image out among themselves (Locatello et al. 2020), reduced to one object.

    w = softmax_slots(K x (Q s)^T / sqrt(d)),    s <- GRU(sum_p w_p V x_p / sum_p w_p, s),    s <- s + MLP(s)

    The slots of the original are drawn at random, and any of them may take any object. Here a slot is a role of one
    object, and each starts from numbers of its own that are learned. Each is mapped to a filler after three rounds. An
    image has as many places as an eighth of its side has in each direction, for speed.

    >>> SlotEncoder(side=64, channels=3, num_roles=5, filler_dim=8)(torch.rand(2, 3, 64, 64)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, side: int, channels: int, num_roles: int, filler_dim: int) -> None:
        super().__init__()
        self.side = side
        self.features = nn.Sequential(
            nn.Conv2d(channels, WIDTH, PATCH, PATCH), nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 4, 2, 1), nn.ReLU()
        )
        self.places = nn.Linear(2, WIDTH)
        self.given = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        )
        self.keys_and_values = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.queries = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH, bias=False))
        self.update = nn.GRUCell(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.slots = nn.Parameter(torch.randn(num_roles, WIDTH))
        self.filler_map = nn.Parameter(torch.randn(num_roles, WIDTH, filler_dim) / WIDTH)
        self.fillers = nn.Parameter(torch.zeros(num_roles, filler_dim))

    def forward(self, images: Float[Tensor, "b channel height width"]) -> Float[Tensor, "b r f"]:
        """An object for each image."""
        features = rearrange(self.features(images), "b f y x -> b y x f")
        places = self.places(coordinates(features.shape[1], images))
        given = rearrange(self.given(features + places), "b y x f -> b (y x) f")
        keys, values = self.keys_and_values(given).chunk(2, -1)
        slots = self.slots.expand(len(images), -1, -1)
        for _ in range(ROUNDS):
            scores = einsum(keys, self.queries(slots), "b p f, b r f -> b p r") / WIDTH**0.5
            shares = scores.softmax(-1) + LEAST
            read = einsum(shares / shares.sum(1, keepdim=True), values, "b p r, b p f -> b r f")
            slots = self.update(read.flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
            slots = slots + self.feed_forward(slots)
        return einsum(slots, self.filler_map, "b r f, r f f_2 -> b r f_2") + self.fillers

    @torch.no_grad()
    def start_at(self, obj: Float[Tensor, "r f"]) -> None:
        """Read about this object of every image, before anything is learned."""
        self.fillers.copy_(obj)
