"""Blocks for sequences of objects: attention, then a feed-forward, each added to the objects."""

from typing import Any

import torch
from einops import einsum
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tpr_attention.functional.signature import (
    expect,
    expect_bool,
    expect_generator,
    expect_number,
    expect_parameters,
    expect_positive,
)
from tpr_attention.nn.attention import TPRAttention
from tpr_attention.nn.reading import Inspection
from tpr_attention.nn.state import History, State

__all__ = ["FillerFeedForward", "TPRBlock", "WriteGate"]

OPEN = 2.0  # the logit of a gate at the start: it is nearly open, and its gradient has not vanished
WIDER = 4


class FillerFeedForward(nn.Module):
    r"""Two linear maps with a GELU between them, for each role by itself or across all roles.

    f_r <- B_r gelu(A_r f_r + a_r) + b_r

    Args:
        hidden_dim: Hidden numbers of each role; four times the filler's if not given.
        across_roles: Whether the hidden numbers of all roles see all fillers. Roles do not stay apart then.

    >>> FillerFeedForward(6, 3)(torch.randn(2, 7, 6, 3)).shape
    torch.Size([2, 7, 6, 3])
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        hidden_dim: int | None = None,
        *,
        across_roles: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"num_roles": num_roles, "filler_dim": filler_dim}
        self.num_roles, self.filler_dim = expect_positive(**sizes)
        (self.hidden_dim,) = expect_positive(hidden_dim=WIDER * self.filler_dim if hidden_dim is None else hidden_dim)
        expect_bool(across_roles=across_roles)
        self.across_roles = across_roles
        parts, factor = (1, self.num_roles) if across_roles else (self.num_roles, 1)
        width, hidden = factor * self.filler_dim, factor * self.hidden_dim
        numbers = parts * (2 * width * hidden + width + hidden)
        expect_parameters(numbers, device, dtype, **sizes, hidden_dim=self.hidden_dim)
        self.inner = nn.Parameter(torch.empty(parts, hidden, width, device=device, dtype=dtype))
        self.inner_bias = nn.Parameter(torch.empty(parts, hidden, device=device, dtype=dtype))
        self.outer = nn.Parameter(torch.empty(parts, width, hidden, device=device, dtype=dtype))
        self.outer_bias = nn.Parameter(torch.empty(parts, width, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew: numbers of variance one stay so."""
        expect_generator(generator)
        for weight in (self.inner, self.outer):
            nn.init.normal_(weight, std=weight.shape[-1] ** -0.5, generator=generator)
        for bias in (self.inner_bias, self.outer_bias):
            nn.init.zeros_(bias)

    def forward(self, objects: Float[Tensor, "*batch r f"]) -> Float[Tensor, "*batch r f"]:
        """The update of the objects."""
        expect("objects", objects, "*batch r f", {"r": self.num_roles, "f": self.filler_dim})
        parts = objects.flatten(-2).unsqueeze(-2) if self.across_roles else objects
        hidden = nn.functional.gelu(einsum(parts, self.inner, "... p f, p k f -> ... p k") + self.inner_bias)
        return (einsum(hidden, self.outer, "... p k, p f k -> ... p f") + self.outer_bias).reshape(objects.shape)

    def extra_repr(self) -> str:
        names = ("num_roles", "filler_dim", "hidden_dim", "across_roles")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)


class WriteGate(nn.Module):
    """How strongly each object is written: a sigmoid of a linear map of the object, nearly open at the start.

    Args:
        num_heads: For a gate of each head's own; one for all if not given.

    >>> WriteGate(6, 3, num_heads=4)(torch.randn(2, 7, 6, 3)).shape
    torch.Size([2, 7, 4])
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        num_heads: int | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"num_roles": num_roles, "filler_dim": filler_dim, "num_heads": 1 if num_heads is None else num_heads}
        roles, size, gates = expect_positive(**sizes)
        expect_parameters(gates * (roles * size + 1), device, dtype, **sizes)
        self.linear = nn.Linear(roles * size, gates, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Start anew: every object has the same gate."""
        expect_generator(generator)
        nn.init.zeros_(self.linear.weight)
        nn.init.constant_(self.linear.bias, OPEN)

    def forward(self, objects: Float[Tensor, "*batch t r f"]) -> Float[Tensor, "*batch t g"]:
        """Numbers from 0 to 1."""
        return torch.sigmoid(self.linear(objects.flatten(-2)))


class TPRBlock(nn.Module):
    """Attention and a feed-forward, each of objects with normalised fillers, each added to the objects.

    The norm acts on each filler by itself, so that roles stay apart.

    >>> block = TPRBlock(TPRAttention(6, 3, num_heads=4), FillerFeedForward(6, 3))
    >>> block(torch.randn(2, 7, 6, 3)).shape
    torch.Size([2, 7, 6, 3])
    """

    def __init__(self, attention: TPRAttention, feed_forward: nn.Module | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        if not isinstance(attention, TPRAttention):
            raise TypeError(f"attention: expected a TPRAttention, got {type(attention).__name__}")
        made: dict[str, Any] = {"device": attention.filler_map.device, "dtype": attention.filler_map.dtype}
        self.attention, self.feed_forward = attention, feed_forward
        self.attention_norm = nn.RMSNorm(attention.filler_dim, **made)
        self.feed_forward_norm = None if feed_forward is None else nn.RMSNorm(attention.filler_dim, **made)
        self.dropout = nn.Dropout(expect_number("dropout", dropout, most=1.0))

    def forward(
        self,
        objects: Float[Tensor, "*batch t r f"],
        *,
        mask: Bool[Tensor, "*batch s"] | None = None,
        memory: Float[Tensor, "*batch s r f"] | None = None,
    ) -> Float[Tensor, "*batch t r f"]:
        """The objects with both updates; `mask` and `memory` as in `TPRAttention`."""
        asked = None if memory is None else self.attention_norm(memory)
        return self._add(objects, self.attention(self.attention_norm(objects), mask=mask, memory=asked))

    def stream(
        self,
        objects: Float[Tensor, "*batch t r f"],
        state: State | History | None = None,
        *,
        mask: Bool[Tensor, "*batch t"] | None = None,
    ) -> tuple[Float[Tensor, "*batch t r f"], State | History]:
        """The same for a stretch of a longer sequence."""
        update, state = self.attention.stream(self.attention_norm(objects), state, mask=mask)
        return self._add(objects, update), state

    def inspect(
        self, objects: Float[Tensor, "*batch t r f"], *, mask: Bool[Tensor, "*batch t"] | None = None
    ) -> Inspection:
        """What the heads of the block's attention do."""
        return self.attention.inspect(self.attention_norm(objects), mask=mask)

    def _add(self, objects: Tensor, update: Tensor) -> Tensor:
        objects = objects + update
        if self.feed_forward is None or self.feed_forward_norm is None:
            return objects
        further: Tensor = self.dropout(self.feed_forward(self.feed_forward_norm(objects)))
        return objects + further
