"""Templates that are laid over images, and the frame that they have in common."""

import math

import pytest
import torch

from tpr_attention.nn.images.alignment import _Pairs, align
from tpr_attention.nn.images.codes.pose_memory import PoseMemory
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.pixels import rotated
from tpr_attention.nn.images.poses import Pose
from tpr_attention.nn.images.registration import fillers_that_cover, find_symmetries, register, symmetry_of

FILLERS = torch.eye(3, 8)  # of a triangle, a square and a bar
SYMMETRIES = [1, 4, 2]


def inside(number, u, v):
    """How far inside of a triangle that stands upright, a square or a bar points are, in pixels."""
    triangle = torch.minimum(7 - v, v + 9 - 2 * u.abs())
    square = 7 - torch.maximum(u.abs(), v.abs())
    bar = torch.minimum(9 - u.abs(), 4 - v.abs())
    return (triangle, square, bar)[number]


def decoder_of(frames):
    """Draws the shapes, each with a frame of its own: an angle, the logarithm of a size, and a middle."""
    decoder = TemplateDecoder(side=64, channels=3, filler_dim=8)
    line = decoder.reach * torch.linspace(-1, 1, decoder.resolution)
    x, y = torch.meshgrid(line, line, indexing="xy")
    with torch.no_grad():
        decoder.base.zero_()
        for number, (angle, log_size, across, down) in enumerate(frames):
            # the common frame u = exp(log_size) R(-angle) (own - middle)
            size, near_x, near_y = math.exp(log_size), x - across, y - down
            u = size * (math.cos(angle) * near_x + math.sin(angle) * near_y)
            v = size * (math.cos(angle) * near_y - math.sin(angle) * near_x)
            decoder.templates[number] = 4 * inside(number, u, v).clamp(-3, 3)
        decoder.orientation.weight[:, :2] = torch.eye(2)
        decoder.scale.weight.fill_(0.3)
    return decoder


def poses(count, generator, most=1.3):
    return Pose.at_angle(
        22 + 20 * torch.rand(count, 2, generator=generator),
        most * torch.rand(count, generator=generator),
        -0.5 * torch.rand(count, generator=generator),
    )


def made(decoder, shape, pose):
    """Objects of these shapes in these poses, and their masks."""
    objects = torch.zeros(len(shape), 5, 8)
    objects[:, 0] = FILLERS[shape]
    with torch.no_grad():
        objects = decoder.posed(objects, pose)
        return objects, (decoder.field(objects) > 0).float()


def turns(one, other, period):
    turn = (one - other).remainder(period)
    return torch.minimum(turn, period - turn)


STRAIGHT = [(0.0, 0.0, 0.0, 0.0)] * 3
CROOKED = [(0.3, 0.05, -0.3, 0.4), (0.5, 0.1, 0.8, -0.5), (-2.0, -0.1, -0.6, 0.4)]


def test_shapes_and_poses_are_found_without_an_encoder(generator):
    decoder, shape, pose = decoder_of(STRAIGHT), torch.arange(60) % 3, poses(60, generator, most=6)
    found = register(decoder, FILLERS, made(decoder, shape, pose)[1])
    assert torch.equal(found.shape, shape)
    assert (found.wrong <= 2).all()
    assert (found.pose.centre - pose.centre).abs().mean() < 0.08
    assert (found.pose.log_scale - pose.log_scale).abs().mean() < 0.02
    period = 2 * math.pi / torch.tensor(SYMMETRIES)[shape]
    assert turns(found.pose.angle, pose.angle, period).mean() < 0.02


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("frames", [STRAIGHT, CROOKED])
def test_symmetries_are_seen_whatever_the_frame(number, frames, generator):
    assert symmetry_of(decoder_of(frames), FILLERS[number], poses(1, generator)) == SYMMETRIES[number]


def test_what_nothing_draws_has_no_template(generator):
    decoder = decoder_of(STRAIGHT)
    objects, masks = made(decoder, torch.arange(30) % 3, poses(30, generator))
    masks[::10] = (torch.rand(3, 64, 64, generator=generator) < 0.1).float()
    assert len(fillers_that_cover(decoder, objects, masks)) == 3


