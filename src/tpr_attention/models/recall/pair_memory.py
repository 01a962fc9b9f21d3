"""What all contestants for pairs but TPR-Attention are: an encoder, and a memory between keys and queries."""

from abc import ABC, abstractmethod
from typing import Any, Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.models.recall.encoders import Encoded, make_encoder

__all__ = ["EncoderName", "PairMemory"]

EncoderName = Literal["published", "block", "roles", "fixed-roles"]


class PairMemory(nn.Module, ABC):
    """Encodes pairs and queries, reads a memory of the pairs at each query, and answers.

    Subclasses say how a memory is read.

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
        encoder: EncoderName = "block",
        width: int = 128,
        num_heads: int = 1,
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
