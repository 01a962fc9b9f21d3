r"""Match and extract over a whole sequence without building the memory of each position.

For every position t and head h, `recall` computes what `extract(match(M_t, r_m, f_m), r_t)` defines:

    f_th = sum_{s <= t} [ prod_m (r_m^T O_s f_m) ] r_t^T O_s,    s over the whole sequence if not causal     (App. B, C)

Without a softmax this is linear attention. Key and value are the object itself, the query is role (x) filler, and all
heads share one memory. Three forms give the same numbers, and `recall` takes the
cheaper of the first two unless told otherwise:

- "parallel": all scores at once, then a weighted sum; T^2 work, best for short sequences;
- "chunked": scores inside chunks, a memory between them; linear in T with a state of constant size;
- "recurrent": one object after another, the plainest statement of the recurrence.

Roles given once for each head instead of at each position (`[h m r]`, `[h r]`) shrink key
and value to the filler: the memory of a head then has f^(m+1) entries instead of (r f)^(m+1).

Sums are kept in float32, or in float64 for float64 inputs: a bfloat16 running sum stalls at 256 equal objects.
"""

from math import prod

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tpr_attention.functional.forms import (
    FORMS,
    cheapest,
    cheapest_read,
    memory_after,
    read_memory,
    read_objects,
)
from tpr_attention.functional.layout import Reading, by_head, by_sequence
from tpr_attention.functional.monomials import MOST_MATCHES, num_features
from tpr_attention.functional.precision import full_precision, sum_dtype
from tpr_attention.functional.signature import (
    checked,
    expect_alike,
    expect_bool,
    expect_positive,
    expect_room,
    expect_some,
    expect_whole,
)

__all__ = ["FORMS", "expect_form", "read", "recall", "state_shape"]

MatchRole = Float[Tensor, "*batch t h m r"] | Float[Tensor, "h m r"]
TargetRole = Float[Tensor, "*batch t h r"] | Float[Tensor, "h r"]
Recalled = tuple[Float[Tensor, "*batch t h f"], Float[Tensor, "*state p v"] | None]

_LARGE = 10**8  # a memory of more numbers than that might not fit


def state_shape(num_roles: int, filler_dim: int, *, num_matches: int = 1, heads: int | None = None) -> tuple[int, ...]:
    """Shape of the state of one sequence; `heads` where roles are given once for each head.

    With one match and roles that vary, this is the paper's memory with its axes r, f joined on both sides.

    >>> state_shape(6, 3), state_shape(6, 3, num_matches=2), state_shape(6, 3, heads=4)
    ((18, 18), (171, 18), (4, 3, 3))
    """
    num_roles, filler_dim = expect_positive(num_roles=num_roles, filler_dim=filler_dim)
    num_matches = expect_whole("num_matches", num_matches, 1, MOST_MATCHES)
    return _state_shape(num_roles, filler_dim, num_matches, *(() if heads is None else expect_positive(heads=heads)))


def _state_shape(num_roles: int, filler_dim: int, num_matches: int, heads: int | None = None) -> tuple[int, ...]:
    width = num_roles * filler_dim if heads is None else filler_dim
    features = num_features(width, num_matches, shared_key=heads is None)
    return (features, width) if heads is None else (heads, features, width)


