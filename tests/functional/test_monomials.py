"""The packed feature maps of conjunctions."""

from itertools import combinations_with_replacement

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tpr_attention.functional.monomials import key_features, num_features, query_features


@given(size=st.integers(1, 6), matches=st.integers(1, 4), shared=st.booleans(), seed=st.integers(0, 2**31))
def test_the_inner_product_of_features_is_the_product_of_scores(size, matches, shared, seed):
    g = torch.Generator().manual_seed(seed)
    query = torch.randn(2, matches, size, generator=g, dtype=torch.float64)
    key = torch.randn(2, 1 if shared else matches, size, generator=g, dtype=torch.float64)
    shared = shared or matches == 1
    features = query_features(query, shared_key=shared), key_features(key, matches)
    assert features[0].shape == (2, num_features(size, matches, shared_key=shared))
    torch.testing.assert_close((features[0] * features[1]).sum(-1), (query * key).sum(-1).prod(-1))


@pytest.mark.parametrize(("size", "degree"), [(1, 3), (4, 2), (3, 4)])
def test_every_monomial_appears_once(size, degree):
    key = torch.tensor([2.0, 3.0, 5.0, 7.0], dtype=torch.float64)[:size]
    expected = [key[list(index)].prod() for index in combinations_with_replacement(range(size), degree)]
    torch.testing.assert_close(key_features(key[None], degree), torch.stack(expected))
