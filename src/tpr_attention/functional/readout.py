"""Optional normalisations of what is read from a memory, by name: the argument `normalise` of every layer.

The memory is a plain sum, so its read-out grows with the number of objects (App. B.2 has no normaliser, and none is the
default). Dividing by the sum of the scores, as softmax attention does, is not an option: scores are signed, and their
sum may vanish. These are safe.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.signature import checked

__all__ = ["READOUTS", "WITHOUT_COUNT", "by_count", "expect_readout", "to_unit_length", "to_unit_rms"]

SHORT = 1e-3  # much shorter than that, a vector has no direction worth keeping
TINY = 1e-12  # for zeros: the mean square of the others is at least one over their number


@checked
def by_count(
    fillers: Float[Tensor, "*batch t h f"], count: Float[Tensor, "t"] | Float[Tensor, "*batch t"]
) -> Float[Tensor, "*batch t h f"]:
    """Divide the sum by the number of objects in memory, which gives the mean; zero where there are none.

    >>> by_count(torch.full((1, 3, 1, 1), 6.0), torch.tensor([0.0, 1.0, 2.0])).flatten()
    tensor([0., 6., 3.])
    """
    return fillers / count.masked_fill(count == 0, torch.inf)[..., None, None]


@checked
def to_unit_rms(fillers: Float[Tensor, "*batch f"], count: Tensor | None = None) -> Float[Tensor, "*batch f"]:
    """Scale each filler so that its entries have mean square one; zero stays zero. The count plays no part.

    Dividing by the largest entry first keeps the squares from overflowing; the result does not depend on it.

    >>> to_unit_rms(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).square().mean(-1)
    tensor([1., 0.])
    """
    largest = _largest(fillers)
    scaled = fillers / largest.where(largest > 0, torch.ones_like(largest))
    tiny = max(TINY, torch.finfo(fillers.dtype).tiny)
    return scaled * (scaled.square().mean(-1, keepdim=True) + tiny).rsqrt()


@checked
def to_unit_length(fillers: Float[Tensor, "*batch f"], count: Tensor | None = None) -> Float[Tensor, "*batch f"]:
    r"""Scale each filler to length one; zero stays zero, and what is much shorter than 0.001 stays short.

    f / sqrt(|f|^2 + 0.001^2)

    The count plays no part.

    >>> to_unit_length(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    largest = _largest(fillers).clamp(min=1)  # so that squares do not overflow
    scaled = fillers / largest
    return scaled * (scaled.square().sum(-1, keepdim=True) + (SHORT / largest).square()).rsqrt()


def _largest(fillers: Tensor) -> Tensor:
    if fillers.shape[-1] == 0:
        raise ValueError("fillers: expected at least one entry along f, got none")
    return fillers.detach().abs().amax(-1, keepdim=True)


READOUTS: dict[str, Callable[..., Tensor]] = {"count": by_count, "rms": to_unit_rms, "unit": to_unit_length}
WITHOUT_COUNT = ("rms", "unit")
"""Those that need no count: for layers whose memory keeps the objects apart, by their ids."""


def expect_readout(normalise: str | None, names: Sequence[str]) -> None:
    """Check that a normalisation is one of these, or None.

    >>> expect_readout("count", WITHOUT_COUNT)
    Traceback (most recent call last):
    ...
    ValueError: normalise: expected None or one of ['rms', 'unit'], got 'count'
    """
    if normalise is not None and not (isinstance(normalise, str) and normalise in names):
        raise ValueError(f"normalise: expected None or one of {list(names)}, got {normalise!r}")
