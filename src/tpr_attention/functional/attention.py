"""TPR-Attention as the paper defines it, memory and all (sec. 3.2, App. B).

These are the definitions that the fast forms of `factored` are tested against. The memory has (r f)^2 entries: use them
to read, to check and to teach, and `factored` or `tpr_attention.nn` to compute.
"""

from einops import einsum
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.signature import checked

__all__ = ["attend", "extract", "match", "memorise", "rebind"]


@checked
def memorise(objects: Float[Tensor, "*batch t r f"]) -> Float[Tensor, "*batch r f r f"]:
    r"""Store objects in one memory, the TPR-SAM.

    M = sum_t O_t (x) O_t                                                                       (sec. 3.2)

    >>> import torch
    >>> memorise(torch.tensor([[[1.0, 2.0]]])).squeeze()
    tensor([[1., 2.],
            [2., 4.]])
    """
    return einsum(objects, objects, "... t r f, ... t r_m f_m -> ... r f r_m f_m")


@checked
def match(
    memory: Float[Tensor, "*batch r f r f"],
    match_role: Float[Tensor, "*batch r"],
    match_filler: Float[Tensor, "*batch f"],
) -> Float[Tensor, "*batch r f"]:
    r"""Superpose the stored objects, each weighted by how well it answers the query.

    M_obj(M, r_m, f_m) = sum_s (r_m^T O_s f_m) O_s                                      (sec. 3.2.1, App. B.1)

    >>> import torch
    >>> red, yellow = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    >>> objects = torch.stack([torch.stack([red, red]), torch.stack([yellow, red])])
    >>> match(memorise(objects), torch.tensor([1.0, 0.0]), yellow)
    tensor([[0., 1.],
            [1., 0.]])
    """
    return einsum(memory, match_role, match_filler, "... r f r_m f_m, ... r_m, ... f_m -> ... r f")


@checked
def extract(obj: Float[Tensor, "*batch r f"], target_role: Float[Tensor, "*batch r"]) -> Float[Tensor, "*batch f"]:
    r"""Read what an object has in a role.

    E_prop(O, r_t) = r_t^T O                                                            (sec. 3.2.2, App. B.2)

    >>> import torch
    >>> extract(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0.0, 1.0]))
    tensor([3., 4.])
    """
    return einsum(obj, target_role, "... r f, ... r -> ... f")


@checked
def rebind(
    filler: Float[Tensor, "*batch f"],
    filler_map: Float[Tensor, "*batch f f_out"] | Float[Tensor, "f f_out"],
    new_role: Float[Tensor, "*batch r"] | Float[Tensor, "r"],
) -> Float[Tensor, "*batch r f_out"]:
    r"""Transform a filler and bind it to a new role.

    T_bind(f, H, r_n) = r_n (x) (f^T H)                                                 (sec. 3.2.3, App. B.3)

    >>> import torch
    >>> rebind(torch.tensor([1.0, 2.0]), 10 * torch.eye(2), torch.tensor([0.0, 1.0]))
    tensor([[ 0.,  0.],
            [10., 20.]])
    """
    return einsum(filler, filler_map, new_role, "... f, ... f f_out, ... r -> ... r f_out")


@checked
def attend(
    memory: Float[Tensor, "*batch r f r f"],
    match_role: Float[Tensor, "*batch r"],
    match_filler: Float[Tensor, "*batch f"],
    target_role: Float[Tensor, "*batch r"],
    filler_map: Float[Tensor, "*batch f f_out"] | Float[Tensor, "f f_out"],
    new_role: Float[Tensor, "*batch r_n"] | Float[Tensor, "r_n"],
) -> Float[Tensor, "*batch r_n f_out"]:
    r"""One head of TPR-Attention: match, extract, transform and re-bind.

    TPR-Attn = T_bind(E_prop(M_obj(M, r_m, f_m), r_t), H, r_n)                          (sec. 3.2.3, App. B.3)

    >>> import torch
    >>> colour, shape = torch.eye(2)
    >>> yellow, triangle = torch.eye(2)
    >>> memory = memorise(torch.stack([yellow, triangle])[None])
    >>> attend(memory, colour, yellow, shape, torch.eye(2), colour)  # the shape of what is yellow
    tensor([[0., 1.],
            [0., 0.]])
    """
    return rebind(extract(match(memory, match_role, match_filler), target_role), filler_map, new_role)
