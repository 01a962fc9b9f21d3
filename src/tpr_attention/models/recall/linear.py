"""Linear attention."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor

from tpr_attention.models.recall.encoders import Encoded
from tpr_attention.models.recall.feature_maps import deterministic_features, positive_features
from tpr_attention.models.recall.pair_memory import PairMemory

__all__ = ["RecallDPFP", "RecallLinear", "normalised_read"]

EPSILON = 1e-6


class RecallLinear(PairMemory):
    """Linear attention with the features ELU + 1, a sum of constant size.

    Args:
        encoder: How pairs become keys and values.
        width: Numbers of all heads together.
        num_heads: How many heads there are.
    """

    def __init__(
        self,
        key_fields: int,
        num_keys: int,
        num_values: int,
        encoder: Literal["published", "block", "roles", "fixed-roles"] = "block",
        width: int = 128,
        num_heads: int = 1,
    ) -> None:
        super().__init__(key_fields, num_keys, num_values, encoder, width, num_heads)

    def read(self, encoded: Encoded) -> Float[Tensor, "*batch h q v"]:
        """The mean of values, weighted by scores of features."""
        return normalised_read(positive_features(encoded.queries), positive_features(encoded.keys), encoded.values)


class RecallDPFP(PairMemory):
    """Linear attention with the features DPFP-nu, a sum of constant size.

    Args:
        encoder: How pairs become keys and values.
        width: Numbers of all heads together.
        num_heads: How many heads there are.
        nu: How many features there are for each number and sign of a key.
    """

    def __init__(
        self,
        key_fields: int,
        num_keys: int,
        num_values: int,
        encoder: Literal["published", "block", "roles", "fixed-roles"] = "published",
        width: int = 64,
        num_heads: int = 1,
        nu: int = 3,
    ) -> None:
        super().__init__(key_fields, num_keys, num_values, encoder, width, num_heads)
        if nu < 1:
            raise ValueError(f"nu: expected at least 1, got {nu}")
        self.nu = nu

    def read(self, encoded: Encoded) -> Float[Tensor, "*batch h q v"]:
        """The mean of values, weighted by scores of features."""
        queries, keys = (deterministic_features(one, self.nu) for one in (encoded.queries, encoded.keys))
        return normalised_read(queries, keys, encoded.values)


def normalised_read(
    queries: Float[Tensor, "*batch q p"], keys: Float[Tensor, "*batch t p"], values: Float[Tensor, "*batch t v"]
) -> Float[Tensor, "*batch q v"]:
    """Values weighted by scores that add up to one."""
    scores = queries @ keys.mT
    return scores / (scores.sum(-1, keepdim=True) + EPSILON) @ values
