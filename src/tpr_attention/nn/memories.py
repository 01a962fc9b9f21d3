"""The kinds of memory a layer may have: how objects are written, and how they are matched.

Each kind reads a whole sequence, a stretch of it, and other objects than those that ask. All take tensors in the
precision of the sum.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tpr_attention.functional.delta import recall_delta
from tpr_attention.functional.factored import expect_form, read, recall
from tpr_attention.functional.readout import READOUTS, expect_readout
from tpr_attention.functional.replace import recall_replace
from tpr_attention.functional.signature import choose, expect_number
from tpr_attention.functional.softmax_match import recall_softmax
from tpr_attention.nn.clean_up import StoredCleanUp
from tpr_attention.nn.queries import Queries

__all__ = ["Asked", "DeltaMemory", "Memory", "ReplaceMemory", "SoftmaxMatch", "SumMemory", "make_memory"]

Read = tuple[Tensor, Tensor | None]


class Asked(NamedTuple):
    """What is asked of which objects.

    Args:
        objects: The objects that are stored.
        queries: What each position asks.
        keys: The objects as they are matched, if not as they are.
        gate: How strongly each object is written.
    """

    objects: Float[Tensor, "*batch s r f"]
    queries: Queries
    keys: Float[Tensor, "*batch s r f"] | None = None
    gate: Float[Tensor, "*batch s g"] | None = None


@runtime_checkable
class Memory(Protocol):
    """How objects are written and matched."""

    reads_anywhere: bool
    """Whether it can read for some positions only, without the cost of all others."""

    def whole(self, asked: Asked, state: Tensor | None, *, causal: bool, exclude_self: bool, final_state: bool) -> Read:
        """What every object of a sequence reads, and the memory after it if it is asked for."""

    def read(self, asked: Asked, visible: Bool[Tensor, "*batch q s"] | None) -> Tensor:
        """What positions read of objects that do not ask."""


class SumMemory:
    """The paper's memory: a sum of objects, matched linearly."""

    reads_anywhere = True

    def __init__(self, form: str) -> None:
        self.form = form

    def whole(self, asked: Asked, state: Tensor | None, *, causal: bool, exclude_self: bool, final_state: bool) -> Read:
        return recall(
            asked.objects,
            *asked.queries,
            state,
            keys=asked.keys,
            gate=asked.gate,
            causal=causal,
            exclude_self=exclude_self,
            final_state=final_state,
            form=self.form,
        )

    def read(self, asked: Asked, visible: Tensor | None) -> Tensor:
        return read(asked.objects, *asked.queries, keys=asked.keys, gate=asked.gate, visible=visible)


class SoftmaxMatch:
    """Objects themselves, weighted by a softmax of their scores."""

    reads_anywhere = True

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def whole(self, asked: Asked, state: Tensor | None, *, causal: bool, exclude_self: bool, final_state: bool) -> Read:
        length = asked.objects.shape[-3]
        visible = None
        if exclude_self:
            every = torch.ones(length, length, dtype=torch.bool, device=asked.objects.device)
            visible = every.tril(-1) if causal else ~torch.eye(length, dtype=torch.bool, device=every.device)
        return self._match(asked, visible, causal=causal and not exclude_self), None

    def read(self, asked: Asked, visible: Tensor | None) -> Tensor:
        return self._match(asked, visible, causal=False)

    def _match(self, asked: Asked, visible: Tensor | None, *, causal: bool) -> Tensor:
        return recall_softmax(
            asked.objects,
            *asked.queries,
            temperature=self.temperature,
            keys=asked.keys,
            gate=asked.gate,
            visible=visible,
            causal=causal,
        )


