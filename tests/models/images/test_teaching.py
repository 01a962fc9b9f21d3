"""What codes teach: encoders read them, decoders draw them, and compositions are fitted to their objects."""

import itertools

import pytest
import torch
from torch import nn

from tpr_attention.models.images import teaching
from tpr_attention.models.images.teaching import Pupil, images_of, sharpen, teach
from tpr_attention.nn.images.codes.pose_memory import ACROSS, ANGLE, COLOUR, SCALE, SHAPE, PoseMemory
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.second_look import second_look
from tpr_attention.tasks.task import Batch

COUNTS = (2, 2, 3, 2, 2, 1)  # of codes
SPREAD = torch.tensor([0.1, 0.03, 0.01])


class World:
    """Rectangles of two shapes that a memory draws exactly, and a decoder that draws both too small.

    Fillers of scales have another unit for each shape: those of the second shape are larger.
    """

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.decoder = TemplateDecoder(64, 3, 8, resolution=48)
        memory = self.memory = PoseMemory(self.decoder, resolution=65)
        memory.shapes[:2] = 3 * torch.eye(2, 8)
        memory.log_scales[:2, :2] = torch.tensor([[-0.4, 0.0], [-0.3, 0.1]])
        memory.angles[:3] = torch.tensor([0.1, 0.4, 0.7])
        memory.places[:, :2] = torch.tensor([24.0, 40.3])
        memory.colours[0] = 1.0
        memory.reach.fill_(16.0)
        line = 16 * torch.linspace(-1 - 2 / 62, 1 + 2 / 62, 65)
        shapes = [torch.minimum(wide - line.abs(), 7 - line.abs().unsqueeze(-1)) for wide in (5.0, 10.0)]
        memory.templates[:2] = 4 * torch.stack(shapes).clamp(-3, 3)
        with torch.no_grad():
            coarse = 14 * torch.linspace(-1, 1, 48)
            near = [torch.minimum(wide - coarse.abs(), 6 - coarse.abs().unsqueeze(-1)) for wide in (5.0, 10.0)]
            self.decoder.base.zero_()
            self.decoder.templates[:2] = torch.stack(near).clamp(-3, 3) / 3
        self.codes = torch.tensor(list(itertools.product(*map(range, COUNTS))))
        with torch.no_grad():
            masks = (memory.field(self.codes) > 0).float()
            self.images = masks.unsqueeze(1).expand(-1, 3, -1, -1)
            drawn = torch.randn(len(masks), 5, 8, generator=torch.Generator().manual_seed(0))
            self.objects = memory.objects(self.codes, drawn, self.decoder)


