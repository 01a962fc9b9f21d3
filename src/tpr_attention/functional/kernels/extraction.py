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
) -> tuple[Float[Tensor, "b p s f"], Float[Tensor, "b h s f"]]:
    """What each head matches, p = (h m), and what it reads: one product where objects are their own keys."""
    asked = match_role.flatten(0, 1)
    if keys is not None:
        return extract_all(keys, asked), extract_all(objects, target_role)
    matched, value = torch.split(
        extract_all(objects, torch.cat([asked, target_role])), [asked.shape[0], target_role.shape[0]], 1
    )
    return matched, value
