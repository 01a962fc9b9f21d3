"""What all contestants for pairs but TPR-Attention are: an encoder, and a memory between keys and queries."""

from abc import ABC, abstractmethod
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.models.recall.encoders import Encoded, make_encoder

__all__ = ["PairMemory"]


class PairMemory(nn.Module, ABC):
    """Encodes pairs and queries, reads a memory of the pairs at each query, and answers.

    Subclasses say how a memory is read.
    """

    def __init__(
        self, key_fields: int, num_keys: int, num_values: int, encoder: str, width: int, num_heads: int
    ) -> None:
        super().__init__()
        self.encoder: Any = make_encoder(encoder, key_fields, num_keys, num_values, width, num_heads)

    def forward(
        self, pairs: Int[Tensor, "*batch t c_and_value"], queries: Int[Tensor, "*batch q c"]
    ) -> Float[Tensor, "*batch q n"]:
        """An entry for each value, for each query."""
        encoded: Encoded = self.encoder(pairs, queries)
        answer: Tensor = self.encoder.answer(self.read(encoded), encoded)
        return answer

    @abstractmethod
    def read(self, encoded: Encoded) -> Float[Tensor, "*batch h q v"]:
        """What each head reads at each query."""
