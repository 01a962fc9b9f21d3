"""Multi-head softmax attention with queries, tokens and answers of any width."""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.signature import expect_positive

__all__ = ["SoftmaxAttention"]


class SoftmaxAttention(nn.Module):
    """Each asking vector reads all tokens; heads are put side by side and mapped to the answer."""

    def __init__(self, asking_size: int, token_size: int, answer_size: int, num_heads: int, head_dim: int) -> None:
        super().__init__()
        expect_positive(num_heads=num_heads, head_dim=head_dim)
        self.num_heads = num_heads
        self.query = nn.Linear(asking_size, num_heads * head_dim)
        self.key = nn.Linear(token_size, num_heads * head_dim)
        self.value = nn.Linear(token_size, num_heads * head_dim)
        self.output = nn.Linear(num_heads * head_dim, answer_size)

    def forward(
        self, asking: Float[Tensor, "*batch q x"], tokens: Float[Tensor, "*batch t y"]
    ) -> Float[Tensor, "*batch q z"]:
        """What each asking vector is told."""
        query, key, value = (
            rearrange(projected, "... t (h d) -> ... h t d", h=self.num_heads)
            for projected in (self.query(asking), self.key(tokens), self.value(tokens))
        )
        # Written out: torch's own has no batching rule on the CPU, so that many models at once would run one by one.
        weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
        read = weights @ value
        answer: Tensor = self.output(rearrange(read, "... h q d -> ... q (h d)"))
        return answer
