"""The encoder against its definition, and what it is built to be blind to."""

import cmath
from math import atan2, hypot, pi

import pytest
import torch

from tpr_attention.functional.images.phases import angles_of
from tpr_attention.nn.images.encoder import LARGE, OFFSET, UnbindingEncoder

SIZES = {"side": 8, "channels": 3, "num_contents": 2, "filler_dim": 5}
POSITION, COLOUR = 2, 3


def small(dtype=torch.float32):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return UnbindingEncoder(**SIZES, cutoff=2, hidden_dim=6, dtype=dtype)


@pytest.fixture
def encoder(generator):
    """Small, in float64, with offsets that are not zero."""
    made = small(torch.float64)
    torch.nn.init.normal_(made.offset.weight, generator=generator)
    torch.nn.init.normal_(made.offset.bias, generator=generator)
    return made


@pytest.fixture
def images(generator):
    """Blobs, each of one colour whose channels add up to one."""
    mask = (torch.rand(3, 1, 8, 8, generator=generator) < 0.4).double()
    colour = torch.rand(3, 3, 1, 1, generator=generator, dtype=torch.float64)
    return mask * colour / colour.sum(1, keepdim=True)


def waves_by_definition(mask, cutoff):
    """The waves of a mask, one pixel after the other: those with v >= 0."""
    side = len(mask)
    return {
        (u, v): sum(
            mask[row][column] * cmath.exp(-2j * pi / side * (u * (row + 0.5) + v * (column + 0.5)))
            for row in range(side)
            for column in range(side)
        )
        for u in range(-cutoff, cutoff + 1)
        for v in range(cutoff + 1)
    }


def encode_by_definition(encoder, image):
    channels = image.tolist()
    side, cutoff = encoder.side, encoder.cutoff
    mask = [[sum(channel[row][column] for channel in channels) for column in range(side)] for row in range(side)]
    mass = max(1.0, sum(map(sum, mask)))
    mean = torch.tensor([sum(map(sum, channel)) / mass for channel in channels], dtype=torch.float64)
    waves = waves_by_definition(mask, cutoff)
    across, down = (-cmath.phase(waves[place]) for place in ((0, 1), (1, 0)))
    numbers = []
    for (u, v), wave in waves.items():
        centred = wave * cmath.exp(1j * (u * down + v * across)) * (1 + hypot(u, v)) / LARGE
        numbers += [centred.real, centred.imag]
    hidden = encoder.content(torch.tensor(numbers, dtype=torch.float64))
    offset = OFFSET * encoder.offset(hidden)
    angles = torch.tensor([across, down], dtype=torch.float64) + offset
    x, y = angles
    position = torch.stack([x.cos(), x.sin(), y.cos(), y.sin(), torch.zeros_like(x)])
    return torch.stack([*encoder.fillers(hidden).reshape(2, 5), position, encoder.colour(mean)])


def test_an_object_is_what_the_definition_says(encoder, images):
    expected = torch.stack([encode_by_definition(encoder, image) for image in images])
    torch.testing.assert_close(encoder(images), expected, rtol=1e-10, atol=1e-10)


def test_what_was_taken_out_can_be_looked_at(encoder, images):
    found = encoder.inspect(images)
    torch.testing.assert_close(found.mask, images.sum(1))
    torch.testing.assert_close(found.colour, images.amax((-2, -1)))
    assert torch.equal(found.objects, encoder(images))
    torch.testing.assert_close(angles_of(found.objects[:, POSITION]), wrapped(found.angles + found.offset))
    for image, content in zip(images, found.content, strict=True):
        waves = waves_by_definition(image.sum(0).tolist(), 2)
        lengths = torch.tensor([abs(wave) for wave in waves.values()], dtype=torch.float64).reshape(5, 3)
        torch.testing.assert_close(content.abs(), lengths)
    first = torch.stack([found.content[:, 2, 1], found.content[:, 3, 0]])
    torch.testing.assert_close(first.imag, torch.zeros_like(first.imag), rtol=0, atol=1e-12)  # they are at the origin
    assert (first.real > 0).all()


def wrapped(angles):
    return (angles + pi).remainder(2 * pi) - pi


@pytest.mark.parametrize(("right", "down"), [(1, 0), (0, 1), (-3, 2), (4, 4)])
def test_an_image_that_moves_changes_the_position_alone(right, down, encoder, images):
    """Across the border as well."""
    here, there = encoder(images), encoder(images.roll((down, right), (-2, -1)))
    for role in (0, 1, COLOUR):
        torch.testing.assert_close(there[:, role], here[:, role], rtol=1e-10, atol=1e-10)
    turn = angles_of(there[:, POSITION]) - angles_of(here[:, POSITION])
    expected = 2 * pi / 8 * torch.tensor([right, down], dtype=torch.float64).expand(3, 2)
    torch.testing.assert_close(wrapped(turn - expected), torch.zeros_like(turn), rtol=0, atol=1e-10)


