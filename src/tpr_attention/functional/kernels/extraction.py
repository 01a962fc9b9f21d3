"""What many objects have in a few roles, as one matrix product."""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["extract_all", "keys_and_values"]


def extract_all(objects: Float[Tensor, "b s r f"], roles: Float[Tensor, "p r"]) -> Float[Tensor, "b p s f"]:
    """What every object has in each of p roles.

    >>> extract_all(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), torch.tensor([[0.0, 1.0]])).flatten()
    tensor([3., 4.])
    """
    size, length, _, filler_dim = objects.shape
    by_role = objects.transpose(1, 2).flatten(2)
    return torch.bmm(roles.expand(size, -1, -1), by_role).reshape(size, -1, length, filler_dim)


def keys_and_values(
    objects: Float[Tensor, "b s r f"],
    keys: Float[Tensor, "b s r f"] | None,
    match_role: Float[Tensor, "h m r"],
    target_role: Float[Tensor, "h r"],
) -> tuple[Float[Tensor, "b h m s f"], Float[Tensor, "b h s f"]]:
    """What each head matches, and what it reads; one product instead of two where objects are their own keys."""
    heads, matches = match_role.shape[:2]
    asked = match_role.flatten(0, 1)
    if keys is None:
        both = extract_all(objects, torch.cat([asked, target_role]))
        matched, value = both[:, : heads * matches], both[:, heads * matches :]
    else:
        matched, value = extract_all(keys, asked), extract_all(objects, target_role)
    return matched.reshape(-1, heads, matches, *matched.shape[2:]), value