def test_a_shape_that_has_two_templates_is_taken_once(generator):
    """The fourth filler draws the triangle, turned by a right angle."""
    decoder = decoder_of(STRAIGHT)
    with torch.no_grad():
        decoder.templates[3] = torch.rot90(decoder.templates[0])
    shape = torch.arange(60) % 4
    objects, masks = made(decoder, shape % 3, poses(60, generator))
    objects[shape == 3, 0] = torch.eye(8)[3]
    found = fillers_that_cover(decoder, objects, masks)
    numbers = found.argmax(1).tolist()
    assert len(numbers) == 3
    assert {number % 3 for number in numbers} == {0, 1, 2}


def triplets(generator, count=90):
    """Shapes and poses of references, transforms and targets, of which half have the shape of the transform."""
    shapes = torch.randint(3, (2, count), generator=generator)
    both = [poses(count, generator) for _ in range(2)]
    target = torch.where(torch.arange(count) % 2 == 0, shapes[1], shapes[0])
    return [*shapes, target], [*both, both[0]]


def framed(pose, shape, frames):
    """The pose of each template that draws its shape in a pose of the common frame."""
    angle, log_size, *middle = torch.tensor(frames)[shape].unbind(1)
    turned, log_scale = pose.angle + angle, pose.log_scale + log_size
    across, down = middle
    away = torch.stack([turned.cos() * across + turned.sin() * down, turned.cos() * down - turned.sin() * across], -1)
    return Pose.at_angle(pose.centre - log_scale.exp().unsqueeze(-1) * away, turned, log_scale)


def images_of(decoder, shapes, common, frames):
    """Objects and masks of triplets."""
    each = (made(decoder, shape, framed(pose, shape, frames)) for shape, pose in zip(shapes, common, strict=True))
    return zip(*each, strict=True)


@pytest.mark.parametrize("seed", [0, 3])
def test_aligned_objects_have_the_pose_of_what_their_properties_come_from(seed):
    """Whatever frames templates have, and whichever of its angles a symmetric shape was read with."""
    decoder, (shapes, common) = decoder_of(CROOKED), triplets(torch.Generator().manual_seed(seed))
    objects, masks = images_of(decoder, shapes, common, CROOKED)
    straight = images_of(decoder_of(STRAIGHT), shapes, common, STRAIGHT)
    assert (torch.cat([*straight][1]) != torch.cat(masks)).sum((1, 2)).float().mean() < 4  # frames are what they say
    aligned = align(decoder, objects, masks).detach()
    with torch.no_grad():
        pose, true = decoder.pose(aligned), Pose(*(torch.cat(parts) for parts in zip(*common, strict=True)))
        wrong = (decoder.field(aligned) > 0) != (torch.cat(masks) > 0.5)
    assert turns(pose.angle, true.angle, 2 * math.pi).quantile(0.98) < 0.1
    assert wrong.sum((1, 2)).float().mean() < 2
    first, last = (Pose(*(part[chosen] for part in pose)) for chosen in (slice(90), slice(-90, None)))
    changed = shapes[0] != shapes[2]
    assert (first.centre - last.centre)[changed].norm(dim=-1).median() < 0.1
    assert (first.log_scale - last.log_scale)[changed].abs().median() < 0.02
    assert turns(first.angle, last.angle, 2 * math.pi)[changed].median() < 0.02


@pytest.mark.parametrize(("off", "is_moved"), [((1.2, -0.6), True), ((0.1, 0.1), False)])
def test_aligned_shapes_turn_around_the_point_that_answers_tell(off, is_moved):
    """A third of the answers has another angle than the reference, in the same place. What is near is left as it is."""
    frames = [(0.3, 0.0, *off), (0.5, 0.1, 0.8, -0.5), (-2.0, -0.1, -0.6, 0.4)]
    generator = torch.Generator().manual_seed(0)
    decoder, (shapes, common) = decoder_of(frames), triplets(generator, count=180)
    answer = torch.where(torch.arange(180) % 3 == 1, common[1].angle, common[0].angle)
    common[2] = Pose.at_angle(common[0].centre, answer, common[0].log_scale)
    with torch.no_grad():
        pose = decoder.pose(align(decoder, *images_of(decoder, shapes, common, frames)))
    true = Pose(*(torch.cat(parts) for parts in zip(*common, strict=True)))
    apart = (pose.centre - true.centre).norm(dim=-1).median()
    if is_moved:
        assert apart < 0.1
    else:  # then other shapes turn around the same point
        middle = torch.tensor(off).norm() * true.log_scale.exp().mean()
        assert apart == pytest.approx(float(middle), rel=0.3)


