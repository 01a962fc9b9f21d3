"""A memory that several tests look at; none may change it."""

import pytest
import torch

from tpr_attention.nn.images.codes.pose_memory import PoseMemory

from .known_codes import drawn_codes, made_of, readable_decoder


@pytest.fixture(scope="package")
def found():
    """A memory that has found the codes of 600 objects, what it found them in, and what they were made of."""
    generator = torch.Generator().manual_seed(0)
    decoder = readable_decoder()
    codes = drawn_codes(600, generator)
    objects = made_of(codes, 0.003, generator)
    memory = PoseMemory(decoder, resolution=129)
    memory.find(objects, decoder, generator)
    return memory, decoder, objects, codes
