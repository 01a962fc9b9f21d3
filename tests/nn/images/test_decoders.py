"""Decoders against their definitions, and constructed solutions: known images drawn at known poses, untrained."""

from functools import partial
from math import atan2, cos, exp, floor, log, pi, sin

import pytest
import torch

from tpr_attention.functional.images.phases import moved, position_filler, spectrum, waves_to_image
from tpr_attention.nn.images.decoders import GAIN, SpectrumDecoder, TemplateDecoder

SIDE, FILLER = 12, 5


def seeded(make, *sizes, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make(*sizes, **options)


def spectrum_decoder(**options):
    options = {"cutoff": 3, "hidden_dim": 8, "dtype": torch.float64} | options
    return seeded(SpectrumDecoder, SIDE, 3, 2, FILLER, **options)


def template_decoder(**options):
    """With templates that differ in every filler."""
    options = {"resolution": 7, "reach": 5.0, "dtype": torch.float64} | options
    decoder = seeded(TemplateDecoder, SIDE, 3, FILLER, **options)
    torch.nn.init.normal_(decoder.templates, generator=torch.Generator().manual_seed(1))
    return decoder


DECODERS = {"spectrum": spectrum_decoder, "template": template_decoder}
ROLES = {"spectrum": 4, "template": 5}


def placed(objects, right, down, side=SIDE):
    """Objects at other places, in pixels from the upper left corner."""
    angles = 2 * pi / side * torch.tensor([right, down], dtype=objects.dtype)
    filler = position_filler(angles, objects.shape[-1])
    return torch.cat([objects[:, :-2], filler.expand(len(objects), 1, -1), objects[:, -1:]], 1)


@pytest.mark.parametrize("kind", DECODERS)
def test_an_image_is_a_colour_times_a_mask(kind, normal):
    decoder, objects = DECODERS[kind](), normal(2, ROLES[kind], FILLER)
    images, field = decoder(objects), decoder.field(objects)
    for example in range(2):
        odds = GAIN * (decoder.colour.weight @ objects[example, -1] + decoder.colour.bias)
        colour, mask = 1 / (1 + (-odds).exp()), 1 / (1 + (-field[example]).exp())
        torch.testing.assert_close(decoder.colours(objects)[example], colour)
        for channel in range(3):
            torch.testing.assert_close(images[example, channel], colour[channel] * mask)


@pytest.mark.parametrize("kind", DECODERS)
def test_the_last_role_paints_and_does_nothing_else(kind, normal):
    decoder, objects = DECODERS[kind](), normal(2, ROLES[kind], FILLER)
    painted = torch.cat([objects[:, :-1], normal(2, 1, FILLER)], 1)
    torch.testing.assert_close(decoder.field(painted), decoder.field(objects))
    assert (decoder.colours(painted) - decoder.colours(objects)).abs().max() > 0.01


def field_by_definition(decoder, obj):
    """The sum of all waves, one pixel after the other."""
    numbers = decoder.waves(obj[:2].flatten()).tolist()
    cos_x, sin_x, cos_y, sin_y = obj[2, :4].tolist()
    a_x, a_y, cutoff = atan2(sin_x, cos_x), atan2(sin_y, cos_y), decoder.cutoff
    field = torch.zeros(SIDE, SIDE, dtype=torch.float64)
    for row in range(SIDE):
        for column in range(SIDE):
            for u in range(-cutoff, cutoff + 1):
                for v in range(cutoff + 1):
                    at = 2 * ((u + cutoff) * (cutoff + 1) + v)
                    phase = 2 * pi / SIDE * (u * (row + 0.5) + v * (column + 0.5)) - u * a_y - v * a_x
                    field[row, column] += numbers[at] * cos(phase) - numbers[at + 1] * sin(phase)
    return GAIN * field + decoder.background


def test_a_field_of_waves_is_what_the_definition_says(normal):
    decoder, objects = spectrum_decoder(), normal(2, 4, FILLER)
    expected = torch.stack([field_by_definition(decoder, obj) for obj in objects])
    torch.testing.assert_close(decoder.field(objects), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("right", "down"), [(0, 0), (3, 0), (0, -2), (5, 7), (SIDE, SIDE)])
def test_waves_of_a_mask_in_the_last_bias_draw_it_anywhere(right, down, generator, normal):
    """A constructed solution: the image without the waves that are too short, rolled by whole pixels."""
    mask = (torch.rand(SIDE, SIDE, generator=generator) < 0.4).double()
    waves = spectrum(mask, 3)
    waves = torch.cat([waves[:, :1], 2 * waves[:, 1:]], 1) / SIDE**2
    decoder = spectrum_decoder()
    with torch.no_grad():
        decoder.waves[-1].weight.zero_()
        decoder.waves[-1].bias.copy_(torch.view_as_real(waves).flatten() / GAIN)
        decoder.background.fill_(-0.5)
    objects = placed(normal(2, 4, FILLER), right, down)
    expected = waves_to_image(waves, SIDE).roll((down, right), (-2, -1)) - 0.5
    torch.testing.assert_close(decoder.field(objects), expected.expand(2, -1, -1), rtol=1e-10, atol=1e-10)
    assert expected.std() > 0.1


def test_waves_of_a_mask_may_be_drawn_between_pixels(generator, normal):
    waves = spectrum(torch.rand(SIDE, SIDE, generator=generator, dtype=torch.float64), 3) / SIDE**2
    decoder = spectrum_decoder()
    with torch.no_grad():
        decoder.waves[-1].weight.zero_()
        decoder.waves[-1].bias.copy_(torch.view_as_real(waves).flatten())
    angles = 2 * pi / SIDE * torch.tensor([1.25, -2.5], dtype=torch.float64)
    expected = GAIN * waves_to_image(moved(waves, angles), SIDE) + decoder.background
    found = decoder.field(placed(normal(1, 4, FILLER), 1.25, -2.5))[0]
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def template_field_by_definition(decoder, obj):
    """Bilinear interpolation of the template of an object at one pixel after the other."""
    template = decoder.base + sum(number * grid for number, grid in zip(obj[0], decoder.templates, strict=True))
    template = (template * decoder.gain.exp()).tolist()
    scale = exp(float(decoder.scale.weight[0] @ obj[1] + decoder.scale.bias[0]))
    direction = (decoder.orientation.weight @ obj[2] + decoder.orientation.bias).tolist()
    turn = atan2(direction[1], direction[0])
    cos_x, sin_x, cos_y, sin_y = obj[3, :4].tolist()
    x, y = (atan2(*point) % (2 * pi) * SIDE / (2 * pi) for point in ((sin_x, cos_x), (sin_y, cos_y)))
    size = decoder.resolution
    field = torch.zeros(SIDE, SIDE, dtype=torch.float64)
    for row in range(SIDE):
        for column in range(SIDE):
            across, down = (column + 0.5 - x) / (scale * decoder.reach), (row + 0.5 - y) / (scale * decoder.reach)
            own = cos(turn) * across - sin(turn) * down, sin(turn) * across + cos(turn) * down
            cell = [min(max((number + 1) * (size - 1) / 2, 0), size - 1) for number in own]
            corner = [min(floor(number), size - 2) for number in cell]
            for right in (0, 1):
                for below in (0, 1):
                    weight = (1 - abs(cell[0] - corner[0] - right)) * (1 - abs(cell[1] - corner[1] - below))
                    field[row, column] += weight * template[corner[1] + below][corner[0] + right]
    return field


def test_a_field_of_templates_is_what_the_definition_says(normal):
    decoder, objects = template_decoder(), normal(3, 5, FILLER).detach()
    with torch.no_grad():
        decoder.gain.fill_(0.3)
        decoder.scale.bias.fill_(log(0.6))  # so that some pixels are beyond the border of the template
        expected = torch.stack([template_field_by_definition(decoder, obj) for obj in objects])
    torch.testing.assert_close(decoder.field(objects), expected, rtol=1e-10, atol=1e-10)


def posed(resolution, reach, side=32):
    """A decoder whose fillers say what the pose is: the logarithm of the scale, and the direction."""
    decoder = TemplateDecoder(side, 1, 4, resolution=resolution, reach=reach, dtype=torch.float64)
    with torch.no_grad():
        for layer in (decoder.orientation, decoder.scale):
            layer.weight.zero_()
            layer.bias.zero_()
        decoder.orientation.weight[:, :2] = torch.eye(2)
        decoder.scale.weight[0, 0] = 1
        decoder.templates.zero_()
    return decoder


def pose_objects(scale, turn, right, down, side=32):
    objects = torch.zeros(1, 5, 4, dtype=torch.float64)
    objects[0, 1, 0] = log(scale)
    objects[0, 2, :2] = torch.tensor([cos(turn), sin(turn)], dtype=torch.float64)
    return placed(objects, right, down, side)


def test_a_pose_is_what_fillers_say():
    pose = posed(9, 8.0).pose(pose_objects(0.7, 2.5, 30.25, 3.5))
    torch.testing.assert_close(pose.centre, torch.tensor([[30.25, 3.5]]).double())
    torch.testing.assert_close(pose.direction, torch.tensor([[cos(2.5), sin(2.5)]]).double())
    torch.testing.assert_close(pose.log_scale, torch.tensor([log(0.7)]).double())


def seen_from_the_sprite(scale, turn, right, down, side=32):
    """How far right and down each pixel is in the sprite's own frame, in pixels at scale one."""
    across = (torch.arange(side, dtype=torch.float64) + 0.5 - right) / scale
    under = (torch.arange(side, dtype=torch.float64) + 0.5 - down).unsqueeze(-1) / scale
    return cos(turn) * across - sin(turn) * under, sin(turn) * across + cos(turn) * under


POSES = [(1.0, 0.0, 16.0, 16.0), (0.6, 0.7, 14.3, 18.9), (0.8, 4.0, 11.0, 12.0), (1.2, -1.3, 20.5, 15.0)]


@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("name", ["half plane", "disc"])
def test_a_steep_template_draws_the_shape_that_it_stands_for(name, pose):
    """A constructed solution: every pixel is right whose centre is further than a cell from the outline."""
    decoder = posed(resolution=101, reach=50.0)
    line = 50 * torch.linspace(-1, 1, 101, dtype=torch.float64)

    def inside(u, v):
        """How far inside."""
        return 3.7 - 0.6 * u - 0.8 * v if name == "half plane" else 6.3 - (u.square() + v.square()).sqrt()

    with torch.no_grad():
        decoder.base.copy_(1e4 * inside(line, line.unsqueeze(-1)))
        drawn = decoder.field(pose_objects(*pose))[0].sigmoid()
    u, v = seen_from_the_sprite(*pose)
    depth = inside(u, v)
    sure = depth.abs() > 2 * 50 / 100
    assert torch.equal(drawn[sure], (depth > 0).double()[sure])
    assert sure.double().mean() > 0.8
    assert 30 < drawn[sure].sum() < 900


def test_a_half_plane_is_drawn_exactly():
    """Bilinear interpolation is exact where a template is linear."""
    decoder, pose = posed(resolution=9, reach=50.0), (0.6, 0.7, 14.3, 18.9)
    line = 50 * torch.linspace(-1, 1, 9, dtype=torch.float64)
    with torch.no_grad():
        decoder.base.copy_(3.7 - 0.6 * line - 0.8 * line.unsqueeze(-1))
    u, v = seen_from_the_sprite(*pose)
    found = decoder.field(pose_objects(*pose))[0]
    torch.testing.assert_close(found, 3.7 - 0.6 * u - 0.8 * v, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("right", "down"), [(2, 0), (0, 3), (-4, -1)])
def test_a_position_that_moves_by_whole_pixels_rolls_the_image(right, down):
    """As long as the object stays within the image, which does not wrap around."""
    decoder = posed(resolution=17, reach=8.0)
    here, there = (decoder(pose_objects(0.7, 0.9, 16.25 + k * right, 15.5 + k * down)).detach().round() for k in (0, 1))
    assert torch.equal(there, here.roll((down, right), (-2, -1)))
    assert 20 < (decoder.field(pose_objects(0.7, 0.9, 16.25, 15.5)) > 0).sum() < 100


def test_a_position_code_of_any_length_is_the_same(normal):
    decoder, objects = template_decoder(), normal(2, 5, FILLER).detach()
    longer = objects.clone()
    longer[:, 3] *= 3
    torch.testing.assert_close(decoder(longer), decoder(objects), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", DECODERS)
def test_gradients_are_those_of_differences(kind, normal):
    """Of the objects and of every parameter."""
    options = {"cutoff": 2, "hidden_dim": 4} if kind == "spectrum" else {"resolution": 5}
    decoder, objects = DECODERS[kind](**options), normal(2, ROLES[kind], FILLER)
    names, values = zip(*decoder.named_parameters(), strict=True)

    def called(objects, *parameters):
        return torch.func.functional_call(decoder, dict(zip(names, parameters, strict=True)), objects)

    assert torch.autograd.gradcheck(called, (objects, *values), fast_mode=True)
    gradients = torch.autograd.grad(decoder(objects).square().sum(), values)
    assert all(gradient.any() for gradient in gradients)


@pytest.mark.parametrize("kind", DECODERS)
def test_many_models_at_once_are_as_one_after_the_other(kind, normal):
    decoder, objects = DECODERS[kind](), normal(2, 3, ROLES[kind], FILLER)
    weights = {name: torch.stack([tensor, 0.5 * tensor]) for name, tensor in decoder.named_parameters()}
    together = torch.vmap(lambda one, objects: torch.func.functional_call(decoder, one, objects))(weights, objects)
    for run in range(2):
        one = {name: tensor[run] for name, tensor in weights.items()}
        torch.testing.assert_close(together[run], torch.func.functional_call(decoder, one, objects[run]))


@pytest.mark.parametrize("kind", DECODERS)
def test_a_device_and_a_dtype_are_those_of_all_parameters(kind):
    sizes = {"side": 64, "channels": 3, "filler_dim": 8}
    make = (
        partial(SpectrumDecoder, **sizes, num_contents=3) if kind == "spectrum" else partial(TemplateDecoder, **sizes)
    )
    for dtype, device in ((torch.float64, "cpu"), (torch.bfloat16, "meta")):
        parameters = make(device=device, dtype=dtype).parameters()
        assert {(tensor.dtype, tensor.device.type) for tensor in parameters} == {(dtype, device)}
    assert {tensor.dtype for tensor in make().parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SpectrumDecoder(0, 3, 2, 4), "side: expected at least 1, got 0"),
        (lambda: SpectrumDecoder(8, 0, 2, 4), "channels: expected at least 1, got 0"),
        (lambda: SpectrumDecoder(8, 3, 0, 4), "num_contents: expected at least 1, got 0"),
        (lambda: SpectrumDecoder(8, 3, 2, 3), "filler_dim: expected at least 4, got 3"),
        (lambda: SpectrumDecoder(8, 3, 2, 4, cutoff=4), "cutoff: expected at most 3, got 4"),
        (lambda: TemplateDecoder(0, 3, 4), "side: expected at least 1, got 0"),
        (lambda: TemplateDecoder(8, 3, 3), "filler_dim: expected at least 4, got 3"),
        (lambda: TemplateDecoder(8, 3, 4, resolution=1), "resolution: expected at least 2, got 1"),
    ],
)
def test_constructor_errors_name_the_argument(make, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        make()


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("shape", [(2, 3, FILLER), (2, 6, FILLER), (2, 5, FILLER + 1), (5, FILLER)])
def test_bad_objects_are_refused(kind, shape, as_users_run_it):
    with pytest.raises(ValueError, match=r"^objects: expected .* got shape"):
        DECODERS[kind]()(torch.ones(shape, dtype=torch.float64))
