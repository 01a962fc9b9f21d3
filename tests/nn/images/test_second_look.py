"""A second look: poses are nearer to the truth, and no farther from what was read than they may be."""

import pytest
import torch

from tpr_attention.nn.images import second_look as module
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.poses import Pose
from tpr_attention.nn.images.second_look import second_look

SPREAD = torch.tensor([0.1, 0.03, 0.02])


@pytest.fixture
def decoder(generator):
    """Draws triangles: as long as they are wide, with corners, and without symmetry."""
    decoder = TemplateDecoder(side=64, channels=3, filler_dim=8)
    line = 16 * torch.linspace(-1, 1, decoder.resolution)
    u, v = line, line.unsqueeze(-1)
    inside = torch.minimum(torch.minimum(10 - v, v + 8 - 2 * u), v + 12 + 1.5 * u)
    with torch.no_grad():
        decoder.base.copy_(4 * inside.clamp(-3, 3))
        for part in (decoder.scale, decoder.orientation):
            part.weight.copy_(0.3 * torch.randn(part.weight.shape, generator=generator))
    return decoder


@pytest.fixture
def world(decoder, generator):
    """True objects and their masks; objects are away from the border."""
    objects = torch.randn(40, 5, 8, generator=generator)
    turn = 6 * torch.rand(40, generator=generator)
    pose = Pose(
        20 + 24 * torch.rand(40, 2, generator=generator),
        torch.stack([turn.cos(), turn.sin()], -1),
        -0.5 * torch.rand(40, generator=generator),
    )
    with torch.no_grad():
        objects = decoder.posed(objects, pose)
        return objects, (decoder.field(objects) > 0).float()


def errors(decoder, found, true):
    """Root mean squares: of positions, angles and logarithms of scales."""
    one, other = decoder.pose(found), decoder.pose(true)
    centre, turn = one.centre - other.centre, (one.direction - other.direction).norm(dim=-1)
    return torch.stack([part.square().mean().sqrt() for part in (centre, turn, one.log_scale - other.log_scale)])


def misread(decoder, true, generator, size=1.0):
    pose = decoder.pose(true)
    off = [
        size * SPREAD[k] * torch.randn(part.shape, generator=generator)
        for k, part in enumerate((pose[0], true[:, 0, 0], pose[2]))
    ]
    turn = torch.atan2(pose.direction[:, 1], pose.direction[:, 0]) + off[1]
    return decoder.posed(
        true, Pose(pose.centre + off[0], torch.stack([turn.cos(), turn.sin()], -1), pose.log_scale + off[2])
    )


@torch.no_grad()
def test_poses_are_nearer_to_the_truth(decoder, world, generator):
    true, masks = world
    read = misread(decoder, true, generator)
    found = second_look(decoder, read, masks, SPREAD)
    assert (errors(decoder, found, true) < errors(decoder, read, true) / 2).all()
    for role in (0, 4):  # shapes and colours stay
        assert torch.equal(found[:, role], read[:, role])


@torch.no_grad()
def test_what_is_known_well_is_kept(decoder, world, generator):
    """A small spread of angles and scales leaves these nearly as they are, and corrects positions alone."""
    true, masks = world
    read = misread(decoder, true, generator)
    sure = SPREAD * torch.tensor([1.0, 1e-3, 1e-3])
    position, turn, grow = errors(decoder, second_look(decoder, read, masks, sure), read)
    assert position > 0.03
    assert turn < 1e-4
    assert grow < 1e-4


