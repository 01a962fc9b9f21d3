"""Softmax attention."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor

from tpr_attention.models.recall.encoders import Encoded
from tpr_attention.models.recall.pair_memory import PairMemory

__all__ = ["RecallSoftmax"]


class RecallSoftmax(PairMemory):
    """Softmax attention of queries over pairs, which keeps all of them.

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
        """The mean of values, weighted by the softmax of scores."""
        scores = encoded.queries @ encoded.keys.mT / encoded.keys.shape[-1] ** 0.5
        read: Tensor = scores.softmax(-1) @ encoded.values
        return read
