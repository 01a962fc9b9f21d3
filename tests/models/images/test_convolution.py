"""Encoders and decoders that know nothing of objects."""

import pytest
import torch

from tpr_attention.models.images.convolution import AT_ONCE, PixelDecoder

from .cases import seeded


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE - 1])
def test_images_that_are_drawn_a_few_at_a_time_are_those_that_are_drawn_at_once(count, normal):
    """Values and gradients, against the definition: an MLP of the object and the coordinates of each pixel."""
    decoder, objects = seeded(PixelDecoder, 6, 2, 3, 4).double(), normal(count, 3, 4).requires_grad_()
    line = torch.linspace(-1, 1, 6, dtype=torch.float64)
    down, across = torch.meshgrid(line, line, indexing="ij")
    places = decoder.of_place(torch.stack([across, down], -1))
    expected = decoder.net(decoder.of_object(objects.flatten(1))[:, None, None] + places).sigmoid().permute(0, 3, 1, 2)
    found = decoder(objects)
    torch.testing.assert_close(found, expected)
    given = [objects, *decoder.parameters()]
    gradients = (torch.autograd.grad(images.square().sum(), given) for images in (found, expected))
    torch.testing.assert_close(*map(list, gradients))
