"""Binding, superposition and their inverse (sec. 3.1; ids of App. D)."""

import torch
from einops import einsum, reduce
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.precision import sum_dtype
from tpr_attention.functional.signature import checked, value_of

__all__ = ["bind", "dual_basis", "superpose", "tag", "unbind"]


@checked
def bind(role: Float[Tensor, "*batch r"], filler: Float[Tensor, "*batch f"]) -> Float[Tensor, "*batch r f"]:
    r"""Bind a filler to a role.

    r (x) f                                                                                     (sec. 3.1)

    >>> bind(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0, 4.0]))
    tensor([[0., 0., 0.],
            [2., 3., 4.]])
    """
    return einsum(role, filler, "... r, ... f -> ... r f")


@checked
def superpose(bindings: Float[Tensor, "*batch j r f"]) -> Float[Tensor, "*batch r f"]:
    r"""Superpose the bindings of one object.

    O = sum_j r_j (x) f_j                                                                       (sec. 3.1)

    >>> roles, fillers = torch.eye(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> superpose(bind(roles, fillers))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return reduce(bindings, "... j r f -> ... r f", "sum")


@checked
def dual_basis(roles: Float[Tensor, "j r"]) -> Float[Tensor, "j r"]:
    r"""The vectors that read each role and are blind to the others.

    u_j^T r_k = delta_jk; for orthonormal roles, u_j = r_j

    >>> dual_basis(torch.tensor([[1.0, 0.0], [1.0, 2.0]])).round(decimals=4)
    tensor([[ 1.0000, -0.5000],
            [ 0.0000,  0.5000]])
    """
    exact = roles.to(sum_dtype(roles))
    checks = not (torch.compiler.is_compiling() or exact.is_meta)
    if checks:
        _expect_independent(exact.detach())
    dual: Tensor = torch.linalg.pinv(exact).mT.to(roles.dtype)
    if checks and value_of(dual.detach().isfinite().all()) == 0:
        raise ValueError(f"roles: expected rows whose dual basis fits into {roles.dtype}, got one that overflows")
    return dual


def _expect_independent(roles: Tensor) -> None:
    if value_of(roles.isfinite().all()) == 0:
        raise ValueError("roles: expected finite numbers, got NaN or infinity")
    rank = value_of(torch.linalg.matrix_rank(roles))
    if rank is not None and rank < roles.shape[0]:
        raise ValueError(f"roles: expected {roles.shape[0]} linearly independent rows, got rank {rank}")


@checked
def unbind(obj: Float[Tensor, "*batch r f"], roles: Float[Tensor, "j r"]) -> Float[Tensor, "*batch j f"]:
    r"""Read every filler back, for any linearly independent roles.

    f_j = u_j^T O, with u the dual basis of the roles                           (inverts bind and superpose)

    >>> roles, fillers = torch.tensor([[1.0, 0.0], [1.0, 2.0]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.allclose(unbind(superpose(bind(roles, fillers)), roles), fillers)
    True
    """
    return einsum(dual_basis(roles), obj, "j r, ... r f -> ... j f")


@checked
def tag(obj: Float[Tensor, "*batch r f"], id_tag: Float[Tensor, "*batch i"]) -> Float[Tensor, "*batch i r f"]:
    r"""Bind an id to an object, which makes it a TPR of order three.

    id (x) O                                                                                    (App. D)

    >>> tag(torch.ones(1, 2), torch.tensor([0.0, 1.0]))
    tensor([[[0., 0.]],
    <BLANKLINE>
            [[1., 1.]]])
    """
    return einsum(id_tag, obj, "... i, ... r f -> ... i r f")
