"""Small models for sequences, each made by one line: an encoder of objects and a decoder of tokens."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tpr_attention.functional.signature import expect_positive, expect_whole
from tpr_attention.nn.attention import TPRAttention
from tpr_attention.nn.embedding import EMPTY, RoleEmbedding, shifted
from tpr_attention.nn.queries import OwnFillerQueries
from tpr_attention.nn.reading import Inspection
from tpr_attention.nn.sequence_blocks import FillerFeedForward, TPRBlock
from tpr_attention.nn.state import History, State

__all__ = ["DecoderState", "TPRDecoder", "TPREncoder"]


class DecoderState(NamedTuple):
    """The last tokens, and the state of each block."""

    tokens: Int[Tensor, "*batch s"]
    blocks: tuple[State | History, ...]

    def detach(self) -> "DecoderState":
        """The same state without its past."""
        return DecoderState(self.tokens, tuple(block.detach() for block in self.blocks))


class TPREncoder(nn.Module):
    """Blocks in which every object sees the whole sequence.

    Args:
        num_tokens: With it, the encoder takes tokens, one for each role (`RoleEmbedding`); without it, objects.
        hidden_dim, across_roles: Of the feed-forwards, see `FillerFeedForward`.
        dropout: Of the updates.
        attention: Further options of its `TPRAttention` layers, by name.

    >>> encoder = TPREncoder(num_roles=6, filler_dim=8, num_heads=4, num_layers=2, attention={"match": "softmax"})
    >>> encoder(torch.randn(2, 7, 6, 8)).shape
    torch.Size([2, 7, 6, 8])
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        num_layers: int,
        *,
        num_tokens: int | None = None,
        hidden_dim: int | None = None,
        across_roles: bool = False,
        dropout: float = 0.0,
        attention: Mapping[str, Any] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        (num_layers,) = expect_positive(num_layers=num_layers)
        self.embedding = None if num_tokens is None else RoleEmbedding(num_tokens, num_roles, filler_dim, **made)
        options: dict[str, Any] = {"causal": False, "dropout": dropout, **(attention or {}), **made}
        self.blocks = nn.ModuleList(
            TPRBlock(
                TPRAttention(num_roles, filler_dim, num_heads, **options),
                FillerFeedForward(num_roles, filler_dim, hidden_dim, across_roles=across_roles, **made),
                dropout,
            )
            for _ in range(num_layers)
        )
        self.norm = nn.RMSNorm(filler_dim, **made)

    def forward(
        self,
        inputs: Float[Tensor, "*batch t r f"] | Int[Tensor, "*batch t r"],
        *,
        mask: Bool[Tensor, "*batch t"] | None = None,
    ) -> Float[Tensor, "*batch t r f"]:
        """The objects after all blocks, with normalised fillers."""
        objects = inputs if self.embedding is None else self.embedding(inputs)
        for block in self.blocks:
            objects = block(objects, mask=mask)
        output: Tensor = self.norm(objects)
        return output

    @torch.no_grad()
    def inspect(
        self,
        inputs: Float[Tensor, "*batch t r f"] | Int[Tensor, "*batch t r"],
        *,
        mask: Bool[Tensor, "*batch t"] | None = None,
    ) -> list[Inspection]:
        """What the heads of each block do."""
        objects = inputs if self.embedding is None else self.embedding(inputs)
        seen = []
        for block in self.blocks:
            seen.append(block.inspect(objects, mask=mask))  # type: ignore[operator]
            objects = block(objects, mask=mask)
        return seen