class Reader(nn.Module):
    """Knows every image by heart, and is wrong by a constant for each code of a shape, a scale and an angle."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world, self.seen = world, set()
        self.off = nn.ParameterList(nn.Parameter(torch.zeros(COUNTS[kind], 5, 8)) for kind in (SHAPE, SCALE, ANGLE))

    def forward(self, images):
        number = torch.cdist(images[:, 0].flatten(1), self.world.images[:, 0].flatten(1)).argmin(1)
        codes = self.world.codes[number]
        self.seen |= set(number.tolist())
        off = [part[codes[:, kind]] for part, kind in zip(self.off, (SHAPE, SCALE, ANGLE), strict=True)]
        return self.world.objects[number] + sum(off)


@pytest.fixture(scope="module")
def taught():
    """A world, its reader, what was composed of it, and the factor that the composition has learned."""
    world = World()
    reader = Reader(world)
    factor = nn.Parameter(torch.tensor(3.0))

    def error(given):
        first, second, target, other = given
        assert first.shape == second.shape == target.shape
        wrong = other[:, 0] == 0
        wanted = torch.where(wrong[:, None, None], 500.0, target)
        return (factor * target - wanted).square().sum((1, 2))

    shown = ((world.codes[:, SHAPE] == 0) | (world.codes[:, ACROSS] == 0)).nonzero().flatten()

    def batches():
        for seed in itertools.count():
            chosen = shown[torch.randint(len(shown), (3, 8), generator=torch.Generator().manual_seed(seed))]
            first, second, target = world.images[chosen]
            others = torch.ones(8, 5)
            others[0] = min(seed, 1)  # one example has wrong codes
            yield Batch((first, second, others), target, {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(teaching, "COMPOSED", 30)
        patch.setattr(teaching, "LESSON", 24)
        patch.setattr(teaching, "RATES", {"encoder": 0.01, "decoder": 0.03})
        before = [[drawn_wrongly(world)], [p.clone() for p in world.decoder.parameters()]]
        pupil, generator = Pupil(reader, world.decoder, [factor], error), torch.Generator().manual_seed(0)
        steps = sum(1 for _ in teach(pupil, world.memory, world.objects, batches(), 150, generator))
    return world, reader, factor, steps, before


@torch.no_grad()
def drawn_wrongly(world):
    """The share of pixels that the decoder has wrong, of what would be read."""
    lessons = teaching._Lessons(world.memory, world.decoder, world.objects)
    objects = lessons.objects(world.codes)
    return float(((world.decoder.field(objects) > 0) != (world.images[:, 0] > 0.5)).float().mean())


def test_fillers_of_scales_have_one_unit_then(taught):
    """The encoder reads the mean of both, whatever the shape is, and the memory reads the same codes of it."""
    world, reader, _, steps, _ = taught
    assert steps == 150
    torch.testing.assert_close(world.memory.units[:2], torch.tensor([-0.05, 0.05]))
    with torch.no_grad():
        read = reader(world.images)
        pose = world.decoder.pose(read)
    expected = torch.tensor([-0.35, 0.05])[world.codes[:, SCALE]]
    torch.testing.assert_close(pose.log_scale, expected, atol=0.02, rtol=0)
    codes = world.memory.read(read, world.decoder)
    assert torch.equal(codes[:, :COLOUR], world.codes[:, :COLOUR])
    found, wanted = (
        world.decoder.pose(world.memory.objects(codes, read, world.decoder)),
        world.memory.filler_pose(codes),
    )
    torch.testing.assert_close(found.log_scale, wanted.log_scale)
    torch.testing.assert_close(wanted.log_scale, expected)


def test_the_decoder_draws_what_codes_say(taught):
    world, *_, ((before,), parameters) = taught
    assert drawn_wrongly(world) < before / 4
    names = [name for name, _ in world.decoder.named_parameters()]
    changed = {
        name
        for name, one, other in zip(names, parameters, world.decoder.parameters(), strict=True)
        if not torch.equal(one, other)
    }
    assert changed == {"base", "templates", "gain"}


def test_the_composition_is_fitted_without_what_has_wrong_codes(taught):
    _, _, factor, _, _ = taught
    assert factor.item() == pytest.approx(1, abs=1e-3)
    assert factor.grad is None


def test_the_spread_is_what_is_left_of_errors(taught):
    world, *_ = taught
    position, angle, scale = world.memory.spread.tolist()
    assert position == pytest.approx(teaching.WIDER[0] * teaching.LEAST_SPREAD)  # it was never wrong
    assert 0 < angle < 0.02
    assert 0 < scale < 0.02


def test_combinations_teach_that_no_example_has(taught):
    world, reader, *_ = taught
    assert reader.seen == set(range(len(world.codes)))


def test_objects_of_codes_are_read_as_these():
    """They have the mean of the fillers of each code, as far as that says nothing of poses."""
    world = World()
    lessons = teaching._Lessons(world.memory, world.decoder, world.objects)
    made = lessons.objects(world.codes)
    world.memory.units.copy_(lessons.units)
    assert torch.equal(world.memory.read(made, world.decoder), world.codes)
    for table, role, kind in ((lessons.scales, 1, SCALE), (lessons.angles, 2, ANGLE), (lessons.colours, 4, COLOUR)):
        for number in range(COUNTS[kind]):
            expected = world.objects[world.codes[:, kind] == number, role].mean(0)
            torch.testing.assert_close(table[number], expected)
            torch.testing.assert_close(table[-1], world.objects[:, role].mean(0))  # of a code that none has


@pytest.mark.parametrize("near", [0.2, 2.0, -3.0])
def test_of_angles_that_look_alike_the_nearest_should_be_read(near):
    """Turned by half a turn a bar is the same. All else is as it is, and so are angles of the other shape."""
    world = World()
    world.memory.angles[:3] = torch.tensor([0.1, 1.5, 2.9])
    world.memory.orders[:2] = torch.tensor([2, 1])
    assert world.memory.look_alike.tolist() == [True] + [False] * 7
    lessons = teaching._Lessons(world.memory, world.decoder, world.objects)
    plain, made = (
        world.decoder.pose(lessons.objects(world.codes, angles)) for angles in (None, torch.full((48,), near))
    )
    torch.testing.assert_close((made.centre, made.log_scale), (plain.centre, plain.log_scale))
    turns = (made.angle - plain.angle).remainder(2 * torch.pi)
    is_bar = world.codes[:, SHAPE] == 0
    torch.testing.assert_close((turns / torch.pi).round() * torch.pi, turns, atol=1e-4, rtol=0)
    away = (made.angle - near + torch.pi).remainder(2 * torch.pi) - torch.pi
    assert (away[is_bar].abs() <= torch.pi / 2 + 1e-4).all()
    torch.testing.assert_close(made.direction[~is_bar], plain.direction[~is_bar])


def test_what_should_be_read_is_near_to_what_is_read(monkeypatch):
    world, angles = World(), []
    objects = teaching._Lessons.objects

    def recorded(lessons, codes, near=None):
        angles.append((world.memory.angles[codes[:, ANGLE]], near))
        return objects(lessons, codes, near)

    monkeypatch.setattr(teaching._Lessons, "objects", recorded)
    pupil = Pupil(Reader(world), world.decoder, (), lambda given: given[0])
    assert len(list(teach(pupil, world.memory, world.objects, iter(()), 1, torch.Generator().manual_seed(0)))) == 1
    ((wanted, near),) = angles
    torch.testing.assert_close(near, wanted, atol=1e-3, rtol=0)  # this reader knows all images by heart


def test_without_codes_the_decoder_is_sharpened(monkeypatch):
    """By poses that are corrected: positions are read too far right and down."""
    monkeypatch.setattr(teaching, "RATES", {"decoder": 0.03})
    looks = []

    def look(*given):
        looks.append(given[-1])
        return second_look(*given[:-1])

    monkeypatch.setattr(teaching, "second_look", look)
    world = World()
    decoder, reader = world.decoder, Reader(world)
    with torch.no_grad():
        pose = decoder.pose(world.objects)
        world.objects = decoder.posed(world.objects, pose._replace(centre=pose.centre + 0.1))
    before = {name: tensor.clone() for name, tensor in decoder.named_parameters()}
    batch = Batch((world.images,), world.images, {})

    def loss():
        with torch.no_grad():
            found = second_look(decoder, reader(world.images), world.images[:, 0], SPREAD)
            return float((decoder.field(found).sigmoid() - world.images[:, 0]).square().mean())

    first = loss()
    assert len(list(sharpen(reader, decoder, SPREAD, itertools.repeat(batch), 20))) == 20
    assert looks == [24] * 20
    assert loss() < first / 1.2
    changed = {name for name, tensor in decoder.named_parameters() if not torch.equal(tensor, before[name])}
    assert changed == {"base", "templates", "gain"}
    assert all(tensor.grad is None for tensor in decoder.parameters())
    assert not any(part.any() for part in reader.off)


def test_images_come_apart_from_what_is_none():
    batch = Batch((torch.zeros(2, 3, 4, 4), torch.ones(2, 5)), torch.ones(2, 3, 4, 4), {})
    images, others = images_of(batch)
    assert [len(images), len(others)] == [2, 1]
    assert images[-1] is batch.target
