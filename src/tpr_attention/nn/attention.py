"""TPR-Attention over a sequence of objects (sec. 3.2, Algorithm 1)."""

from typing import NamedTuple

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.functional.factored import expect_form, recall
from tpr_attention.functional.precision import autocasts, full_precision, sum_dtype
from tpr_attention.functional.readout import READOUTS, expect_readout
from tpr_attention.functional.signature import (
    Sizes,
    expect,
    expect_alike,
    expect_bool,
    expect_generator,
    expect_parameters,
    value_of,
)
from tpr_attention.nn.initialisation import drawn, orthonormal_
from tpr_attention.nn.queries import FixedRoleQueries, LinearQueries, Queries, expect_sizes

__all__ = ["Inspection", "State", "TPRAttention"]


class State(NamedTuple):
    """What a layer remembers of the objects it has seen, and how many they were.

    A tuple of tensors: `State(**load_file(path))` reads what `save_file(state._asdict(), path)` of safetensors wrote.
    """

    memory: Float[Tensor, "*state p v"]
    length: Int[Tensor, ""]

    def detach(self) -> "State":
        """The same state without its past, for truncated backpropagation through time."""
        return State(self.memory.detach(), self.length)


class Inspection(NamedTuple):
    """What each head did, by name; see `TPRAttention.inspect`."""

    match_role: Float[Tensor, "*batch t h m r"]
    match_filler: Float[Tensor, "*batch t h m f"]
    target_role: Float[Tensor, "*batch t h r"]
    match_weights: Float[Tensor, "*batch h t s"]
    extracted: Float[Tensor, "*batch t h f"]
    mapped: Float[Tensor, "*batch t h f"]
    new_role: Float[Tensor, "h r"]
    output: Float[Tensor, "*batch t r f"]


