r"""A shared memory in which an object replaces the one that was stored under the same id.

The paper's memory only adds. Here the object that the memory already holds under the id of a new one is taken out
before the new one is stored:

    P_t = M_obj(M_{t-1}, r_id, r_id^T O_t),    M_t = M_{t-1} + g_t (O_t (x) O_t - P_t (x) P_t)

For ids that are orthonormal fillers of the role r_id this is exact: P_t is the object of that id, or zero if there is
none, and M_t is the paper's memory of the last object of each id, to be matched by any role. For ids that overlap, P_t
also holds a part of other objects, and what is stored decays with the number of replacements.

There is one form, one object after another: P_t depends on all replacements before it.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.precision import full_precision, sum_dtype
from tpr_attention.functional.signature import checked, expect_alike, expect_bool, expect_some

__all__ = ["recall_replace"]


@checked
def recall_replace(
    objects: Float[Tensor, "*batch t r f"],
    match_role: Float[Tensor, "*batch t h m r"] | Float[Tensor, "h m r"],
    match_filler: Float[Tensor, "*batch t h m f"],
    target_role: Float[Tensor, "*batch t h r"] | Float[Tensor, "h r"],
    id_role: Float[Tensor, "r"],
    state: Float[Tensor, "*state p v"] | None = None,
    *,
    gate: Float[Tensor, "*batch t g"] | None = None,
    exclude_self: bool = False,
    final_state: bool = False,
) -> tuple[Float[Tensor, "*batch t h f"], Float[Tensor, "*state p v"] | None]:
    r"""Match and extract at every position of a sequence whose objects replace each other.

    E_prop(M_obj(M_t, r_m, f_m), r_t),    M_t = M_{t-1} + g_t (O_t (x) O_t - P_t (x) P_t),
    P_t = M_obj(M_{t-1}, r_id, r_id^T O_t)

    Ids should have length one: a longer one takes out more than was stored, and the memory may grow without bound.

    Args:
        match_role: One role for each head, m = 1, or `[h 1 r]` where it is the same everywhere.
        match_filler: The filler to find in that role.
        target_role: The role to read, or `[h r]` where it is the same everywhere.
        id_role: The role whose filler says which object this is.
        state: The memory `[*batch (r f) (r f)]` of what came before, of this function or of `recall` with roles that
            vary; float32, or float64 for float64 objects.
        gate: How far each object replaces another, `[*batch t 1]`, since all heads share one memory. An object of gate
            zero is as good as absent.
        exclude_self: Position t reads the memory before its own object is stored.
        final_state: Also return the memory after the last object (None otherwise).

    >>> red, blue = torch.eye(2)
    >>> one = red
    >>> objects = torch.stack([torch.stack([one, red]), torch.stack([one, blue])])  # the same object, painted blue
    >>> name, colour = torch.eye(2)
    >>> query = name[None, None], one.expand(2, 1, 1, 2), colour[None]
    >>> recall_replace(objects, *query, name)[0][:, 0]
    tensor([[1., 0.],
            [0., 1.]])
    """
    expect_bool(exclude_self=exclude_self, final_state=final_state)
    batch, (length, roles, filler_dim) = objects.shape[:-3], objects.shape[-3:]
    heads, matches = match_filler.shape[-3:-1]
    expect_some(t=length, r=roles, f=filler_dim, h=heads)
    if matches != 1:
        raise ValueError(f"match_filler: expected one match, m=1, in a memory of pairs, got m={matches}")
    expect_alike({"objects": objects, "gate": gate})
    if gate is not None and gate.shape[-1] != 1:
        raise ValueError(f"gate: expected g=1, since all heads share one memory, got g={gate.shape[-1]}")
    precise, width = sum_dtype(objects), roles * filler_dim
    shape = (*batch, width, width)
    if state is not None and (tuple(state.shape) != shape or state.dtype != precise or state.device != objects.device):
        raise ValueError(
            f"state: expected {precise} on {objects.device} of shape {list(shape)} for these objects, "
            f"got {state.dtype} on {state.device} of shape {list(state.shape)}"
        )
    if 0 in batch:
        given = (objects, match_role, target_role, id_role, *(() if gate is None else (gate,)))
        nothing = torch.stack([x.sum() for x in given]).sum() * 0
        return match_filler.sum(-2) + nothing, objects.new_zeros(
            shape, dtype=precise
        ) + nothing if final_state else None
    every = (*batch, length, heads)
    with full_precision(objects.device):
        held = objects.to(precise).reshape(-1, length, roles, filler_dim)
        asked = match_role.to(precise).expand(*every, 1, roles).reshape(-1, length, heads, roles, 1)
        queries = asked * match_filler.to(precise).reshape(-1, length, heads, 1, filler_dim)
        memory = held.new_zeros(held.shape[0], width, width) if state is None else state.reshape(-1, width, width)
        written = held.new_ones(held.shape[0], length, 1) if gate is None else gate.to(precise).reshape(-1, length, 1)
        found, after = _replace(held, queries, id_role.to(precise), written, memory, exclude_self)
        read = target_role.to(precise).expand(*every, roles).reshape(-1, length, heads, 1, roles)
        fillers = (read @ found.reshape(-1, length, heads, roles, filler_dim)).reshape(*every, filler_dim)
    return fillers.to(objects.dtype), after.reshape(shape) if final_state else None


def _replace(
    objects: Float[Tensor, "b t r f"],
    queries: Float[Tensor, "b t h r f"],
    id_role: Float[Tensor, "r"],
    gate: Float[Tensor, "b t 1"],
    memory: Float[Tensor, "b p v"],
    exclude_self: bool,
) -> tuple[Float[Tensor, "b t h v"], Float[Tensor, "b p v"]]:
    """What every query matches, and the memory after the last object."""
    ids = torch.einsum("r,btrf->btf", id_role, objects)
    by_id = id_role.unsqueeze(-1) * ids.unsqueeze(-2)
    found = []
    for t in range(objects.shape[1]):
        new = objects[:, t].flatten(1).unsqueeze(1)
        old = by_id[:, t].flatten(1).unsqueeze(1) @ memory
        strength = gate[:, t].unsqueeze(1)
        before = memory
        signed = torch.cat([strength * new, -strength * old], 1)
        memory = torch.baddbmm(memory, signed.mT, torch.cat([new, old], 1))
        found.append(queries[:, t].flatten(2) @ (before if exclude_self else memory))
    return torch.stack(found, 1), memory