@pytest.mark.parametrize(("count", "noise", "expected"), [(40, 0.0, (1.2, -0.6)), (40, 9.0, (0, 0)), (2, 0.0, (0, 0))])
def test_the_point_is_the_origin_where_pairs_are_few_or_do_not_agree(count, noise, expected, generator):
    middle = torch.tensor([1.2, -0.6])
    place = 32 + torch.rand(count, 2, generator=generator)
    both = []
    for angle in (torch.linspace(0, 1, count), torch.linspace(2, 4, count)):
        log_scale = -0.5 * torch.rand(count, generator=generator)
        centre = place - log_scale.exp().unsqueeze(-1) * rotated(middle, -angle)
        both.append(Pose.at_angle(centre + noise * torch.rand(count, 2, generator=generator), angle, log_scale))
    torch.testing.assert_close(_Pairs(*both).middle(), torch.tensor(expected, dtype=torch.float32))


def unchanged(decoder, objects, masks):
    before = [tensor.clone() for tensor in decoder.parameters()]
    assert align(decoder, objects, masks) is None
    return all(torch.equal(tensor, old) for tensor, old in zip(decoder.parameters(), before, strict=True))


def test_nothing_is_aligned_where_examples_do_not_compare_shapes(generator):
    decoder = decoder_of(CROOKED)
    shape, pose = torch.arange(90) % 3, poses(90, generator)
    objects, masks = made(decoder, shape, framed(pose, shape, CROOKED))
    others = torch.randperm(90, generator=generator)
    assert unchanged(decoder, [objects], [masks])
    assert unchanged(decoder, [objects, objects], [masks, masks])  # no answer has another shape
    assert unchanged(decoder, [objects, objects[others]], [masks, masks[others]])  # poses have nothing in common


def test_places_must_agree_too(generator):
    """Where nothing is turned, angles of any two images do."""
    decoder, shape = decoder_of(STRAIGHT), torch.arange(60) % 3
    still = poses(60, generator, most=0.0)
    objects, masks = made(decoder, shape, still)
    others = torch.randperm(60, generator=generator)
    assert unchanged(decoder, [objects, objects[others]], [masks, masks[others]])


def test_without_a_shape_that_has_one_angle_nothing_is_aligned(generator):
    """Squares and bars: all of their angles could be others."""
    decoder, shape, pose = decoder_of(STRAIGHT), 1 + torch.arange(40) % 2, poses(40, generator)
    pairs = [made(decoder, one, pose) for one in (shape, 3 - shape)]
    assert unchanged(decoder, *zip(*pairs, strict=True))


def test_double_precision(generator):
    decoder, (shapes, common) = decoder_of(CROOKED), triplets(generator, count=30)
    given = [[tensor.double() for tensor in some] for some in images_of(decoder, shapes, common, CROOKED)]
    found = align(decoder.double(), *given)
    assert found.dtype == torch.float64


def test_a_memory_finds_how_often_each_of_its_shapes_is_the_same_in_a_turn():
    """As the largest object of each shows it: the shapes of a memory have numbers of its own."""
    decoder = decoder_of([(0.3, 0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.0), (0.7, 0.0, 0.0, 0.0)])
    memory, own = PoseMemory(decoder, resolution=33), [2, 0, 1]
    memory.shapes[:3] = FILLERS[own]
    generator = torch.Generator().manual_seed(0)
    objects, _ = made(decoder, torch.randint(3, (30,), generator=generator), poses(30, generator))
    find_symmetries(memory, decoder, objects)
    assert memory.orders.tolist() == [SYMMETRIES[number] for number in own] + [1] * 5
    memory.forget()
    assert (memory.orders == 1).all()
