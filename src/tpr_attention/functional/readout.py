"""Optional normalisation of what is read from a memory.

The memory is a plain sum, so its read-out grows with the number of objects (App. B.2 has no normaliser, and none is the
default). Dividing by the sum of the scores, as softmax attention does, is not an option: scores are signed, and their
sum may vanish. These two are safe.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["READOUTS", "by_count", "by_rms", "to_unit_length"]

SHORT = 1e-3  # much shorter than that, a vector has no direction worth keeping


def by_count(fillers: Float[Tensor, "*batch t h f"], count: Float[Tensor, "t"]) -> Float[Tensor, "*batch t h f"]:
    """The mean over the objects in memory instead of the sum.

    >>> by_count(torch.full((1, 2, 1, 1), 6.0), torch.tensor([1.0, 2.0])).flatten()
    tensor([6., 3.])
    """
    return fillers / count[:, None, None]


def by_rms(fillers: Float[Tensor, "*batch t h f"], count: Float[Tensor, "t"]) -> Float[Tensor, "*batch t h f"]:
    """The direction of the read-out, with entries of mean square one (zero stays zero); the count plays no part.

    Dividing by the largest entry first keeps the squares from overflowing; the result does not depend on it.

    >>> by_rms(torch.tensor([[[3.0, 4.0]]]), torch.ones(1)).square().mean()
    tensor(1.)
    """
    largest = fillers.detach().abs().amax(-1, keepdim=True)
    scaled = fillers / largest.where(largest > 0, torch.ones_like(largest))
    tiny = 1e-12  # for zeros: the mean of the others is at least one over their number
    return scaled * (scaled.square().mean(-1, keepdim=True) + tiny).rsqrt()


def to_unit_length(fillers: Float[Tensor, "*batch f"]) -> Float[Tensor, "*batch f"]:
    r"""The direction of fillers; zero stays zero, and what is much shorter than 0.001 stays short.

    f / sqrt(|f|^2 + 0.001^2)

    >>> to_unit_length(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    largest = fillers.detach().abs().amax(-1, keepdim=True).clamp(min=1)  # so that squares do not overflow
    scaled = fillers / largest
    return scaled * (scaled.square().sum(-1, keepdim=True) + (SHORT / largest).square()).rsqrt()


READOUTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"count": by_count, "rms": by_rms}
