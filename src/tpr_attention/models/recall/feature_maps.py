"""Feature maps of keys and queries for memories that are sums."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["deterministic_features", "positive_features"]


def positive_features(x: Float[Tensor, "*batch k"]) -> Float[Tensor, "*batch k"]:
    """ELU(x) + 1 (Katharopoulos et al. 2020).

    >>> positive_features(torch.tensor([0.0, 2.0]))
    tensor([1., 3.])
    """
    return nn.functional.elu(x) + 1


def deterministic_features(x: Float[Tensor, "*batch k"], nu: int) -> Float[Tensor, "*batch features"]:
    """DPFP-nu: products of neighbouring rectified entries, 2 nu k features (Schlag et al. 2021).

    >>> deterministic_features(torch.tensor([2.0, -3.0]), 1)
    tensor([6., 0., 0., 0.])
    """
    rectified = torch.cat([x.relu(), (-x).relu()], -1)
    return torch.cat([rectified * rectified.roll(shift, -1) for shift in range(1, nu + 1)], -1)
