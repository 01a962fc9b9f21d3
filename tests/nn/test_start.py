"""How a layer starts: roles that are told or drawn, and updates of about one."""

import pytest
import torch

from tpr_attention.nn import OwnFillerQueries, TPRAttention


def test_roles_that_heads_are_told():
    queries = OwnFillerQueries(
        5, 3, 2, 2, match_roles=[[0, 1], [2, 3]], own_roles=[[1, 0], [2, 2]], target_roles=[4, 0]
    )
    layer = TPRAttention(5, 3, 2, num_matches=2, queries=queries, new_roles=[3, 3])
    objects = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0))
    for _ in range(2):
        assert queries.match_role.argmax(-1).tolist() == [[0, 1], [2, 3]]
        assert queries.target_role.argmax(-1).tolist() == [4, 0]
        assert layer.new_role.argmax(-1).tolist() == [3, 3]
        assert torch.equal(layer.filler_map, torch.eye(3).expand(2, 3, 3))
        assert torch.equal(queries(objects).match_filler[0], objects[0][torch.tensor([[1, 0], [2, 2]])])
        layer.reset_parameters(torch.Generator().manual_seed(1))


def test_drawn_roles_differ_within_a_head_and_between_heads():
    for seed in range(5):
        queries = OwnFillerQueries(5, 3, 5, 2)
        queries.reset_parameters(torch.Generator().manual_seed(seed))
        target, match = queries.target_role.argmax(-1), queries.match_role.argmax(-1)
        assert sorted(target.tolist()) == sorted(match[:, 0].tolist()) == [0, 1, 2, 3, 4]
        assert all(len({*roles, own}) == 3 for roles, own in zip(match.tolist(), target.tolist(), strict=True))


@pytest.mark.parametrize("length", [1, 32, 1024])
@pytest.mark.parametrize(("roles", "size"), [(4, 16), (8, 16), (16, 32)])
def test_updates_start_with_a_size_of_about_one(roles, size, length, generator):
    """For objects of unit variance, for every kind of layer, at every width, length and number of matches."""
    objects = torch.randn(2, length, roles, size, generator=generator)
    for options in ({}, {"num_matches": 2}, {"match": "softmax"}, {"write": "delta", "unit_fillers": True}):
        torch.manual_seed(0)
        update = TPRAttention(roles, size, num_heads=roles, **options)(objects).detach()
        assert 0.6 < update.std().item() < 1.4, options
