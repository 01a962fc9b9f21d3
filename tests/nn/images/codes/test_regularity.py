"""Codes that are missing, or are there twice."""

import pytest
import torch

from tpr_attention.nn.images.codes.pose_memory import FAR, PoseMemory
from tpr_attention.nn.images.codes.regularity import complete
from tpr_attention.nn.images.decoders import TemplateDecoder

PLACES = 16 + 32 / 31 * torch.arange(32.0)


def completed(places):
    """Places across, after rows of angles and places were completed; those down stay as they are."""
    memory = PoseMemory(TemplateDecoder(side=64, channels=3, filler_dim=8))
    memory.angles[:4] = torch.tensor([0.0, 0.1, 0.2, 0.3])
    memory.places[0, : len(places)] = places
    memory.places[1, :3] = torch.tensor([0.0, 5.0, 20.0])
    before = memory.angles.clone()
    complete(memory)
    assert torch.equal(memory.angles, before)
    assert torch.equal(memory.places[1, :4], torch.tensor([0.0, 5.0, 20.0, FAR]))
    return memory.places[0, memory.places[0] < FAR]


def noisy(places):
    return places + 0.01 * torch.randn(len(places), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("lacks", "twice"), [([29], [20]), ([1], []), ([], [4]), ([30], [0, 31]), ([7, 8], [9]), ([3, 30], [])]
)
def test_places_that_lack_are_added_and_those_found_twice_dropped(lacks, twice):
    kept = [number for number in range(32) if number not in lacks]
    found = torch.cat([PLACES[kept], PLACES[twice] + 0.05]).sort().values
    torch.testing.assert_close(completed(noisy(found)), PLACES, rtol=0, atol=0.02)


@pytest.mark.parametrize(
    "places",
    [
        noisy(PLACES),  # nothing lacks
        PLACES[torch.arange(32) % 7 != 3],  # more than a tenth lacks
        torch.tensor([0.0, 1.0, 3.0]),  # as far as can be told, three codes
        torch.cat([PLACES[:10], PLACES[10:] + 0.4]),  # a row that is shifted lacks none
        torch.cat([PLACES[:20], PLACES[21:] + 0.3]),  # nor is one that is longer by another part of a step
        PLACES[:2],
    ],
)
def test_other_rows_stay_as_they_are(places):
    assert torch.equal(completed(places), places)


def test_there_are_never_more_codes_than_a_memory_has_room_for():
    places = torch.arange(64.0)
    places[-1] = 68
    assert torch.equal(completed(places), places)
