r"""A memory for each head that stores the difference between a value and what the memory already answers.

With roles given once for each head, a head's key is k_t = (x)_m r_m^T K_t, its value v_t = r_t^T O_t, and its query
q_t = (x)_m f_m. The delta rule (Widrow and Hoff) writes

    M_t = M_{t-1} + g_t k_t (v_t - k_t^T M_{t-1})^T

so that with unit keys and a gate of one k_t^T M_t = v_t: the last write under a key counts. Two forms give the same
numbers:

- "recurrent": one object after another, the plainest statement of the rule;
- "chunked": all objects of a chunk at once; linear in t, with a state of constant size.
"""

from collections.abc import Callable
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.kernels.delta_rule import chunked_delta, features
from tpr_attention.functional.kernels.extraction import keys_and_values
from tpr_attention.functional.precision import full_precision, sum_dtype
from tpr_attention.functional.signature import checked, expect_alike, expect_bool, expect_room, expect_some

__all__ = ["recall_delta"]

_LARGE = 10**8  # a memory of more numbers than that might not fit
_FEW = 2  # objects that cost less one after another


@checked
def recall_delta(
    objects: Float[Tensor, "*batch t r f"],
    match_role: Float[Tensor, "h m r"],
    match_filler: Float[Tensor, "*batch t h m f"],
    target_role: Float[Tensor, "h r"],
    state: Float[Tensor, "*batch h p f"] | None = None,
    *,
    keys: Float[Tensor, "*batch t r f"] | None = None,
    gate: Float[Tensor, "*batch t g"] | None = None,
    exclude_self: bool = False,
    final_state: bool = False,
    form: str = "auto",
) -> tuple[Float[Tensor, "*batch t h f"], Float[Tensor, "*batch h p f"] | None]:
    r"""Match and extract at every position, from memories that correct themselves.

    f_th = q_t^T M_t,    M_t = M_{t-1} + g_t k_t (v_t - k_t^T M_{t-1})^T,
    k_t = (x)_m r_m^T K_t,    v_t = r_t^T O_t,    q_t = (x)_m f_m

    A write multiplies what the memory has under its key by `1 - g |k|^2`. Keys of length one with gates up to one are
    safe, and so is `g |k|^2 <= 2`; beyond, the memory grows without bound. The length of a key is the product of
    those of its m fillers.

    Args:
        match_role: One role for each of the m matches of each head.
        match_filler: The filler to find in that role.
        target_role: The role to store and to read.
        state: The memories `[*batch h f^m f]` of what came before; float32, or float64 for float64 objects.
        keys: The objects as they are matched, if not as they are read: with fillers of unit length, for example.
        gate: How far each object corrects the memory, for all heads (g = 1) or for each (g = h). An object of gate zero
            is as good as absent.
        exclude_self: Position t reads the memory before its own object is stored.
        final_state: Also return the memories after the last object (None otherwise).
        form: "auto", "chunked" or "recurrent". All give the same.

    >>> red, blue = torch.eye(2)
    >>> objects = torch.stack([torch.stack([red, red]), torch.stack([red, blue])])  # the first is overwritten
    >>> name, colour = torch.eye(2)
    >>> recall_delta(objects, name[None, None], red.expand(2, 1, 1, 2), colour[None])[0][:, 0]
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not isinstance(form, str) or form not in ("auto", *_FORMS):
        raise ValueError(f"form: expected one of {['auto', *_FORMS]}, got {form!r}")
    expect_bool(exclude_self=exclude_self, final_state=final_state)
    batch, (length, roles, filler_dim) = objects.shape[:-3], objects.shape[-3:]
    heads, matches = match_filler.shape[-3:-1]
    expect_some(t=length, r=roles, f=filler_dim, h=heads, m=matches)
    expect_alike({"objects": objects, "keys": keys, "gate": gate})
    if gate is not None and gate.shape[-1] not in (1, heads):
        raise ValueError(f"gate: expected g=1 or g={heads}, got g={gate.shape[-1]}")
    precise = sum_dtype(objects)
    shape = (*batch, heads, filler_dim**matches, filler_dim)
    if prod(shape[-3:]) > _LARGE:
        expect_room(prod(shape[-3:]), objects.device, precise, filler_dim=filler_dim, num_matches=matches)
    if state is not None and (tuple(state.shape) != shape or state.dtype != precise or state.device != objects.device):
        raise ValueError(
            f"state: expected {precise} on {objects.device} of shape {list(shape)} for these objects and queries, "
            f"got {state.dtype} on {state.device} of shape {list(state.shape)}"
        )
    if 0 in batch:  # no sequence: an empty answer, of which every input still has a gradient
        nothing = sum(0 * x.sum() for x in (objects, match_role, target_role, keys, gate) if x is not None)
        return match_filler.sum(-2) + nothing, objects.new_zeros(
            shape, dtype=precise
        ) + nothing if final_state else None
    with full_precision(objects.device):
        held = objects.to(precise).reshape(-1, length, roles, filler_dim)
        matched = None if keys is None else keys.to(precise).reshape(held.shape)
        key, value = keys_and_values(held, matched, match_role.to(precise), target_role.to(precise))
        key = key.reshape(-1, matches, length, filler_dim).transpose(1, 2)
        value = value.reshape(-1, length, filler_dim)
        query = match_filler.to(precise).movedim(-3, -4).reshape(key.shape)
        if gate is None:
            written = key.new_ones(key.shape[0], length, 1)
        else:
            written = gate.to(precise).expand(*batch, length, heads).transpose(-1, -2).reshape(-1, length, 1)
        memory = written.new_zeros(written.shape[0], *shape[-2:]) if state is None else state.reshape(-1, *shape[-2:])
        chosen = ("recurrent" if length <= _FEW else "chunked") if form == "auto" else form
        fillers, after = _FORMS[chosen](query, key, value, written, memory, exclude_self)
    found = fillers.reshape(*batch, heads, length, filler_dim).movedim(-3, -2)
    return found.to(objects.dtype), after.reshape(shape) if final_state else None


def _recurrent(
    query: Float[Tensor, "b t m f"],
    key: Float[Tensor, "b t m f"],
    value: Float[Tensor, "b t v"],
    gate: Float[Tensor, "b t 1"],
    memory: Float[Tensor, "b p v"],
    exclude_self: bool,
) -> tuple[Float[Tensor, "b t v"], Float[Tensor, "b p v"]]:
    queries, keys = features(query), features(key)
    found = []
    for t in range(key.shape[1]):
        k, v, g = keys[:, t].unsqueeze(1), value[:, t].unsqueeze(1), gate[:, t].unsqueeze(1)
        before = memory
        memory = memory + k.mT @ (g * (v - k @ memory))
        found.append(queries[:, t].unsqueeze(1) @ (before if exclude_self else memory))
    return torch.cat(found, 1), memory


_FORMS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {"chunked": chunked_delta, "recurrent": _recurrent}
