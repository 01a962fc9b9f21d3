"""Images of recombined codes are what the memory draws."""

import torch

from tpr_attention.nn.images.codes import recombination
from tpr_attention.nn.images.codes.pose_memory import FAR
from tpr_attention.nn.images.codes.recombination import Recombination


def test_images_are_those_of_the_memory_with_hard_outlines(found):
    memory = found[0]
    made = Recombination(memory)
    codes = made.codes(200, torch.Generator().manual_seed(0))
    images = made.images(codes)
    masks = (memory.field(codes) > 0).float()
    assert torch.equal(images, memory.colours[codes[:, 5]][..., None, None] * masks.unsqueeze(1))
    assert masks.any((1, 2)).all()


def test_all_codes_are_drawn_and_no_others(found):
    memory = found[0]
    codes = Recombination(memory).codes(2_000, torch.Generator().manual_seed(0))
    used = {tuple(pair) for pair in (memory.log_scales < FAR).nonzero().tolist()}
    assert {tuple(pair) for pair in codes[:, :2].tolist()} == used
    assert codes[:, 2:].unique(dim=0).shape == (5 * 4 * 2 * 3, 4)


def test_signs_are_known_where_all_coefficients_agree():
    """A ramp; what is zero is off."""
    ramp = torch.linspace(-4, 3, 8).expand(1, 8, 8)
    signs = recombination._signs(ramp)
    assert signs.shape == (1, 5, 5)
    assert signs[0, 0].tolist() == [-1, -1, 0, 0, 0]
    assert recombination._signs(-ramp)[0, 0].tolist() == [1, 0, 0, 0, -1]
    assert recombination._signs(ramp + 5)[0, 0].tolist() == [1] * 5
