"""The literal definitions of `recall`, a memory for every position, queried by every head, and of `read`."""

import torch

from tpr_attention.functional import extract, match, match_general, memorise, memorise_general


def recall_by_definition(objects, match_role, match_filler, target_role, *, causal=True):
    """`[*batch t r f]` and queries with all their axes -> extracted fillers `[*batch t h f]`."""
    length, (heads, matches) = objects.shape[-3], match_filler.shape[-3:-1]
    fillers = []
    for t in range(length):
        stored = objects[..., : t + 1, :, :] if causal else objects
        for h in range(heads):
            pairs = [(match_role[..., t, h, m, :], match_filler[..., t, h, m, :]) for m in range(matches)]
            if matches == 1:
                found = match(memorise(stored), *pairs[0])
            else:
                memory = memorise_general(stored, order=2, copies=matches + 1)
                queries = [vector for pair in pairs for vector in pair]
                found = match_general(memory, queries, order=2, copies=matches + 1, free=2)
            fillers.append(extract(found, target_role[..., t, h, :]))
    return torch.stack(fillers, -2).unflatten(-2, (length, heads))


def with_all_axes(objects, match_role, target_role):
    """Roles given once for each head, repeated at every position."""
    every = objects.shape[:-2]
    if match_role.ndim == 3:
        match_role = match_role.expand(*every, *match_role.shape)
    if target_role.ndim == 2:
        target_role = target_role.expand(*every, *target_role.shape)
    return match_role, target_role


def read_by_definition(objects, match_role, match_filler, target_role, *, keys=None, gate=None, visible=None):
    """`[*batch s r f]` and queries at q positions with all their axes -> extracted fillers `[*batch q h f]`."""
    keys = objects if keys is None else keys
    scores = torch.einsum("...qhmr,...srf,...qhmf->...qhsm", match_role, keys, match_filler).prod(-1)
    if gate is not None:
        scores = scores * gate.mT.unsqueeze(-3)
    if visible is not None:
        scores = scores * visible.unsqueeze(-2)
    return torch.einsum("...qhs,...qhr,...srf->...qhf", scores, target_role, objects)
