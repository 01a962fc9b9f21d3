"""What decoders bound on the way can be looked at, and composes to the images that they draw."""

import pytest
import torch
import torch.nn.functional as F

from tpr_attention.functional.images.phases import angles_of, moved, waves_to_image
from tpr_attention.nn import BoundTemplate, BoundWaves
from tpr_attention.nn.images.decoders import GAIN
from tpr_attention.nn.images.poses import own_frame

from .test_decoders import DECODERS, FILLER, ROLES, SIDE, spectrum_decoder, template_decoder


@pytest.mark.parametrize("kind", DECODERS)
def test_images_are_outer_products_of_colours_and_masks(kind, normal):
    decoder, objects = DECODERS[kind](), normal(3, ROLES[kind], FILLER)
    found = decoder.inspect(objects)
    assert isinstance(found, {"spectrum": BoundWaves, "template": BoundTemplate}[kind])
    assert torch.equal(found.images, decoder(objects))
    torch.testing.assert_close(found.images, torch.einsum("bc,bhw->bchw", found.colour, found.field.sigmoid()))
    assert torch.equal(found.colour, decoder.colours(objects))
    assert torch.equal(found.field, decoder.field(objects))
    assert found.field.std() > 0.01


def test_a_field_of_waves_is_what_the_content_draws_moved_by_the_angles(normal):
    decoder, objects = spectrum_decoder(), normal(3, 4, FILLER)
    found = decoder.inspect(objects)
    torch.testing.assert_close(found.angles, angles_of(objects[:, 2]))
    drawn = waves_to_image(moved(found.waves, found.angles), SIDE)
    torch.testing.assert_close(found.field, GAIN * drawn + decoder.background)
    at_origin = GAIN * waves_to_image(found.waves, SIDE) + decoder.background
    assert (found.field - at_origin).abs().max() > 0.01


def test_a_field_of_a_template_is_the_template_in_the_frame_of_the_pose(normal):
    decoder, objects = template_decoder(), normal(3, 5, FILLER)
    found = decoder.inspect(objects)
    assert torch.equal(found.template, decoder.template(objects[:, 0]))
    for part, expected in zip(found.pose, decoder.pose(objects), strict=True):
        assert torch.equal(part, expected)
    cells = own_frame(found.pose, SIDE, decoder.reach)
    read = F.grid_sample(found.template.unsqueeze(1), cells, padding_mode="border", align_corners=True)
    torch.testing.assert_close(found.field, read.squeeze(1))


@pytest.mark.parametrize("kind", DECODERS)
def test_each_part_is_of_its_own_roles(kind, normal):
    """Another position changes neither the colour nor what the content draws, and another content not the place."""
    decoder, objects = DECODERS[kind](), normal(2, ROLES[kind], FILLER)
    elsewhere = torch.cat([objects[:, :-2], normal(2, 1, FILLER), objects[:, -1:]], 1)
    other = torch.cat([normal(2, 1, FILLER), objects[:, 1:]], 1)
    here, there, changed = (decoder.inspect(some) for some in (objects, elsewhere, other))
    place = (lambda bound: bound.angles) if kind == "spectrum" else (lambda bound: bound.pose.centre)
    assert torch.equal(there.colour, here.colour)
    assert torch.equal(there[1], here[1])  # the waves, or the template
    assert (place(there) - place(here)).abs().min() > 0.001
    assert torch.equal(place(changed), place(here))
    assert (changed[1] - here[1]).abs().max() > 0.001


@pytest.mark.parametrize("kind", DECODERS)
def test_gradients_pass_through_every_part(kind, normal):
    decoder, objects = DECODERS[kind](), normal(2, ROLES[kind], FILLER)
    found = decoder.inspect(objects)
    for part in (found.colour, found[1], found.field, found.images):
        (gradient,) = torch.autograd.grad(part.abs().sum(), objects, retain_graph=True)
        assert gradient.any()


@pytest.mark.parametrize("kind", DECODERS)
def test_bad_objects_are_refused(kind, as_users_run_it):
    with pytest.raises(ValueError, match=r"^objects: expected .* got shape"):
        DECODERS[kind]().inspect(torch.ones(2, 6, FILLER, dtype=torch.float64))
