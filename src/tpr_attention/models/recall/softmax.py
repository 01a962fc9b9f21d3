"""Softmax attention."""

from jaxtyping import Float
from torch import Tensor

from tpr_attention.models.recall.encoders import Encoded
from tpr_attention.models.recall.pair_memory import PairMemory

__all__ = ["RecallSoftmax"]


class RecallSoftmax(PairMemory):
    """Softmax attention of queries over pairs, which keeps all of them."""

    def read(self, encoded: Encoded) -> Float[Tensor, "*batch h q v"]:
        """The mean of values, weighted by the softmax of scores."""
        scores = encoded.queries @ encoded.keys.mT / encoded.keys.shape[-1] ** 0.5
        read: Tensor = scores.softmax(-1) @ encoded.values
        return read