def test_an_image_that_is_painted_changes_the_colour_alone(encoder, images, generator):
    colour = torch.rand(3, 3, 1, 1, generator=generator, dtype=torch.float64)
    painted = images.sum(1, keepdim=True) * colour / colour.sum(1, keepdim=True)
    before, after = encoder(images), encoder(painted)
    torch.testing.assert_close(after[:, :COLOUR], before[:, :COLOUR], rtol=1e-10, atol=1e-10)
    change = (after - before)[:, COLOUR]
    expected = (painted - images).amax((-2, -1)) + (painted - images).amin((-2, -1))  # one of them is zero
    torch.testing.assert_close(change, expected @ encoder.colour.weight.mT, rtol=1e-10, atol=1e-10)
    assert change.abs().amax(-1).min() > 0.01


def test_a_point_is_where_it_is(encoder):
    with torch.no_grad():
        encoder.offset.weight.zero_()
        encoder.offset.bias.zero_()
    image = torch.zeros(3, 8, 8, dtype=torch.float64)
    image[1, 2, 6] = 1.0
    x, y = angles_of(encoder(image)[POSITION]).tolist()
    assert x == pytest.approx(atan2(*reversed(point_on_circle(6.5))), abs=1e-12)
    assert y == pytest.approx(atan2(*reversed(point_on_circle(2.5))), abs=1e-12)


def point_on_circle(place):
    turned = cmath.exp(2j * pi * place / 8)
    return turned.real, turned.imag


def test_a_new_encoder_has_no_offset():
    assert not small().inspect(torch.ones(2, 3, 8, 8)).offset.any()


@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (0,)])
def test_any_batch(batch, encoder, generator):
    images = torch.rand(*batch, 3, 8, 8, generator=generator, dtype=torch.float64)
    found = encoder(images)
    assert found.shape == (*batch, 4, 5)
    assert encoder.num_roles == 4
    if found.numel():
        last = images.reshape(-1, 3, 8, 8)[-1]
        torch.testing.assert_close(found.reshape(-1, 4, 5)[-1], encoder(last), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_empty_image_has_a_finite_object_and_finite_gradients(dtype):
    encoder = small(dtype)
    images = torch.zeros(2, 3, 8, 8, dtype=dtype)
    images[1, 0, 3, 4] = 1.0
    objects = encoder(images)
    assert objects.isfinite().all()
    torch.testing.assert_close(objects[0, COLOUR], encoder.colour.bias)
    gradients = torch.autograd.grad(objects.square().sum(), list(encoder.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert all(gradient.any() for gradient in gradients[:2])


def test_gradients_of_every_parameter_are_those_of_differences(encoder, images):
    names, values = zip(*encoder.named_parameters(), strict=True)

    def called(*parameters):
        return torch.func.functional_call(encoder, dict(zip(names, parameters, strict=True)), images[:1])

    assert torch.autograd.gradcheck(called, values, fast_mode=True)


def test_many_models_at_once_are_as_one_after_the_other(encoder, images):
    weights = {name: torch.stack([tensor, 0.5 * tensor]) for name, tensor in encoder.named_parameters()}
    together = torch.vmap(lambda one: torch.func.functional_call(encoder, one, images))(weights)
    torch.testing.assert_close(together[0], encoder(images))
    half = {name: tensor[1] for name, tensor in weights.items()}
    torch.testing.assert_close(together[1], torch.func.functional_call(encoder, half, images))


def test_a_device_and_a_dtype_are_those_of_all_parameters():
    for made in (
        UnbindingEncoder(**SIZES, cutoff=2, dtype=torch.float64, device="meta"),
        UnbindingEncoder(**SIZES, cutoff=2, device="meta").double(),
    ):
        assert {(tensor.dtype, tensor.device.type) for tensor in made.parameters()} == {(torch.float64, "meta")}


def test_its_text_has_its_sizes():
    text = repr(small())
    assert text.startswith("UnbindingEncoder(\n  side=8, channels=3, num_contents=2, filler_dim=5, cutoff=2\n")


@pytest.mark.parametrize("name", SIZES)
def test_counts(name):
    least = 4 if name == "filler_dim" else 1
    with pytest.raises(ValueError, match=f"^{name}: expected at least {least}, got 0$"):
        UnbindingEncoder(**{**SIZES, name: 0}, cutoff=2)


@pytest.mark.parametrize("name", SIZES)
def test_counts_are_whole(name, as_users_run_it):
    with pytest.raises(TypeError, match=f"^{name}: expected a whole number, got 'x'$"):
        UnbindingEncoder(**{**SIZES, name: "x"}, cutoff=2)


def test_a_wave_must_fit_into_the_image():
    for cutoff in (4, 16):
        with pytest.raises(ValueError, match=f"^cutoff: expected at most 3, got {cutoff}$"):
            UnbindingEncoder(**SIZES, cutoff=cutoff)
    with pytest.raises(ValueError, match=r"^cutoff: expected at least 1, got 0$"):
        UnbindingEncoder(**SIZES, cutoff=0)


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.ones(2, 1, 8, 8), ValueError, r"images: .* got shape \[2, 1, 8, 8\]"),
        (torch.ones(2, 3, 7, 8), ValueError, r"images: .* got shape \[2, 3, 7, 8\]"),
        (torch.ones(8, 8), ValueError, r"images: .* got shape \[8, 8\]"),
        (None, TypeError, "images: expected a tensor"),
    ],
)
def test_bad_images_are_refused(images, error, message, as_users_run_it):
    with pytest.raises(error, match=message):
        small()(images)
