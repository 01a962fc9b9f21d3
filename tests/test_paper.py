"""What the paper shows, named by its sections."""

import pytest
import torch

from tpr_attention.functional import attend, bind, extract, match, memorise, recall, superpose
from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.tasks.composition import CONDITIONS, SPLITS, dsprites_composition

COLOUR, SHAPE = torch.eye(2)
RED, YELLOW, GREEN = torch.eye(3)
CIRCLE, TRIANGLE, SQUARE = torch.eye(3)


def figure_1():
    """A red circle, a yellow triangle and a green square."""
    fillers = torch.stack(
        [torch.stack([RED, CIRCLE]), torch.stack([YELLOW, TRIANGLE]), torch.stack([GREEN, SQUARE])],
    )
    return superpose(bind(torch.eye(2).expand(3, 2, 2), fillers))


def test_figure_1_the_yellow_object_is_found_and_its_shape_read():
    objects = figure_1()
    found = match(memorise(objects), COLOUR, YELLOW)
    assert torch.equal(found, objects[1])
    assert torch.equal(extract(found, SHAPE), TRIANGLE)


def test_figure_1_without_the_memory():
    fillers, _ = recall(figure_1(), COLOUR[None, None], YELLOW.expand(3, 1, 1, 3), SHAPE[None], causal=False)
    assert torch.equal(fillers, TRIANGLE.expand(3, 1, 3))


def test_section_3_2_3_the_property_is_mapped_and_bound_to_a_new_role():
    swap = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    output = attend(memorise(figure_1()), COLOUR, YELLOW, SHAPE, swap, COLOUR)
    assert torch.equal(output, bind(COLOUR, CIRCLE))


def test_appendix_b1_scores_are_similarities_of_fillers():
    """A query between red and yellow finds both objects, each by its share."""
    query = 0.25 * RED + 0.75 * YELLOW
    objects = figure_1()
    expected = 0.25 * objects[0] + 0.75 * objects[1]
    torch.testing.assert_close(match(memorise(objects), COLOUR, query), expected)


@pytest.mark.parametrize("split", SPLITS)
def test_appendix_d_two_heads_solve_every_test_without_interaction(split):
    """Erase the acted role of the reference, write there what the transform has: zero loss, untrained."""
    task = dsprites_composition(split)
    model = build("tpr", task, num_heads=2).double()
    roles, fillers = torch.eye(5), torch.eye(3)
    weights = {
        "query_map": torch.stack([roles, roles]),
        "role_map": torch.stack([roles, roles]),
        "filler_map": torch.stack([-fillers, fillers]),
        "id_query": torch.eye(2),
    }
    model.attention.load_state_dict(weights)
    for condition in CONDITIONS:
        batch = task.draw(condition, 20_000, named_generator(0, condition), torch.float64)
        assert (model(*batch.inputs) - batch.target).square().mean() < 1e-12
