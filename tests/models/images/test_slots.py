"""Slot attention with one slot for each role."""

import pytest
import torch

from tpr_attention.models.images.parts import ENCODERS
from tpr_attention.models.images.slots import LEAST, ROUNDS, SlotEncoder

from .cases import seeded


def test_slots_share_every_place_out_among_themselves(normal):
    """Against the definition, one image, place and slot after the other."""
    encoder, images = seeded(SlotEncoder, 16, 2, 3, 4).double(), normal(2, 2, 16, 16)
    objects = encoder(images)
    for image, found in zip(images, objects, strict=True):
        features = encoder.features(image[None])[0]
        assert features.shape[1:] == (2, 2)
        given = [
            encoder.given(features[:, y, x] + encoder.places(torch.tensor([2.0 * x - 1, 2.0 * y - 1]).double()))
            for y in range(2)
            for x in range(2)
        ]
        keys, values = zip(*(encoder.keys_and_values(one).chunk(2) for one in given), strict=True)
        slots = list(encoder.slots)
        for _ in range(ROUNDS):
            queries = [encoder.queries(slot) for slot in slots]
            shares = [torch.stack([key @ query / 8 for query in queries]).softmax(0) + LEAST for key in keys]
            for number, slot in enumerate(slots):
                weights = torch.stack([share[number] for share in shares])
                read = sum(weight / weights.sum() * value for weight, value in zip(weights, values, strict=True))
                updated = encoder.update(read[None], slot[None])[0]
                slots[number] = updated + encoder.feed_forward(updated)
        expected = [slot @ matrix for slot, matrix in zip(slots, encoder.filler_map, strict=True)]
        torch.testing.assert_close(found, torch.stack(expected) + encoder.fillers)


def test_every_place_and_slot_counts(normal):
    encoder, images = seeded(SlotEncoder, 16, 2, 3, 4).double(), normal(1, 2, 16, 16).requires_grad_()
    objects = encoder(images)
    for role in range(3):
        (gradient,) = torch.autograd.grad(objects[0, role].sum(), images, retain_graph=True)
        assert (gradient.abs().amax(1) > 0).all()


@pytest.mark.parametrize("name", ["convolution", "slots"])
def test_an_encoder_starts_at_an_object(name, normal):
    """What is read of an image is that object, and what the image adds."""
    encoder, obj, images = seeded(ENCODERS[name], 32, 3, 5, 6).double(), normal(5, 6), normal(2, 3, 32, 32)
    encoder.start_at(torch.zeros(5, 6).double())
    free = encoder(images)
    encoder.start_at(obj)
    torch.testing.assert_close(encoder(images), free + obj)
