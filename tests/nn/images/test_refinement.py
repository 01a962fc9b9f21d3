"""Outlines that are refined have fewer wrong pixels."""

import itertools
from math import cos, log, pi, sin

import pytest
import torch

from tpr_attention.nn.images import pose_memory
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.pose_memory import FAR, PoseMemory
from tpr_attention.tasks.composition.factors import dsprites
from tpr_attention.tasks.composition.sprites import render

SIDE = 64


def sprites(generator):
    """Squares and ellipses: their masks, and their codes, which are classes."""
    grid = dsprites()
    count = 120
    limits = {"shape": 2, "scale": 2, "orientation": 3, "position_x": 4, "position_y": 4, "colour": 1}
    classes = torch.stack([torch.randint(limit, (count,), generator=generator) for limit in limits.values()], 1)
    factors = grid.table(classes)
    return render(factors).float(), classes


def nearly_right_memory():
    """True poses with errors of a few hundredths, and outlines that are half a pixel too far out."""
    decoder = TemplateDecoder(SIDE, 1, 4)
    memory = PoseMemory(decoder, resolution=65)
    memory.reach.fill_(16.0)
    line = 16 * torch.linspace(-1, 1, 65)
    u, v = line, line.unsqueeze(-1)
    square = 9.598 - torch.maximum(u.abs(), v.abs())
    ellipse = 7.214 * (1 - ((u / 12.766).square() + (v / 7.214).square()).sqrt())
    memory.templates[:2] = 2 * (torch.stack([square, ellipse]) + 0.5).clamp(-4, 4)
    memory.log_scales[:2, :2] = torch.tensor([0.5, 0.6]).log() + 0.02
    memory.angles[:3] = 2 * pi / 39 * torch.arange(3) + 0.02
    memory.places[:, :4] = 16 + 32 / 31 * torch.arange(4) - 0.05
    memory.colours[0] = 1.0
    memory.shapes[:2] = torch.eye(2, 4)
    return memory


def wrong_pixels(memory, masks, codes):
    with torch.no_grad():
        return int(((memory.draw(codes)[:, 0] > 0.5) != (masks > 0.5)).sum())


def refined(memory, masks, codes, steps, seed=0):
    batches = itertools.cycle(zip(masks.split(40), codes.split(40), strict=True))
    return sum(1 for _ in memory.refine(batches, steps, torch.Generator().manual_seed(seed)))


@pytest.fixture
def quick(monkeypatch):
    """Fewer pixels in a step, and fewer steps until it is as large as it becomes."""
    monkeypatch.setattr(pose_memory, "AT_ONCE", 2**11)
    monkeypatch.setattr(pose_memory, "WARM_UP", 10)


def test_refined_outlines_have_fewer_wrong_pixels(quick, generator):
    masks, codes = sprites(generator)
    memory = nearly_right_memory()
    before = {name: tensor.clone() for name, tensor in memory.named_buffers()}
    wrong = wrong_pixels(memory, masks, codes)
    assert wrong > 5 * len(masks)
    assert refined(memory, masks, codes, (60, 10, 60)) == 130
    assert wrong_pixels(memory, masks, codes) < wrong / 5
    for name in ("shapes", "colours", "reach"):
        assert torch.equal(getattr(memory, name), before[name])
    for name in ("log_scales", "angles", "places"):
        tensor, unused = getattr(memory, name), before[name] == FAR
        assert unused.any()
        assert torch.equal(tensor[unused], before[name][unused])
        assert (tensor[~unused] != before[name][~unused]).all()
    assert not memory.templates[2:].any()
    assert memory.counts == {"shapes": 2, "scales": 2, "angles": 3, "places": 4, "colours": 1}


def test_what_is_fitted_last_are_pixels_that_are_hard_to_tell(quick, generator, monkeypatch):
    """A twenty-fifth of all, those whose odds are nearest to even."""
    masks, codes = sprites(generator)
    given = []
    step = pose_memory._Fit.step
    monkeypatch.setattr(
        pose_memory._Fit, "step", lambda self, *points: given.append((self, points)) or step(self, *points)
    )
    memory = nearly_right_memory()
    refined(memory, masks, codes, (2, 3, 2))
    assert len(given) == 4
    assert given[0][0] is given[1][0] is not given[2][0] is given[3][0]
    outline = len(given[0][1][2])
    fit = given[3][0]
    seen = torch.cat([torch.cat([codes, pixels], 1) for _, (codes, pixels, _) in given[2:]]).unique(dim=0)
    assert len(seen) <= 3 * int(pose_memory.HARD * 1.1 * outline)
    hard, usual = (fit.logits(*points[:2]).abs().mean() for points in (given[3][1], given[0][1]))
    assert hard < usual / 2


def test_the_same_seed_refines_to_the_same_bits(quick, generator):
    masks, codes = sprites(generator)
    memories = [nearly_right_memory() for _ in range(3)]
    for memory, seed in zip(memories, (0, 0, 1), strict=True):
        refined(memory, masks, codes, (5, 2, 5), seed)
    for name in ("templates", "log_scales", "angles", "places"):
        first, again, other = (getattr(memory, name) for memory in memories)
        assert torch.equal(first, again)
        assert not torch.equal(first, other)


def test_a_bar_is_drawn_where_its_codes_say():
    """A constructed solution, with the direction of a turn as in dSprites."""
    memory = nearly_right_memory()
    memory.templates[0] = 10 * (8 - 16 * torch.linspace(-1, 1, 65).abs().expand(65, 65))  # |u| < 8
    memory.angles[0] = 0.3
    memory.log_scales[0, 0] = log(0.5)
    memory.places[:, 0] = torch.tensor([30.0, 20.0])
    drawn = memory.draw(torch.zeros(1, 6, dtype=torch.long))[0, 0]
    x, y = torch.arange(SIDE) + 0.5 - 30, (torch.arange(SIDE) + 0.5 - 20).unsqueeze(-1)
    depth = 4 - (cos(0.3) * x - sin(0.3) * y).abs()
    sure = depth.abs() > 0.25
    assert torch.equal((drawn > 0.5)[sure], (depth > 0)[sure])
