"""Outlines that are refined have fewer wrong pixels."""

import itertools
from math import pi

import pytest
import torch

from tpr_attention.functional.images.splines import knots
from tpr_attention.nn.images.codes import outlines, refinement, separation
from tpr_attention.nn.images.codes.levels import Levels
from tpr_attention.nn.images.codes.pose_memory import FAR, PoseMemory
from tpr_attention.nn.images.codes.refinement import fit, refine
from tpr_attention.nn.images.codes.regularity import even_out, units_of
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.poses import Pose, own_frame
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
    line = 16 * knots(65, memory.reach)
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


def refined(memory, masks, codes, steps, seed=0, at_once=40):
    """Fit and refine; how often it paused."""
    examples = itertools.cycle(zip(masks.split(at_once), codes.split(at_once), strict=True))
    generator = torch.Generator().manual_seed(seed)
    both = fit(memory, examples, steps[0], generator), refine(memory, examples, *steps[1:], generator)
    return sum(1 for _ in itertools.chain(*both))


def test_refined_outlines_have_hardly_a_wrong_pixel(generator):
    masks, codes = sprites(generator)
    memory = nearly_right_memory()
    before = {name: tensor.clone() for name, tensor in memory.named_buffers()}
    wrong = wrong_pixels(memory, masks, codes)
    assert wrong > 5 * len(masks)
    rounds = 1 + 2 * refinement.ROUNDS  # two levels
    assert refined(memory, masks, codes, (60, 24, 150)) == 60 + 24 + rounds * (150 // rounds // separation.PART)
    assert wrong_pixels(memory, masks, codes) < wrong / 20
    for name in ("shapes", "colours", "reach"):
        assert torch.equal(getattr(memory, name), before[name])
    for name in ("log_scales", "angles", "places"):
        tensor, unused = getattr(memory, name), before[name] == FAR
        assert unused.any()
        assert torch.equal(tensor[unused], before[name][unused])
        assert (tensor[~unused] != before[name][~unused]).all()
    assert not memory.templates[2:].any()
    assert memory.counts == {"shapes": 2, "scales": 2, "angles": 3, "places": 4, "colours": 1}


def test_outlines_hold_where_nothing_was_fitted(generator):
    """What images of three places tell of an outline holds at the fourth, as places are evenly spaced."""
    masks, codes = sprites(generator)
    new = (codes[:, 3] == 3) & (codes[:, 0] == 0)
    memory = nearly_right_memory()
    wrong = wrong_pixels(memory, masks[new], codes[new])
    refined(memory, masks[~new], codes[~new], (60, 8, 150), at_once=len(masks))
    assert wrong_pixels(memory, masks[new], codes[new]) < wrong / 4


def test_moves_bring_codes_back(generator):
    """Places that are all too far right, and angles that are too far apart, with templates that are right."""
    masks, codes = sprites(generator)
    memory = nearly_right_memory()
    refined(memory, masks, codes, (60, 3, 150))
    places, angles = memory.places.clone(), memory.angles.clone()
    memory.places[0, :4] += 0.03
    memory.angles[:3] += torch.tensor([0.0, 0.01, 0.02])
    image, points = outlines.points_of(masks, codes, outlines.border(masks))
    gathered = outlines.Points(points.codes, points.pixels - 0.5, points.labels)
    levels = Levels(memory.templates)
    levels.parts[-1] += memory.templates - levels.templates()  # what a sample of coefficients leaves out
    assert torch.allclose(levels.templates(), memory.templates, atol=1e-5)
    for _ in separation.separate(memory, levels, gathered, 60, with_moves=True):
        pass
    assert (memory.places - places)[0, :4].abs().max() < 0.01
    assert (memory.angles - angles)[:3].diff().abs().max() < 0.005
    assert image.max() == len(masks) - 1


def small_problem(generator):
    """A memory, the outlines of six images, and what is to be solved for them."""
    masks, codes = (tensor[:6] for tensor in sprites(generator))
    memory = nearly_right_memory().double()
    points = outlines.points_of(masks.double(), codes, outlines.border(masks))[1]
    gathered = outlines.Points(points.codes, points.pixels - 0.5, points.labels)
    levels = Levels(memory.templates)
    levels.open(1, 4 * (torch.rand(memory.templates.shape, generator=generator, dtype=torch.float64) > 0.95).double())
    memory.templates.copy_(levels.templates())
    problem = separation._Problem(memory, levels, gathered, separation._moves(memory))
    return memory, points, problem


def test_the_objective_is_the_literal_sum_and_its_gradient(generator):
    memory, points, problem = small_problem(generator)
    with torch.no_grad():
        problem.solution += 0.1 * torch.randn(len(problem.solution), generator=generator, dtype=torch.float64)
    found = problem._objective()
    levels, solution = problem.levels, problem.solution.detach().clone().requires_grad_()
    coarse, fine = (torch.zeros_like(part) for part in levels.parts)
    free = [mask.flatten().nonzero().flatten() for mask in levels.free]
    assert 0 < len(free[1]) < fine.numel()
    coarse = coarse.flatten().index_add(0, free[0], solution[: len(free[0])]).view_as(coarse)
    fine = fine.flatten().index_add(0, free[1], solution[len(free[0]) : problem.count]).view_as(fine)
    templates = levels._evened(levels.halvings[0] @ coarse @ levels.halvings[0].mT + fine)
    logits = outlines.logits_of(memory, points, **outlines.tables_of(memory) | {"templates": templates})
    moved = problem.moves @ solution[problem.count :]
    expected = torch.log1p(torch.exp(-((2 * points.labels - 1) * logits + moved))).sum()
    assert found == pytest.approx(expected.item())
    torch.testing.assert_close(problem.solution.grad, torch.autograd.grad(expected, solution)[0])


def test_a_column_says_what_a_move_changes(generator):
    """Against the derivative by the codes themselves."""
    memory, points, problem = small_problem(generator)
    assert [name for name, _ in problem.changes] == 4 * ["places"] + 2 * ["angles"] + 2 * ["log_scales"]
    for number, (name, change) in enumerate(problem.changes):
        size = torch.zeros((), dtype=torch.float64, requires_grad=True)
        tables = outlines.tables_of(memory)
        logits = outlines.logits_of(memory, points, **tables | {name: tables[name] + size * change})
        direction = torch.randn(len(logits), generator=generator, dtype=torch.float64)
        expected = torch.autograd.grad(logits * (2 * points.labels - 1), size, direction)[0]
        assert (direction @ problem.moves[:, number]).item() == pytest.approx(expected.item(), rel=0.05, abs=0.5)


@pytest.mark.parametrize(
    ("codes", "evened"),
    [([0.0, 1.01, 2.0, 2.99], True), ([0.0, 1.2, 2.0, 3.0], False), ([0.0, 1.0], False), ([3.0, 2.0, 1.0], False)],
)
def test_codes_that_are_nearly_even_become_so(codes, evened):
    memory = nearly_right_memory()
    memory.angles.fill_(FAR)
    memory.angles[: len(codes)] = torch.tensor(codes)
    even_out(memory)
    found = memory.angles[: len(codes)]
    if evened:
        torch.testing.assert_close(found.diff(), found.diff().mean().expand(len(codes) - 1))
        torch.testing.assert_close(found.mean(), torch.tensor(codes).mean())
    else:
        assert torch.equal(found, torch.tensor(codes))


def test_scales_are_evened_out_and_not_their_logarithms():
    memory = nearly_right_memory()
    memory.log_scales[0, :3] = torch.tensor([0.5, 0.601, 0.7]).log()
    even_out(memory)
    found = memory.log_scales[0, :3].exp()
    assert float(found.diff().diff().abs()) < 1e-6
    assert (memory.log_scales[0, 3:] == FAR).all()


@pytest.mark.parametrize(
    ("scales", "units"),
    [
        ([[0.5, 0.6, 0.7], [1.0, 1.2, 1.4]], [-0.5, 0.5]),  # the same but for a factor of two
        ([[0.5, 0.6, 0.7], [1.0, 1.2, 1.3]], [0.0, 0.0]),
        ([[0.5, 0.6, 0.7], [1.0, 1.2]], [0.0, 0.0]),
        ([[0.5], [1.0]], [-0.5, 0.5]),
        ([[0.5, 0.6]], [0.0]),
    ],
)
def test_scales_have_units_if_they_differ_in_nothing_else(scales, units):
    memory = nearly_right_memory()
    memory.forget()
    memory.shapes[: len(scales)] = 0.0
    for number, row in enumerate(scales):
        memory.log_scales[number, : len(row)] = torch.tensor(row).log2()
    expected = torch.zeros(len(memory.units))
    expected[: len(units)] = torch.tensor(units)
    torch.testing.assert_close(units_of(memory), expected)


def gathered(memory, masks, codes):
    gathering = refinement._Gathering(memory, torch.Generator().manual_seed(0))
    gathering.add(masks, codes)
    return gathering


def test_images_that_are_read_wrongly_have_no_pixels_that_count(generator):
    masks, codes = sprites(generator)
    memory = nearly_right_memory()
    refined(memory, masks, codes, (60, 3, 150))
    wrong = codes.clone()
    wrong[0, 3] = 3 - wrong[0, 3]  # another place
    assert (wrong[0] != codes[0]).any()
    both = [gathered(memory, masks, given).points() for given in (codes, wrong)]
    assert 0 < len(both[0].labels) - len(both[1].labels) < len(both[0].labels) / 20
    assert {tensor.dtype for tensor in both[0]} == {torch.uint8, torch.bool}


def test_what_is_gathered_once_is_not_gathered_again(generator):
    masks, codes = sprites(generator)
    gathering = gathered(nearly_right_memory(), masks[:60], codes[:60])
    before = len(gathering.points().labels)
    gathering.add(masks[:60], codes[:60])
    kept = {tuple(row) for row in gathering.points().codes.tolist()}
    assert len(gathering.points().labels) == before
    gathering.add(masks, codes)
    assert len(gathering.points().labels) > before
    assert kept < {tuple(row) for row in gathering.points().codes.tolist()}


def test_the_nearest_pixels_are_fitted_and_all_wrong_ones(generator, monkeypatch):
    masks, codes = sprites(generator)
    memory = nearly_right_memory()
    refined(memory, masks, codes, (60, 3, 150))
    monkeypatch.setattr(refinement, "FEWEST", 10)
    points = gathered(memory, masks, codes).points()
    points = outlines.Points(points.codes, points.pixels, points.labels ^ (torch.arange(len(points.labels)) % 50 == 0))
    chosen = refinement._nearest(memory, points, 0.1, generator)
    logits = outlines.logits_of(memory, outlines.widened(points, memory), **outlines.tables_of(memory))
    wrong = (logits > 0) != points.labels
    assert 0 < wrong.sum() < len(wrong) / 10
    assert chosen[wrong].all()
    order = logits.abs().argsort()
    assert chosen[order[: len(order) // 10]].all()
    assert 0 < chosen[~wrong][logits[~wrong].abs() > logits.abs().median()].float().mean() < 0.1


def test_an_outline_is_where_neighbours_differ():
    masks = torch.zeros(2, 8, 8)
    masks[0, 3:5, 2:6] = 1
    masks[1, 0, 0] = 1
    codes = torch.arange(12).reshape(2, 6)
    image, (found, pixels, labels) = outlines.points_of(masks, codes, outlines.border(masks))
    expected = {
        (image, column + 0.5, row + 0.5, float(masks[image, row, column]))
        for image, row, column in itertools.product(range(2), range(8), range(8))
        if len(masks[image, max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2].unique()) == 2
    }
    assert {
        (number, *at, label) for number, at, label in zip(image.tolist(), pixels.tolist(), labels.tolist(), strict=True)
    } == expected
    assert torch.equal(found, codes[image])


@pytest.mark.parametrize("reach", [40.0, 4.0])
def test_single_pixels_are_seen_where_whole_images_have_them(reach, normal):
    turn = normal(4)
    pose = Pose(4.5 + normal(4, 2), torch.stack([turn.cos(), turn.sin()], -1), 0.1 * normal(4))
    image, row, column = torch.ones(4, 9, 9).nonzero(as_tuple=True)
    each = Pose(*(tensor[image] for tensor in pose))
    found = outlines.in_frame(each, torch.stack([column, row], -1) + 0.5, reach)
    torch.testing.assert_close(found.reshape(4, 9, 9, 2), own_frame(pose, 9, reach))


def test_the_same_seed_refines_to_the_same_bits(generator):
    masks, codes = sprites(generator)
    memories = [nearly_right_memory() for _ in range(3)]
    for memory, seed in zip(memories, (0, 0, 1), strict=True):
        refined(memory, masks, codes, (5, 2, 25), seed)
    for name in ("templates", "log_scales", "angles", "places"):
        first, again, other = (getattr(memory, name) for memory in memories)
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
