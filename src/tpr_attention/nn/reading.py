"""Reading a memory: one call of a layer from its objects and queries to the extracted fillers."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tpr_attention.functional.precision import full_precision, sum_dtype
from tpr_attention.functional.readout import READOUTS, to_unit_length
from tpr_attention.functional.signature import expect
from tpr_attention.nn.clean_up import StoredCleanUp
from tpr_attention.nn.memories import Asked, Memory, SoftmaxMatch
from tpr_attention.nn.queries import Queries
from tpr_attention.nn.sight import Sight, at_positions, expect_positions
from tpr_attention.nn.state import History, State

__all__ = ["Call", "Inspection", "Reader", "joined_gate"]


class Call(NamedTuple):
    """What a layer is called with.

    Args:
        asking: The objects that ask.
        stored: The objects that are asked.
        gate: How strongly each of them is written.
        sight: Who sees whom.
        answered: Which of those that ask count; None if all do.
        chosen: Positions to be chosen of the updates; None if all updates are wanted.
    """

    asking: Float[Tensor, "*batch q r f"]
    stored: Float[Tensor, "*batch s r f"]
    gate: Float[Tensor, "*batch s g"] | None
    sight: Sight
    answered: Bool[Tensor, "*batch q"] | None
    chosen: Int[Tensor, "p"] | Int[Tensor, "*batch p"] | None


class Inspection(NamedTuple):
    """What each head did, by name; see `TPRAttention.inspect`."""

    match_role: Float[Tensor, "*batch q h m r"]
    match_filler: Float[Tensor, "*batch q h m f"]
    target_role: Float[Tensor, "*batch q h r"]
    match_weights: Float[Tensor, "*batch h q s"]
    extracted: Float[Tensor, "*batch q h f"]
    mapped: Float[Tensor, "*batch q h f"]
    new_role: Float[Tensor, "h r"]
    output: Float[Tensor, "*batch q r f"]


class Reader(NamedTuple):
    """How a layer reads: its memory and the options of reading."""

    memory: Memory
    causal: bool
    exclude_self: bool
    unit_fillers: bool
    normalise: str | None

    def call(
        self,
        objects: Tensor,
        stored: Tensor,
        mask: Tensor | None,
        gate: Tensor | None,
        positions: Tensor | None,
        *,
        is_other: bool,
    ) -> Call:
        """A call in which only the objects at some positions ask, if the memory can do that."""
        places = None if positions is None else expect_positions(positions, objects)
        answered = None if is_other else mask
        if places is not None and (is_other or self.memory.reads_anywhere):
            objects = at_positions(objects, places)
            if answered is not None:
                answered = at_positions(answered[..., None, None], places)[..., 0, 0]
            chosen, here = None, None if is_other else places
        else:
            chosen, here = places, None
        sight = Sight(stored.shape[-3], self.causal, self.exclude_self, here, is_other, mask)
        return Call(objects, stored, gate, sight, answered, chosen)

    def read(self, call: Call, queries: Queries, clean_up: nn.Module | None) -> Float[Tensor, "*batch q h f"]:
        """The extracted fillers."""
        asked = self._asked(call.stored, call.gate, queries)
        if call.sight.is_whole():
            fillers, _ = self._whole(asked, None, final_state=False)
        else:
            fillers = self.memory.read(asked, call.sight.visible(call.asking.shape[-3], call.stored.device))
        return self._finish(fillers, asked, call, call.sight, clean_up, None)

    def read_on(
        self, call: Call, queries: Queries, clean_up: nn.Module | None, state: State | None
    ) -> tuple[Float[Tensor, "*batch t h f"], State]:
        """The same for a stretch of a sequence, with the memory of what came before it."""
        asked = self._asked(call.stored, call.gate, queries)
        fillers, memory = self._whole(asked, None if state is None else state.memory, final_state=True)
        assert memory is not None
        before = None if state is None else state.length
        fillers = self._finish(fillers, asked, call, call.sight, clean_up, before)
        return fillers, State(memory, _length(call, before))

    def read_history(
        self, call: Call, queries: Queries, clean_up: nn.Module | None, state: History | None
    ) -> tuple[Float[Tensor, "*batch t h f"], History]:
        """The same, with the objects that came before it."""
        objects, gate = call.stored, call.gate
        if gate is None:
            gate = objects.new_ones(*objects.shape[:-2], 1)
        if state is not None:
            objects = torch.cat([state.objects, objects], -3)
            wide = max(gate.shape[-1], state.gate.shape[-1])
            gate = torch.cat([one.expand(*one.shape[:-1], wide) for one in (state.gate, gate)], -2)
        sight = call.sight._replace(size=objects.shape[-3], causal=True)
        asked = self._asked(objects, gate, queries)
        fillers = self.memory.read(asked, sight.visible(call.asking.shape[-3], objects.device))
        before = None if state is None else state.length
        fillers = self._finish(fillers, asked, call, sight, clean_up, before)
        return fillers, History(objects, gate, _length(call, before))

    def weights(self, call: Call, queries: Queries) -> Float[Tensor, "*batch h q s"]:
        """The weight of every object for every head and position."""
        asked, every = self._asked(call.stored, call.gate, queries), call.asking.shape[:-2]
        match_role, match_filler, _ = asked.queries
        match_role = match_role.expand(*every, *match_role.shape[-3:])
        keys = asked.objects if asked.keys is None else asked.keys
        gate = None if asked.gate is None else asked.gate.movedim(-1, -2).unsqueeze(-2)
        visible = call.sight.visible(every[-1], keys.device)
        hidden = None if visible is None else ~visible.unsqueeze(-3)
        with full_precision(keys.device):
            scores = torch.einsum("...thmr,...srf,...thmf->...htsm", match_role, keys, match_filler)
            if isinstance(self.memory, SoftmaxMatch):
                scores = scores.sum(-1) / self.memory.temperature
                scores = scores if gate is None else scores + gate.log()
                scores = scores if hidden is None else scores.masked_fill(hidden, -torch.inf)
                return scores.softmax(-1).nan_to_num(0.0)  # who sees nothing gives no weight
            weights = scores.prod(-1)
            weights = weights if gate is None else weights * gate
            return weights if hidden is None else weights.masked_fill(hidden, 0)

    def _asked(self, objects: Tensor, gate: Tensor | None, queries: Queries) -> Asked:
        """In the precision of the sum, which a softmax does not need."""
        precise = objects.dtype if isinstance(self.memory, SoftmaxMatch) else sum_dtype(objects)
        objects = objects.to(precise)
        match_role, match_filler, target_role = (query.to(precise) for query in queries)
        keys = None
        if self.unit_fillers:
            keys, match_filler = to_unit_length(objects), to_unit_length(match_filler)
        gate = None if gate is None else gate.to(precise)
        return Asked(objects, Queries(match_role, match_filler, target_role), keys, gate)

    def _whole(self, asked: Asked, state: Tensor | None, *, final_state: bool) -> tuple[Tensor, Tensor | None]:
        options = {"causal": self.causal, "exclude_self": self.exclude_self, "final_state": final_state}
        return self.memory.whole(asked, state, **options)

    def _finish(
        self,
        fillers: Tensor,
        asked: Asked,
        call: Call,
        sight: Sight,
        clean_up: nn.Module | None,
        before: Tensor | None,
    ) -> Tensor:
        """Normalise while fillers still have the precision of the sum, and clean them up."""
        if self.normalise is not None:
            count = None
            if self.normalise == "count":
                count = call.sight.seen(call.asking.shape[-3], before, fillers.device).to(fillers.dtype)
            fillers = READOUTS[self.normalise](fillers, count)
        if isinstance(clean_up, StoredCleanUp):
            if asked.queries.target_role.ndim > 2:
                raise ValueError("clean_up: expected queries with fixed target roles for StoredCleanUp")
            held = torch.einsum("hr,...srf->...shf", asked.queries.target_role, asked.objects)
            visible = sight.visible(call.asking.shape[-3], fillers.device)
            fillers = clean_up(fillers, held, gate=asked.gate, visible=visible)
        fillers = fillers.to(call.stored.dtype)
        return fillers if clean_up is None or isinstance(clean_up, StoredCleanUp) else clean_up(fillers)


def _length(call: Call, before: Tensor | None) -> Int[Tensor, "*batch"]:
    """How many objects count, with those before."""
    stored, counted = call.stored, call.sight.counted
    seen = torch.full(stored.shape[:-3], stored.shape[-3], device=stored.device) if counted is None else counted.sum(-1)
    return seen if before is None else before + seen


def joined_gate(
    given: Tensor | None, own: Tensor | None, objects: Tensor, num_heads: int
) -> Float[Tensor, "*batch s g"] | None:
    """The product of a gate that was given and the layer's own, one for all heads or one for each."""
    gates = []
    for name, gate in (("gate", given), ("the layer's gate", own)):
        if gate is not None:
            if isinstance(gate, Tensor) and gate.shape == objects.shape[:-2]:
                gate = gate.unsqueeze(-1)
            sizes: dict[str, int | tuple[int, ...]] = {"batch": tuple(objects.shape[:-3]), "s": objects.shape[-3]}
            expect(name, gate, "*batch s g", sizes)
            if gate.shape[-1] not in (1, num_heads):
                wanted = f"one for each object, or one for each of {num_heads} heads"
                raise ValueError(f"{name}: expected {wanted}, got shape {list(gate.shape)}")
            gates.append(gate)
    if not gates:
        return None
    return gates[0] if len(gates) == 1 else gates[0] * gates[1]
