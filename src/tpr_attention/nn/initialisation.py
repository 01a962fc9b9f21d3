"""How parameters start."""

import torch
from torch import Tensor

from tpr_attention.functional.precision import sum_dtype

__all__ = ["orthonormal_"]


@torch.no_grad()
def orthonormal_(tensor: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fill the rows of a matrix, or of a stack of them, with random orthonormal vectors, as many at a time as fit.

    Works in every floating-point dtype and on the meta device.

    >>> rows = orthonormal_(torch.empty(2, 3, dtype=torch.float64))
    >>> torch.allclose(rows @ rows.T, torch.eye(2, dtype=torch.float64))
    True
    """
    rows, size = tensor.shape[-2:]
    blocks = -(-rows // size)
    shape = (*tensor.shape[:-2], blocks, size, size)
    normal = torch.randn(shape, generator=generator, device=tensor.device, dtype=sum_dtype(tensor))
    orthogonal = torch.linalg.qr(normal)[0]
    return tensor.copy_(orthogonal.flatten(-3, -2)[..., :rows, :])
