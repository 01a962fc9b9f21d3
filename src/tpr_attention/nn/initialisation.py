"""How parameters start."""

import torch
from torch import Tensor

from tpr_attention.functional.precision import sum_dtype

__all__ = ["orthonormal_"]


@torch.no_grad()
def orthonormal_(tensor: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fill the rows of a matrix, or of a stack of them, with random orthonormal vectors, as many at a time as fit.

    Works in every floating-point dtype, on the meta device and for a tensor that is spread over processes.

    >>> rows = orthonormal_(torch.empty(2, 3, dtype=torch.float64))
    >>> torch.allclose(rows @ rows.T, torch.eye(2, dtype=torch.float64))
    True
    """
    rows, size = tensor.shape[-2:]
    blocks = -(-rows // size)
    shape = (*tensor.shape[:-2], blocks, size, size)
    normal = tensor.new_empty(shape, dtype=sum_dtype(tensor)).normal_(generator=generator)
    orthogonal = torch.linalg.qr(normal)[0]
    return tensor.copy_(orthogonal.flatten(-3, -2)[..., :rows, :])