class TPRAttention(nn.Module):
    r"""Multi-head TPR-Attention: every object asks the memory of the objects up to and including itself.

    O_out = sum_h r_n^h (x) (f_h^T H_h),    f_h = E_prop(M_obj(M_t, r_m^h, f_m^h), r_t^h)                (Algorithm 1)

    The match role, match filler and target role of every head are functions of the current object; the filler map H
    and the new role are parameters. The layer returns the update only: add it to the objects for a residual block.

    Initialisation: filler maps and new roles are orthonormal (heads write to different roles, as far as there are
    roles, and neither stretch nor shrink what they read); for the queries see `LinearQueries`.

    Args:
        num_matches: How many role-filler pairs an object has to match; more than one is a conjunction (App. C).
        causal: Whether an object sees only those up to itself, as in the paper, or the whole sequence.
        queries: Module from objects to `Queries`, with its own device and dtype; `LinearQueries` if not given.
            `FixedRoleQueries` is much cheaper.
        normalise: The memory is a sum, so read-outs grow with its length. "count" divides by the number of objects;
            "rms" and "unit" keep only the direction, with entries of mean square one or with length one. None, the
            default, is the paper's plain sum. It is kept in float32, but what is read from it leaves in the dtype of
            the layer or of autocast: in float16 everything above 65504 becomes infinite, and then NaN. In float16
            normalise; or use bfloat16, or call the layer in float32 with autocast switched off.
        form: "auto", "parallel", "chunked" or "recurrent": how to compute, never what.

    >>> layer = TPRAttention(num_roles=6, filler_dim=3, num_heads=4)
    >>> objects = torch.randn(2, 7, 6, 3)
    >>> layer(objects).shape
    torch.Size([2, 7, 6, 3])
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
        normalise: str | None = None,
        form: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = expect_sizes(num_roles, filler_dim, num_heads, num_matches)
        num_roles, filler_dim, num_heads, num_matches = sizes.values()
        expect_parameters(num_heads * filler_dim**2 + drawn(num_heads, num_roles), device, dtype, **sizes)
        expect_bool(causal=causal)
        expect_readout(normalise, list(READOUTS))
        expect_form(form)
        if queries is None:
            queries = LinearQueries(num_roles, filler_dim, num_heads, num_matches, device=device, dtype=dtype)
        elif not isinstance(queries, nn.Module):
            raise TypeError(f"queries: expected a module from objects to Queries, got {type(queries).__name__}")
        self.num_roles, self.filler_dim = num_roles, filler_dim
        self.num_heads, self.num_matches = num_heads, num_matches
        for name in ("num_roles", "filler_dim", "num_heads", "num_matches"):
            own, theirs = getattr(self, name), getattr(queries, name, None)
            if theirs not in (None, own):
                raise ValueError(f"queries: expected {name}={own} as the layer has, got {theirs}")
        self.causal, self.normalise, self.form = causal, normalise, form
        self.queries = queries
        self.filler_map = nn.Parameter(torch.empty(num_heads, filler_dim, filler_dim, device=device, dtype=dtype))
        self.new_role = nn.Parameter(torch.empty(num_heads, num_roles, device=device, dtype=dtype))
        self._reset_own_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew, but for those of a queries module of the user's own."""
        self._reset_own_parameters(generator)
        if isinstance(self.queries, LinearQueries | FixedRoleQueries):
            self.queries.reset_parameters(generator)

    def _reset_own_parameters(self, generator: torch.Generator | None = None) -> None:
        expect_generator(generator)
        orthonormal_(self.filler_map, generator)
        orthonormal_(self.new_role, generator)

    def forward(self, objects: Float[Tensor, "*batch t r f"]) -> Float[Tensor, "*batch t r f"]:
        """The update of every object of a whole sequence."""
        return self._attend(objects, None, final_state=False)[0]

    def stream(
        self, objects: Float[Tensor, "*batch t r f"], state: State | None = None
    ) -> tuple[Float[Tensor, "*batch t r f"], State]:
        """The same for a stretch of a longer sequence; the state carries what came before it."""
        if not self.causal:
            raise ValueError("causal: expected True to stream, since an object would have to see the future")
        output, memory = self._attend(objects, state, final_state=True)
        assert memory is not None
        seen = objects.shape[-3] + (0 if state is None else state.length)
        return output, State(memory, torch.as_tensor(seen, device=objects.device))

    def step(
        self, obj: Float[Tensor, "*batch r f"], state: State | None = None
    ) -> tuple[Float[Tensor, "*batch r f"], State]:
        """The same for one object."""
        expect("obj", obj, "*batch r f", {"r": self.num_roles, "f": self.filler_dim})
        output, state = self.stream(obj.unsqueeze(-3), state)
        return output.squeeze(-3), state

    @torch.no_grad()
    def inspect(self, objects: Float[Tensor, "*batch t r f"]) -> Inspection:
        """What every head asks, finds and writes, position by position.

        `match_weights[..., h, t, s]` is the weight that position t of head h gives to object s; `extracted` is what
        was read with these weights (and normalised, if the layer does), `mapped` what the filler map made of it, and
        `new_role` where it went.

        >>> layer = TPRAttention(num_roles=6, filler_dim=3, num_heads=4)
        >>> layer.inspect(torch.randn(2, 7, 6, 3)).match_weights.shape
        torch.Size([2, 4, 7, 7])
        """
        queries = self._ask(objects)
        every = objects.shape[:-2]
        match_role = queries.match_role.expand(*every, self.num_heads, self.num_matches, self.num_roles)
        target_role = queries.target_role.expand(*every, self.num_heads, self.num_roles)
        asked = (x.to(sum_dtype(objects)) for x in (match_role, objects, queries.match_filler))
        with full_precision(objects.device):
            weights = torch.einsum("...thmr,...srf,...thmf->...htsm", *asked).prod(-1)
        if self.causal:
            weights = weights.tril()
        extracted, _ = self._recall(objects, queries, None, final_state=False)
        mapped, output = self._write(extracted)
        seen = (match_role, queries.match_filler, target_role, weights, extracted, mapped, self.new_role, output)
        return Inspection(*(x.detach() for x in seen))

    def extra_repr(self) -> str:
        return (
            f"num_roles={self.num_roles}, filler_dim={self.filler_dim}, num_heads={self.num_heads}, "
            f"num_matches={self.num_matches}, causal={self.causal}, normalise={self.normalise!r}, form={self.form!r}"
        )

    def _attend(self, objects: Tensor, state: State | None, *, final_state: bool) -> tuple[Tensor, Tensor | None]:
        queries = self._ask(objects)
        if state is not None:
            _expect_state(state, objects)
        fillers, memory = self._recall(objects, queries, state, final_state=final_state)
        return self._write(fillers)[1], memory

    def _write(self, fillers: Tensor) -> tuple[Tensor, Tensor]:
        """The mapped fillers, and the sum of their bindings to the new roles."""
        mapped = einsum(fillers, self.filler_map, "... h f, h f f_out -> ... h f_out")
        return mapped, einsum(self.new_role, mapped, "h r, ... h f -> ... r f")

    def _ask(self, objects: Tensor) -> Queries:
        sizes: Sizes = {"r": self.num_roles, "f": self.filler_dim, "h": self.num_heads, "m": self.num_matches}
        expect("objects", objects, "*batch t r f", sizes)
        dtypes = not autocasts(objects.device)
        expect_alike({"filler_map": self.filler_map, "objects": objects}, dtypes=dtypes)
        queries = self.queries(objects)
        if not isinstance(queries, tuple) or len(queries) != 3:
            raise TypeError(
                f"queries: expected {type(self.queries).__name__} to return Queries(match_role, match_filler, "
                f"target_role), got {type(queries).__name__}"
            )
        for name, value, axes in zip(Queries._fields, queries, _QUERY_AXES, strict=True):
            expect(f"queries.{name}", value, axes, sizes)
        named = {f"queries.{name}": query for name, query in zip(Queries._fields, queries, strict=True)}
        expect_alike({"objects": objects, **named}, dtypes=dtypes)
        return Queries(*queries)

    def _recall(
        self, objects: Tensor, queries: Queries, state: State | None, *, final_state: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Extracted fillers, normalised while they still have the precision of the sum."""
        precise = sum_dtype(objects)
        fillers, memory = recall(
            objects.to(precise),
            queries.match_role.to(precise),
            queries.match_filler.to(precise),
            queries.target_role.to(precise),
            None if state is None else state.memory,
            causal=self.causal,
            final_state=final_state,
            form=self.form,
        )
        if self.normalise is not None:
            count = torch.arange(1, fillers.shape[-3] + 1, device=fillers.device)
            if not self.causal:
                count = count[-1:].expand_as(count)
            elif state is not None:
                count = count + state.length
            fillers = READOUTS[self.normalise](fillers, count.to(fillers.dtype))
        return fillers.to(objects.dtype), memory


def _expect_state(state: object, objects: Tensor) -> None:
    """Check what is not the memory's shape, which `recall` knows."""
    if not isinstance(state, State):
        raise TypeError(f"state: expected a State from this layer's stream or step, got {type(state).__name__}")
    if not isinstance(state.memory, Tensor):
        raise TypeError(f"state.memory: expected a tensor, got {type(state.memory).__name__}")
    length = state.length
    if not isinstance(length, Tensor):
        raise TypeError(f"state.length: expected {_LENGTH} on {objects.device}, got {length!r}")
    if length.dtype != torch.int64 or length.ndim != 0 or length.device != objects.device:
        raise TypeError(
            f"state.length: expected {_LENGTH} on {objects.device}, "
            f"got {length.dtype} with {length.ndim} axes on {length.device}"
        )
    seen = value_of(length) if length.device.type == "cpu" else None  # others would have to be waited for
    if seen is not None and not 0 <= seen <= _LONGEST - objects.shape[-3]:
        raise ValueError(f"state.length: expected 0 to {_LONGEST} objects with those to come, got {seen}")


_LENGTH = "a whole number as a torch.int64 tensor without axes"
_LONGEST = torch.iinfo(torch.int64).max
_QUERY_AXES = (("*batch t h m r", "h m r"), ("*batch t h m f",), ("*batch t h r", "h r"))