class _Overwriting:
    """A memory in which the order of writing matters."""

    reads_anywhere = False

    def whole(self, asked: Asked, state: Tensor | None, *, causal: bool, exclude_self: bool, final_state: bool) -> Read:
        if causal:
            return self._recall(asked, state, exclude_self=exclude_self, final_state=final_state)
        return self.read(asked, None), None

    def read(self, asked: Asked, visible: Tensor | None) -> Tensor:
        """As one sequence: first the objects that are stored and ask nothing, then those that ask and do not write."""
        (match_role, match_filler, target_role), stored = asked.queries, asked.objects.shape[-3]
        asking = match_filler.shape[-4]
        gate = asked.objects.new_ones(*asked.objects.shape[:-2], 1) if asked.gate is None else asked.gate
        joined = Asked(
            _zeros_after(asked.objects, -3, asking),
            Queries(
                match_role if match_role.ndim == 3 else _zeros_before(match_role, -4, stored),
                _zeros_before(match_filler, -4, stored),
                target_role if target_role.ndim == 2 else _zeros_before(target_role, -3, stored),
            ),
            None if asked.keys is None else _zeros_after(asked.keys, -3, asking),
            _zeros_after(gate, -2, asking),
        )
        return self._recall(joined, None, exclude_self=False, final_state=False)[0][..., stored:, :, :]

    def _recall(self, asked: Asked, state: Tensor | None, *, exclude_self: bool, final_state: bool) -> Read:
        raise NotImplementedError


class DeltaMemory(_Overwriting):
    """A memory for each head that is corrected by what it answers wrongly, for fixed roles."""

    def __init__(self, form: str) -> None:
        self.form = form

    def _recall(self, asked: Asked, state: Tensor | None, *, exclude_self: bool, final_state: bool) -> Read:
        return recall_delta(
            asked.objects,
            *asked.queries,
            state,
            keys=asked.keys,
            gate=asked.gate,
            exclude_self=exclude_self,
            final_state=final_state,
            form=self.form,
        )


class ReplaceMemory(_Overwriting):
    """The paper's memory, in which an object takes the place of the one that has the same filler in the id role."""

    def __init__(self, id_role: int) -> None:
        self.id_role = id_role

    def _recall(self, asked: Asked, state: Tensor | None, *, exclude_self: bool, final_state: bool) -> Read:
        roles = torch.arange(asked.objects.shape[-2], device=asked.objects.device)
        return recall_replace(
            asked.objects,
            *asked.queries,
            (roles == self.id_role).to(asked.objects.dtype),
            state,
            gate=asked.gate,
            exclude_self=exclude_self,
            final_state=final_state,
        )


MATCHES = {"linear": "an object's weight is its score", "softmax": "weights are normalised over objects"}
WRITES = {"sum": SumMemory, "delta": DeltaMemory, "replace": ReplaceMemory}


def make_memory(
    *,
    match: str,
    write: str,
    normalise: str | None,
    temperature: float | None,
    form: str,
    id_role: int,
    usual_temperature: float,
    num_matches: int,
    unit_fillers: bool,
    clean_up: nn.Module | None,
) -> Memory:
    """Check options that exclude each other, and make the memory they describe."""
    choose("match", match, MATCHES)
    choose("write", write, WRITES)
    expect_form(form)
    expect_readout(normalise, list(READOUTS))
    if isinstance(clean_up, StoredCleanUp) and write != "sum":
        raise ValueError(f"clean_up: expected another with write={write!r}: what was overwritten is still stored")
    if match == "softmax":
        if write != "sum":
            raise ValueError(f"write: expected 'sum' with match='softmax', which keeps every object, got {write!r}")
        if normalise == "count":
            raise ValueError("normalise: expected another with match='softmax', whose weights are a mean, got 'count'")
        if form != "auto":
            raise ValueError(f"form: expected 'auto' with match='softmax', which has no other, got {form!r}")
        return SoftmaxMatch(usual_temperature if temperature is None else expect_number("temperature", temperature))
    if temperature is not None:
        raise ValueError(f"temperature: expected None with match='linear', which has none, got {temperature!r}")
    if write == "sum":
        return SumMemory(form)
    if form == "parallel" or (write == "replace" and form == "chunked"):
        raise ValueError(f"form: expected one that write={write!r} has, got {form!r}")
    if write == "delta":
        return DeltaMemory(form)
    if num_matches > 1 or unit_fillers:
        raise ValueError("write: expected 'sum' or 'delta' with several matches or unit_fillers, got 'replace'")
    return ReplaceMemory(id_role)


def _zeros_before(x: Tensor, axis: int, count: int) -> Tensor:
    return torch.cat([_zeros(x, axis, count), x], axis)


def _zeros_after(x: Tensor, axis: int, count: int) -> Tensor:
    return torch.cat([x, _zeros(x, axis, count)], axis)


def _zeros(x: Tensor, axis: int, count: int) -> Tensor:
    shape = list(x.shape)
    shape[axis] = count
    return x.new_zeros(shape)