@checked
def recall(
    objects: Float[Tensor, "*batch t r f"],
    match_role: MatchRole,
    match_filler: Float[Tensor, "*batch t h m f"],
    target_role: TargetRole,
    state: Float[Tensor, "*state p v"] | None = None,
    *,
    keys: Float[Tensor, "*batch t r f"] | None = None,
    gate: Float[Tensor, "*batch t g"] | None = None,
    causal: bool = True,
    exclude_self: bool = False,
    final_state: bool = True,
    form: str = "auto",
) -> Recalled:
    r"""Match and extract at every position of a sequence.

    E_prop(M_obj(M_t, r_m, f_m), r_t),    M_t = state + sum_{s <= t} g_s K_s (x) O_s                    (App. B, C)

    In the paper the objects are their own keys, K = O, and every object is written, g = 1.

    Args:
        match_role: One role for each of the m matches of each head, or `[h m r]` where it is the same everywhere.
        match_filler: The filler to find in that role; an object counts as the product of its m scores.
        target_role: The role to read, or `[h r]` where it is the same everywhere.
        state: The memory of the objects that came before, as an earlier call returned it.
        keys: The objects as they are matched, if not as they are read: with fillers of unit length, for example.
        gate: How strongly each object is written; one number for all heads (g = 1), or for roles `[h m r]` and `[h r]`
            also one for each. An object of gate zero is as good as absent: so padding is written.
        causal: Position t sees the objects up to and including t; otherwise all of them.
        exclude_self: Position t does not see the object at t.
        final_state: Also return the memory after the last object (None otherwise, which can save work).
        form: "auto" for the cheaper of "parallel" and "chunked", or one of these or "recurrent". All give the same.

    >>> red, yellow = torch.eye(2)
    >>> objects = torch.stack([torch.stack([red, red]), torch.stack([yellow, red])])
    >>> colour, shape = torch.eye(2)
    >>> fillers, state = recall(objects, colour[None, None], yellow.expand(2, 1, 1, 2), shape[None])
    >>> fillers[:, 0]  # nothing yellow at first, then one whose shape is the first
    tensor([[0., 0.],
            [1., 0.]])
    """
    expect_form(form)
    expect_bool(causal=causal, exclude_self=exclude_self, final_state=final_state)
    fixed = _expect_readable("t", objects, match_role, match_filler, target_role, keys, gate)
    batch, (length, roles, filler_dim) = objects.shape[:-3], objects.shape[-3:]
    heads, matches = match_filler.shape[-3:-1]
    precise = sum_dtype(objects)
    each = _state_shape(roles, filler_dim, matches, heads if fixed else None)
    if (final_state or form in ("chunked", "recurrent")) and prod(each) > _LARGE:
        expect_room(prod(each), objects.device, precise, num_roles=roles, filler_dim=filler_dim, num_matches=matches)
    shape = (*batch, *each)
    if state is not None and (tuple(state.shape) != shape or state.dtype != precise or state.device != objects.device):
        raise ValueError(
            f"state: expected {precise} on {objects.device} of shape {list(shape)} for these objects and queries, "
            f"got {state.dtype} on {state.device} of shape {list(state.shape)}"
        )
    if 0 in batch:  # no sequence: an empty answer, of which every input still has a gradient
        nothing = _nothing(objects, match_role, target_role, keys, gate)
        empty = objects.new_zeros(shape, dtype=precise) + nothing if final_state else None
        return match_filler.sum(-2) + nothing, empty
    with full_precision(objects.device):
        reading = _reading(fixed, objects, match_role, match_filler, target_role, keys, gate, state)
        compute = FORMS[cheapest(reading, causal, final_state) if form == "auto" else form]
        fillers, after = compute(reading, causal, exclude_self, final_state)
    found = _by_position(fillers, fixed, (*batch, length, heads, filler_dim)).to(objects.dtype)
    return found, after.reshape(shape) if final_state and after is not None else None


