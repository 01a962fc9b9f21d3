"""Objects that are made of known codes, and a decoder that their fillers are simple for."""

from math import log, pi

import torch

from tpr_attention.functional.images.phases import position_filler
from tpr_attention.nn.images.decoders import TemplateDecoder

SIDE, FILLER = 64, 6
LOG_SCALES = torch.tensor([[-0.7, -0.4, -0.1, 0.0], [-0.5, -0.3, 0.0, 0.0]])  # of the second shape only three count
SCALES = torch.tensor([4, 3])
ANGLES = torch.tensor([-0.9, -0.5, 0.1, 0.6, 1.3])
ACROSS, DOWN = torch.tensor([20.0, 26.5, 31.0, 38.0]), torch.tensor([24.0, 33.0])
COLOURS = torch.eye(3)
COUNTS = {"shapes": 2, "scales": 4, "angles": 5, "places": 4, "colours": 3}


def readable_decoder(**options):
    """Fillers say what a pose is: entry 0 of a scale its logarithm, entries 0 and 1 of an orientation its direction.

    Outlines are steep, and the second shape is smaller.
    """
    decoder = TemplateDecoder(SIDE, 3, FILLER, **{"resolution": 33, **options})
    with torch.no_grad():
        for layer in (decoder.orientation, decoder.scale, decoder.colour):
            layer.weight.zero_()
            layer.bias.zero_()
        decoder.orientation.weight[:, :2] = torch.eye(2)
        decoder.scale.weight[0, 0] = 1
        decoder.colour.weight[:, :3] = torch.eye(3)
        decoder.templates[1] = -3
        decoder.gain.fill_(log(8))
    return decoder


def made_of(codes, noise, generator):
    """Objects whose fillers decode to these codes, but for some noise."""
    shape, scale, angle, across, down, colour = codes.unbind(1)
    objects = torch.zeros(len(codes), 5, FILLER)
    objects[:, 0] = torch.eye(FILLER)[shape]
    objects[:, 1, 0] = LOG_SCALES[shape, scale]
    objects[:, 2, 0], objects[:, 2, 1] = ANGLES[angle].cos(), ANGLES[angle].sin()
    objects[:, 3] = position_filler(2 * pi / SIDE * torch.stack([ACROSS[across], DOWN[down]], 1), FILLER)
    objects[:, 4, :3] = 2 * COLOURS[colour] - 1
    return objects + noise * torch.randn(objects.shape, generator=generator)


def drawn_codes(count, generator):
    limits = [2, 1, len(ANGLES), len(ACROSS), len(DOWN), len(COLOURS)]
    codes = torch.stack([torch.randint(limit, (count,), generator=generator) for limit in limits], 1)
    codes[:, 1] = (torch.rand(count, generator=generator) * SCALES[codes[:, 0]]).long()
    return codes
