"""How parameters start."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from tpr_attention.functional.precision import sum_dtype
from tpr_attention.functional.signature import expect, expect_generator, expect_whole

__all__ = ["drawn", "expect_roles", "fill_", "orthonormal_", "role_vectors", "roles_in_turn"]


def drawn(rows: int, size: int) -> int:
    """How many numbers `orthonormal_` draws for so many rows: those of whole square matrices.

    >>> drawn(2, 3), drawn(4, 3)
    (9, 18)
    """
    return -(-rows // size) * size * size


@torch.no_grad()
def orthonormal_(tensor: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fill the rows of a matrix, or of a stack of them, with random orthonormal vectors, as many at a time as fit.

    Works in every floating-point dtype, on the meta device and for a tensor that is spread over processes.

    >>> rows = orthonormal_(torch.empty(2, 3, dtype=torch.float64))
    >>> torch.allclose(rows @ rows.T, torch.eye(2, dtype=torch.float64))
    True
    """
    expect("tensor", tensor, "*stack rows size", {})
    expect_generator(generator)
    rows, size = tensor.shape[-2:]
    if size == 0:
        raise ValueError(f"tensor: expected at least one entry along size, got shape {list(tensor.shape)}")
    blocks = -(-rows // size)
    shape = (*tensor.shape[:-2], blocks, size, size)
    normal = tensor.new_empty(shape, dtype=sum_dtype(tensor)).normal_(generator=generator)
    orthogonal = torch.linalg.qr(normal)[0]
    return tensor.copy_(orthogonal.flatten(-3, -2)[..., :rows, :])


@torch.no_grad()
def fill_(tensor: Tensor, values: Tensor) -> Tensor:
    """Copy values into a parameter, which may be spread over processes; the first process decides then."""
    mesh, placements = getattr(tensor, "device_mesh", None), getattr(tensor, "placements", None)
    if mesh is not None:
        values = torch.distributed.tensor.distribute_tensor(values.to(tensor.dtype), mesh, placements)
    return tensor.copy_(values)


def roles_in_turn(
    heads: int, roles: int, generator: torch.Generator | None = None, device: torch.device | str | None = None
) -> Int[Tensor, "h"]:
    """Draw a role for each head: all roles in random order, then all in another order, and so on.

    >>> sorted(roles_in_turn(6, 3).tolist())
    [0, 0, 1, 1, 2, 2]
    """
    rounds = -(-heads // roles)
    where = device if generator is None or device is None or torch.device(device).type == "meta" else generator.device
    on_meta = device is not None and torch.device(device).type == "meta"
    chance = torch.rand(rounds, roles, generator=None if on_meta else generator, device=where)
    return chance.argsort(-1).flatten()[:heads].to(device)


def role_vectors(index: Int[Tensor, "*heads"], roles: int) -> Float[Tensor, "*heads r"]:
    """One-hot vectors of roles.

    >>> role_vectors(torch.tensor([1]), 3)
    tensor([[0., 1., 0.]])
    """
    if index.is_meta:
        return torch.empty(*index.shape, roles, device="meta")
    return one_hot(index, roles).to(torch.get_default_dtype())


def expect_roles(name: str, roles: object, heads: int, num_roles: int, matches: int | None = None) -> Tensor | None:
    """Check roles that were given by number, one for each head (and match), and return them as a tensor.

    >>> expect_roles("new_roles", [0, 5], heads=2, num_roles=4)
    Traceback (most recent call last):
    ...
    ValueError: new_roles: expected at most 3, got 5
    """
    if roles is None:
        return None
    wanted = f"a role for each of {heads} heads" + ("" if matches is None else f" and {matches} matches")
    if isinstance(roles, str) or not isinstance(roles, Sequence) or len(roles) != heads:
        raise ValueError(f"{name}: expected {wanted}, got {roles!r}")
    rows = []
    for given in roles:
        row = [given] if matches is None or not isinstance(given, Sequence) else list(given)
        if len(row) != (1 if matches is None else matches):
            raise ValueError(f"{name}: expected {wanted}, got {roles!r}")
        rows.append([expect_whole(name, role, 0, num_roles - 1) for role in row])
    found = torch.tensor(rows, device="cpu")
    return found.squeeze(1) if matches is None else found
