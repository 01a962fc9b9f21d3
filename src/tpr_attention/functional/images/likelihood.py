r"""How likely an image of zeros and ones is, for numbers that say how likely each one is.

    -log p = -sum log q,    q = y where the target is one, 1 - y where it is zero

One logarithm a number instead of two, and a gradient without further ones: -1 / q or 1 / q.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["negative_log_likelihood"]

LEAST = 1e-12  # a number that is thought to be less likely costs no more


class _NegativeLogLikelihood(torch.autograd.Function):
    """With a backward of its own, which passes over the numbers once."""

    generate_vmap_rule = True

    @staticmethod
    def forward(output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        # the sign says in which direction the output should go
        right = torch.where(target > 0.5, output, output - 1)
        return right.abs().clamp(min=_least(right)).log().neg(), right

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, None]:
        (right,) = ctx.saved_tensors
        return torch.where(right.abs() < _least(right), 0, -grad / right), None


def _least(right: Tensor) -> float:
    return max(LEAST, torch.finfo(right.dtype).tiny)


def negative_log_likelihood(
    output: Float[Tensor, "*shape"], target: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """The cost of every number; the target has zeros and ones only, and no gradient. There are no second derivatives.

    >>> negative_log_likelihood(torch.tensor([0.5, 0.9]), torch.tensor([1.0, 1.0]))
    tensor([0.6931, 0.1054])
    """
    found: Tensor = _NegativeLogLikelihood.apply(output, target)[0]  # type: ignore[no-untyped-call]
    return found
