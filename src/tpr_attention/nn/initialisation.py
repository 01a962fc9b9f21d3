"""How parameters start."""

import torch
from torch import Tensor

from tpr_attention.functional.precision import sum_dtype
from tpr_attention.functional.signature import expect, expect_generator

__all__ = ["drawn", "orthonormal_"]


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