class TPRDecoder(nn.Module):
    r"""Tokens in, logits of the next token out: a causal model that can be trained at once and run token by token.

    The roles of an object are "now", "one back", "two back", and so on. Heads of the first block start as induction
    heads: they look for earlier objects whose tokens one (two, ...) back are this one's now (one back, ...), and read
    what came then.

    Args:
        num_roles: How many tokens an object holds.
        hidden_dim, across_roles: Of the feed-forwards, see `FillerFeedForward`.
        dropout: Of the updates.
        attention: Further options of its `TPRAttention` layers, by name.

    >>> decoder = TPRDecoder(num_tokens=32, num_roles=3, filler_dim=16, num_heads=2, num_layers=2)
    >>> tokens = torch.randint(32, (4, 20))
    >>> logits = decoder(tokens)
    >>> first, state = decoder.stream(tokens[:, :12])
    >>> rest, state = decoder.stream(tokens[:, 12:], state)
    >>> torch.allclose(torch.cat([first, rest], 1), logits, atol=1e-4)
    True
    """

    def __init__(
        self,
        num_tokens: int,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        num_layers: int,
        *,
        hidden_dim: int | None = None,
        across_roles: bool = False,
        dropout: float = 0.0,
        attention: Mapping[str, Any] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.num_roles = expect_whole("num_roles", num_roles, 2)
        (num_layers,) = expect_positive(num_layers=num_layers)
        self.embedding = RoleEmbedding(num_tokens, num_roles, filler_dim, **made)
        options: dict[str, Any] = {"dropout": dropout, **(attention or {}), **made}
        matches = options.get("num_matches", 1)
        back = [[(head + match) % (num_roles - 1) for match in range(matches)] for head in range(num_heads)]
        induction = OwnFillerQueries(
            num_roles,
            filler_dim,
            num_heads,
            matches,
            match_roles=[[role + 1 for role in roles] for roles in back],
            own_roles=back,
            target_roles=[0] * num_heads,
            **made,
        )
        self.blocks = nn.ModuleList(
            TPRBlock(
                TPRAttention(
                    num_roles, filler_dim, num_heads, **({"queries": induction} | options if layer == 0 else options)
                ),
                FillerFeedForward(num_roles, filler_dim, hidden_dim, across_roles=across_roles, **made),
                dropout,
            )
            for layer in range(num_layers)
        )
        self.norm = nn.RMSNorm(filler_dim, **made)
        self.logits = nn.Linear(num_roles * filler_dim, num_tokens, **made)

    def forward(
        self, tokens: Int[Tensor, "*batch t"], *, mask: Bool[Tensor, "*batch t"] | None = None
    ) -> Float[Tensor, "*batch t v"]:
        """The logits of the token after each one."""
        objects = self.embedding(shifted(_masked(tokens, mask), self.num_roles))
        for block in self.blocks:
            objects = block(objects, mask=mask)
        return self._answer(objects)

    def stream(
        self,
        tokens: Int[Tensor, "*batch t"],
        state: DecoderState | None = None,
    ) -> tuple[Float[Tensor, "*batch t v"], DecoderState]:
        """The same for a stretch of a longer sequence."""
        line = shifted(tokens, self.num_roles, None if state is None else state.tokens)
        objects, states = self.embedding(line), []
        for number, block in enumerate(self.blocks):
            before = None if state is None else state.blocks[number]
            objects, after = block.stream(objects, before)  # type: ignore[operator]
            states.append(after)
        last = line[..., -1, : self.num_roles - 1].flip(-1)
        return self._answer(objects), DecoderState(last, tuple(states))

    @torch.no_grad()
    def inspect(
        self, tokens: Int[Tensor, "*batch t"], *, mask: Bool[Tensor, "*batch t"] | None = None
    ) -> list[Inspection]:
        """What the heads of each block do."""
        objects, seen = self.embedding(shifted(_masked(tokens, mask), self.num_roles)), []
        for block in self.blocks:
            seen.append(block.inspect(objects, mask=mask))  # type: ignore[operator]
            objects = block(objects, mask=mask)
        return seen

    def _answer(self, objects: Tensor) -> Tensor:
        logits: Tensor = self.logits(self.norm(objects).flatten(-2))
        return logits


def _masked(tokens: Tensor, mask: Tensor | None) -> Tensor:
    """Tokens that do not count are empty, also in the roles of the objects after them."""
    return tokens if mask is None else tokens.masked_fill(~mask, EMPTY)
