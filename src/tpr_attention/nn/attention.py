"""TPR-Attention over a sequence of objects (sec. 3.2, Algorithm 1)."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tpr_attention.functional.signature import (
    Sizes,
    expect,
    expect_alike,
    expect_bool,
    expect_mask,
    expect_number,
    expect_whole,
)
from tpr_attention.nn.clean_up import StoredCleanUp
from tpr_attention.nn.memories import make_memory
from tpr_attention.nn.queries import LinearQueries
from tpr_attention.nn.reading import Call, Inspection, Reader, joined_gate
from tpr_attention.nn.sequence_heads import SequenceHeads, expect_module
from tpr_attention.nn.sight import at_positions
from tpr_attention.nn.state import History, State, expect_state

__all__ = ["TPRAttention"]


class TPRAttention(SequenceHeads):
    r"""Multi-head TPR-Attention: every object asks the memory of the objects up to and including itself.

    O_out = sum_h r_n^h (x) (f_h^T H_h),    f_h = E_prop(M_obj(M_t, r_m^h, f_m^h), r_t^h)                (Algorithm 1)

    The layer returns the update only: add it to the objects for a residual block, or use `TPRBlock`.

    A head starts with a role that it matches, one that it reads and one that it writes, its own filler as what it looks
    for and the identity as its map; all is learned from there. `TPRAttention.literal` makes the paper's layer.

    Args:
        num_matches: How many role-filler pairs an object has to match; more than one is a conjunction (App. C).
        causal: Whether an object sees only those up to itself, as in the paper, or the whole sequence.
        queries: Module from objects to `Queries`, with its own device and dtype; `OwnFillerQueries` if not given.
            Those with fixed roles are much cheaper.
        match: "linear", the paper's: an object's weight is its score. "softmax": weights are normalised over objects;
            the scores of several matches are added; the state grows with the sequence.
        temperature: What scores are divided by before the softmax; by default so that random ones have variance one.
        write: "sum", the paper's. "delta": each head corrects what its memory answers for the new key, for fixed roles.
            "replace": an object takes the place of the one with the same filler in `id_role`.
        unit_fillers: Whether fillers are matched by their direction only. By default so if there are several matches.
        exclude_self: Whether an object does not see itself.
        gate: Module from objects to how strongly each is written, `[*batch t g]`: one gate or one for each head.
        clean_up: Module that cleans extracted fillers: `CleanUp` with the heads as its roles, or `StoredCleanUp`.
        normalise: The memory is a sum, so read-outs grow with its length. "rms" and "unit" keep only the direction,
            with entries of mean square one or with length one; "count" divides by the number of objects; None is the
            paper's plain sum. It is kept in float32, but what is read from it leaves in the dtype of the layer or of
            autocast: in float16 everything above 65504 becomes infinite, and then NaN.
        new_roles: The role that each head writes, by number; drawn if not given.
        start: "roles" as above, or "orthonormal": filler maps and new roles are random and orthonormal.
        dropout: Share of the update that is dropped in training.
        form: "auto", "parallel", "chunked" or "recurrent": how to compute, never what.

    >>> layer = TPRAttention(num_roles=6, filler_dim=3, num_heads=4)
    >>> objects = torch.randn(2, 7, 6, 3)
    >>> layer(objects).shape
    torch.Size([2, 7, 6, 3])
    >>> layer(objects, positions=torch.tensor([-1])).shape  # only what the last object reads
    torch.Size([2, 1, 6, 3])
    >>> first, state = layer.stream(objects[:, :4])
    >>> rest, state = layer.stream(objects[:, 4:], state)
    >>> torch.allclose(torch.cat([first, rest], 1), layer(objects), atol=1e-5)
    True
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        *,
        num_matches: int = 1,
        causal: bool = True,
        queries: nn.Module | None = None,
        match: str = "linear",
        temperature: float | None = None,
        write: str = "sum",
        id_role: int = 0,
        unit_fillers: bool | None = None,
        exclude_self: bool = False,
        gate: nn.Module | None = None,
        clean_up: nn.Module | None = None,
        normalise: str | None = "rms",
        new_roles: Sequence[int] | None = None,
        start: str = "roles",
        dropout: float = 0.0,
        form: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(num_roles, filler_dim, num_heads, num_matches, queries, new_roles, start, device, dtype)
        unit_fillers = self.num_matches > 1 if unit_fillers is None else unit_fillers
        expect_bool(causal=causal, exclude_self=exclude_self, unit_fillers=unit_fillers)
        expect_module("gate", gate, "from objects to numbers from 0 to 1")
        expect_module("clean_up", clean_up, "from fillers to fillers")
        self.causal, self.exclude_self, self.unit_fillers = causal, exclude_self, unit_fillers
        self.match, self.write, self.normalise, self.form = match, write, normalise, form
        self.dropout = expect_number("dropout", dropout, most=1.0)
        self.gate, self.clean_up = gate, clean_up
        if not causal and write != "sum" and exclude_self:
            raise ValueError(f"exclude_self: expected False with causal=False and write={write!r}, got True")
        memory = make_memory(
            match=match,
            write=write,
            normalise=normalise,
            temperature=temperature,
            form=form,
            id_role=expect_whole("id_role", id_role, 0, self.num_roles - 1),
            usual_temperature=self.filler_dim ** (-0.5 if unit_fillers else 0.5),
            num_matches=self.num_matches,
            unit_fillers=unit_fillers,
            clean_up=clean_up,
        )
        self._reader = Reader(memory, causal, exclude_self, unit_fillers, normalise)

    @classmethod
    def literal(
        cls,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        *,
        num_matches: int = 1,
        causal: bool = True,
        normalise: str | None = None,
        form: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> "TPRAttention":
        """The paper's layer: all queries are linear in the object, the memory is a plain sum, nothing is normalised.

        Filler maps and new roles start random and orthonormal; for the queries see `LinearQueries`.

        >>> TPRAttention.literal(6, 3, num_heads=4)(torch.randn(7, 6, 3)).shape
        torch.Size([7, 6, 3])
        """
        return cls(
            num_roles,
            filler_dim,
            num_heads,
            num_matches=num_matches,
            causal=causal,
            queries=LinearQueries(num_roles, filler_dim, num_heads, num_matches, device=device, dtype=dtype),
            unit_fillers=False,
            normalise=normalise,
            start="orthonormal",
            form=form,
            device=device,
            dtype=dtype,
        )

    def forward(
        self,
        objects: Float[Tensor, "*batch t r f"],
        *,
        mask: Bool[Tensor, "*batch s"] | None = None,
        gate: Float[Tensor, "*batch s"] | Float[Tensor, "*batch s g"] | None = None,
        memory: Float[Tensor, "*batch s r f"] | None = None,
        positions: Int[Tensor, "q"] | Int[Tensor, "*batch q"] | None = None,
    ) -> Float[Tensor, "*batch q r f"]:
        """The update of every object of a whole sequence.

        Args:
            mask: True for objects that count; others are as if they were not there, and have no update.
            gate: How strongly each object is written, from 0 (it only asks) to 1; one for all heads or one for each.
            memory: Objects of another sequence, to be read in place of these; mask and gate are theirs then.
            positions: Where updates are wanted, if not everywhere; negative ones count from the end.
        """
        call = self._call(objects, mask, gate, memory, positions)
        output = self._update(self._reader.read(call, self.ask(call.asking), self.clean_up), call)[1]
        return output if call.chosen is None else at_positions(output, call.chosen)

    def stream(
        self,
        objects: Float[Tensor, "*batch t r f"],
        state: State | History | None = None,
        *,
        mask: Bool[Tensor, "*batch t"] | None = None,
        gate: Float[Tensor, "*batch t"] | Float[Tensor, "*batch t g"] | None = None,
    ) -> tuple[Float[Tensor, "*batch t r f"], State | History]:
        """The same for a stretch of a longer sequence; the state carries what came before it."""
        if not self.causal:
            raise ValueError("causal: expected True to stream, since an object would have to see the future")
        call = self._call(objects, mask, gate, None, None)
        queries = self.ask(call.asking)
        if state is not None:
            expect_state(state, History if self._keeps_objects() else State, objects)
        read_on = self._reader.read_history if self._keeps_objects() else self._reader.read_on
        fillers, after = read_on(call, queries, self.clean_up, state)  # type: ignore[arg-type]
        return self._update(fillers, call)[1], after

    def step(
        self, obj: Float[Tensor, "*batch r f"], state: State | History | None = None
    ) -> tuple[Float[Tensor, "*batch r f"], State | History]:
        """The same for one object."""
        expect("obj", obj, "*batch r f", {"r": self.num_roles, "f": self.filler_dim})
        output, state = self.stream(obj.unsqueeze(-3), state)
        return output.squeeze(-3), state

    def unroll(
        self, obj: Float[Tensor, "*batch r f"], steps: int, state: State | History | None = None
    ) -> tuple[Float[Tensor, "*batch t r f"], State | History]:
        """The other reading of Algorithm 1: each output is the next object (decision 0006).

        Returns the `steps` outputs, and the state after them. `inspect` shows the way they came about: it takes the
        objects that asked, which are the first one and all outputs but the last.

        >>> layer, obj = TPRAttention(6, 3, num_heads=4), torch.randn(6, 3)
        >>> outputs, state = layer.unroll(obj, 5)
        >>> asked = torch.cat([obj[None], outputs[:-1]])
        >>> torch.allclose(layer.inspect(asked).output, outputs, atol=1e-5)
        True
        """
        outputs = []
        for _ in range(expect_whole("steps", steps, 1)):
            obj, state = self.step(obj, state)
            outputs.append(obj)
        assert state is not None
        return torch.stack(outputs, -3), state

    @torch.no_grad()
    def inspect(
        self,
        objects: Float[Tensor, "*batch t r f"],
        *,
        mask: Bool[Tensor, "*batch s"] | None = None,
        gate: Float[Tensor, "*batch s"] | Float[Tensor, "*batch s g"] | None = None,
        memory: Float[Tensor, "*batch s r f"] | None = None,
    ) -> Inspection:
        """What every head asks, finds and writes, position by position.

        `match_weights[..., h, t, s]` is the weight that position t of head h gives to object s as it was written,
        before later ones overwrote it; `extracted` is what was read, normalised and cleaned; `mapped` what the filler
        map made of it, and `new_role` where it went.

        >>> layer = TPRAttention(num_roles=6, filler_dim=3, num_heads=4)
        >>> layer.inspect(torch.randn(2, 7, 6, 3)).match_weights.shape
        torch.Size([2, 4, 7, 7])
        """
        call = self._call(objects, mask, gate, memory, None)
        queries = self.ask(call.asking)
        every = objects.shape[:-2]
        match_role = queries.match_role.expand(*every, self.num_heads, self.num_matches, self.num_roles)
        target_role = queries.target_role.expand(*every, self.num_heads, self.num_roles)
        weights = self._reader.weights(call, queries)
        extracted = self._reader.read(call, queries, self.clean_up)
        mapped, output = self._update(extracted, call)
        seen = (match_role, queries.match_filler, target_role, weights, extracted, mapped, self.new_role, output)
        return Inspection(*(x.detach() for x in seen))

    def extra_repr(self) -> str:
        shown = ("num_roles", "filler_dim", "num_heads", "num_matches", "causal", "match", "write", "unit_fillers")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in (*shown, "exclude_self", "normalise", "form"))

    def _keeps_objects(self) -> bool:
        """Whether a state has to hold the objects themselves."""
        return self.match == "softmax" or isinstance(self.clean_up, StoredCleanUp)

    def _call(
        self,
        objects: Tensor,
        mask: Tensor | None,
        gate: Tensor | None,
        memory: Tensor | None,
        positions: Tensor | None,
    ) -> Call:
        """Check what the layer is called with, and bring it into one form."""
        sizes: Sizes = {"r": self.num_roles, "f": self.filler_dim}
        expect("objects", objects, "*batch t r f", sizes)
        stored = objects
        if memory is not None:
            expect("memory", memory, "*batch s r f", sizes)
            expect_alike({"objects": objects, "memory": memory})
            stored = memory
        if mask is not None:
            expect_mask("mask", mask, "*batch t" if memory is None else "*batch s", sizes)
            stored = stored.masked_fill(~mask[..., None, None], 0)  # also where they are not finite
            objects = stored if memory is None else objects
        gate = joined_gate(gate, None if self.gate is None else self.gate(stored), stored, self.num_heads)
        if mask is not None and self._keeps_objects():
            counts = mask.unsqueeze(-1).to(stored.dtype)
            gate = counts if gate is None else gate * counts
        return self._reader.call(objects, stored, mask, gate, positions, is_other=memory is not None)

    def _update(self, fillers: Tensor, call: Call) -> tuple[Tensor, Tensor]:
        """The mapped fillers, and the update of the objects that count."""
        mapped, output = self.bind(fillers)
        if self.dropout > 0:
            output = nn.functional.dropout(output, self.dropout, self.training)
        if call.answered is not None:
            output = output.masked_fill(~call.answered[..., None, None], 0)
        return mapped, output