@torch.no_grad()
def test_slopes_are_derivatives(decoder, world, generator):
    """Of the distance of pixels from the outline, against small changes of each number of a pose."""
    decoder, true = decoder.double(), world[0][:5].double()
    line = torch.linspace(-1, 1, decoder.resolution, dtype=torch.float64)
    decoder.base.copy_(3 * line - 2 * line.unsqueeze(-1) + 1)  # its slope is the same everywhere
    numbers = module.Look.numbers(decoder.pose(true))
    places = numbers[:, None, :2] + 4 * torch.rand(5, 30, 2, generator=generator, dtype=torch.float64)
    there = torch.ones(5, 30, dtype=torch.float64)
    pixels = module._Pixels(places, there, there)
    looked = module.Look(decoder, module._with_slopes(decoder.template(true[:, 0])), pixels, torch.ones(4))
    distance, slopes = looked._distances(numbers)
    for number in range(3):  # a scale changes how long a pixel is, too
        moved = numbers.clone()
        moved[:, number] += 1e-6
        other, _ = looked._distances(moved)
        torch.testing.assert_close((other - distance) / 1e-6, slopes[..., number], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_mean_of_poses_is_nearer_than_the_best_one(decoder, world, generator, monkeypatch):
    """Over many readings of the same images; single ones may be farther."""
    true, masks = (given.repeat(10, *[1] * (given.ndim - 1)) for given in world)
    read = misread(decoder, true, generator)

    def error():
        found = errors(decoder, second_look(decoder, read, masks, SPREAD), true)
        return float((found / SPREAD).square().sum())

    mean = error()
    monkeypatch.setattr(module.Look, "averaged", lambda look, found, read: found)
    assert mean < 0.97 * error()


@torch.no_grad()
def test_far_angles_are_found_from_other_directions(decoder, world, generator):
    """Only where they are wanted, and only for images that are drawn badly."""
    true, masks = world
    read = misread(decoder, true, generator)
    pose = decoder.pose(read)
    turned = decoder.posed(read, Pose.at_angle(pose.centre, pose.angle + 2, pose.log_scale))
    given = torch.cat([turned[:20], read[20:]])
    alone, found = (second_look(decoder, given, masks, SPREAD, count) for count in (1, 24))
    assert errors(decoder, alone[:20], true[:20])[1] > 1
    assert (errors(decoder, found[:20], true[:20]) < SPREAD).all()
    torch.testing.assert_close(found[20:], alone[20:])


def test_pixels_are_those_of_outlines(world):
    masks = world[1][:3].clone()
    masks[1] = 0
    pixels = module._pixels(masks)
    assert pixels.there.sum(1).tolist() == module.border(masks).sum((1, 2)).tolist()
    for image, there, places, on in zip(masks, pixels.there.bool(), pixels.places, pixels.on, strict=True):
        column, row = (places[there] - 0.5).long().unbind(-1)
        assert torch.equal(image[row, column], on[there])
        assert len(set(zip(column.tolist(), row.tolist(), strict=True))) == there.sum()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_empty_images_are_left_as_they_are_read(count, decoder, world):
    read = world[0][:count]
    found = second_look(decoder, read, torch.zeros(count, 64, 64), SPREAD)
    torch.testing.assert_close(found, read, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_what_is_not_finite_stays_so_for_itself_alone(decoder, world):
    read, masks = world[0][:3].clone(), world[1][:3]
    read[1, 3] = torch.nan
    found = second_look(decoder, read, masks, SPREAD)
    assert found[1].isnan().any()
    torch.testing.assert_close(found[::2], second_look(decoder, read[::2], masks[::2], SPREAD))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objects": torch.zeros(2, 4, 8)}, "objects: expected"),
        ({"masks": torch.zeros(3, 64, 64)}, "masks: expected"),
        ({"masks": torch.zeros(2, 64, 32)}, "masks: expected"),
        ({"spread": torch.zeros(3)}, "spread: expected three positive numbers, got"),
        ({"spread": torch.ones(2)}, "spread: expected three positive numbers, got"),
        ({"directions": 0}, "directions: expected"),
    ],
)
def test_what_does_not_fit_is_named(change, message, decoder, as_users_run_it):
    given = {"objects": torch.zeros(2, 5, 8), "masks": torch.zeros(2, 64, 64), "spread": SPREAD} | change
    with pytest.raises(ValueError, match=message):
        second_look(decoder, **given)