@checked
def read(
    objects: Float[Tensor, "*batch s r f"],
    match_role: Float[Tensor, "*batch q h m r"] | Float[Tensor, "h m r"],
    match_filler: Float[Tensor, "*batch q h m f"],
    target_role: Float[Tensor, "*batch q h r"] | Float[Tensor, "h r"],
    *,
    keys: Float[Tensor, "*batch s r f"] | None = None,
    gate: Float[Tensor, "*batch s g"] | None = None,
    visible: Bool[Tensor, "*batch q s"] | Bool[Tensor, "q s"] | None = None,
) -> Float[Tensor, "*batch q h f"]:
    r"""Match and extract at q positions from a memory of s objects, which need not be at these positions.

    f_qh = sum_s g_s [ prod_m (r_m^T K_s f_m) ] r_t^T O_s,    s over the objects that q sees               (App. B, C)

    A few positions of a long sequence are read in the time that these few take; and objects of another sequence can
    be read (cross attention).

    Args:
        keys: As in `recall`.
        gate: As in `recall`.
        visible: Which objects each position sees; all of them if not given.

    >>> red, yellow = torch.eye(2)
    >>> objects = torch.stack([torch.stack([red, red]), torch.stack([yellow, red])])
    >>> colour, shape = torch.eye(2)
    >>> read(objects, colour[None, None], yellow.expand(1, 1, 1, 2), shape[None])[0, 0]
    tensor([1., 0.])
    """
    fixed = _expect_readable("s", objects, match_role, match_filler, target_role, keys, gate)
    every, heads, filler_dim = match_filler.shape[:-3], match_filler.shape[-3], objects.shape[-1]
    if visible is not None and visible.device != objects.device:
        raise TypeError(f"visible: expected torch.bool on {objects.device} as objects has, got {visible.device}")
    if 0 in every:
        return match_filler.sum(-2) + _nothing(objects, match_role, target_role, keys, gate)
    with full_precision(objects.device):
        reading = _reading(fixed, objects, match_role, match_filler, target_role, keys, gate, None)
        if visible is None and cheapest_read(reading) == "chunked":
            fillers = read_memory(reading, memory_after(reading))
        else:
            fillers = read_objects(reading, None if visible is None else _by_memory(visible, reading, fixed, heads))
    return _by_position(fillers, fixed, (*every, heads, filler_dim)).to(objects.dtype)


def _expect_readable(
    stored: str,
    objects: Tensor,
    match_role: Tensor,
    match_filler: Tensor,
    target_role: Tensor,
    keys: Tensor | None,
    gate: Tensor | None,
) -> bool:
    """Check what the signature does not say; whether all roles are given once for each head."""
    sizes = (*objects.shape[-3:], *match_filler.shape[-4:-1])
    expect_some(**dict(zip((stored, *"rfqhm"), sizes, strict=True)))
    fixed = match_role.ndim == 3 and target_role.ndim == 2
    if keys is not None or gate is not None:
        expect_alike({"objects": objects, "keys": keys, "gate": gate})
    if gate is not None and gate.shape[-1] not in (1, match_filler.shape[-3] if fixed else 1):
        heads = f" or g={match_filler.shape[-3]}" if fixed else ", since heads with roles that vary share one memory"
        raise ValueError(f"gate: expected g=1{heads}, got g={gate.shape[-1]}")
    return fixed


def _reading(
    fixed: bool,
    objects: Tensor,
    match_role: Tensor,
    match_filler: Tensor,
    target_role: Tensor,
    keys: Tensor | None,
    gate: Tensor | None,
    state: Tensor | None,
) -> Reading:
    precise = sum_dtype(objects)
    exact = objects.to(precise), match_role.to(precise), match_filler.to(precise), target_role.to(precise)
    keys = None if keys is None else keys.to(precise)
    gate = None if gate is None else gate.to(precise)
    return (by_head if fixed else by_sequence)(*exact, keys=keys, gate=gate, state=state)


def _by_memory(visible: Tensor, reading: Reading, fixed: bool, heads: int) -> Tensor:
    """`[*batch q s]` or `[q s]` as `[b q s]` or `[q s]`, in the dtype of the scores."""
    if visible.ndim > 2:
        if fixed:
            visible = visible.unsqueeze(-3).expand(*visible.shape[:-2], heads, *visible.shape[-2:])
        visible = visible.reshape(-1, *visible.shape[-2:])
    return visible.to(reading.key.dtype)


def _by_position(fillers: Tensor, fixed: bool, shape: tuple[int, ...]) -> Tensor:
    """`[b q g f]` as `[*batch q h f]`."""
    if not fixed:
        return fillers if fillers.shape == shape else fillers.reshape(shape)
    *batch, length, heads, filler_dim = shape
    return fillers.reshape(*batch, heads, length, filler_dim).movedim(-3, -2)


def _nothing(*tensors: Tensor | None) -> Tensor:
    """Zero, as a function of all of them."""
    return torch.stack([0 * x.sum() for x in tensors if x is not None]).sum()


def expect_form(form: object) -> None:
    """Check that there is such a form."""
    if not isinstance(form, str) or form not in ("auto", *FORMS):
        raise ValueError(f"form: expected one of {['auto', *FORMS]}, got {form!r}")
