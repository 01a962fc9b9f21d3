"""Templates as sums of splines on finer and finer grids, with fine coefficients only where they are needed."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.images.splines import halving

__all__ = ["Levels"]

COARSEST = 24  # no grid has fewer rows, unless the finest has
WANTED = 1.5  # wrong pixels around a knot: with more, its coefficient becomes free
AROUND = 3  # knots: with each one that becomes free, its neighbours do


class Levels:
    r"""Splines whose cells halve from level to level; the template is their sum.

    t_0 = c_0,    t_k = H_k t_(k-1) H_k^T + c_k

    The coefficients of the coarsest level are free, those of the others zero until they are opened. So an outline has
    few free numbers where it is smooth, and many at a corner.

    Args:
        templates: Coefficients of the finest level, of which the coarsest ones are a sample.

    >>> levels = Levels(torch.randn(2, 63, 63))
    >>> [list(part.shape) for part in levels.parts], levels.numbers.shape
    ([[2, 33, 33], [2, 63, 63]], torch.Size([2178]))
    """

    def __init__(self, templates: Float[Tensor, "clusters row column"]) -> None:
        sizes = [templates.shape[-1]]
        while sizes[0] % 2 and (sizes[0] + 3) // 2 >= COARSEST:
            sizes.insert(0, (sizes[0] + 3) // 2)
        self.halvings = [halving(size, templates) for size in sizes[:-1]]
        coarse = templates
        for size in reversed(sizes[:-1]):  # knot i is knot 2 i - 1 of the finer grid, or next to it
            same = (2 * torch.arange(size, device=templates.device) - 1).clamp(0, coarse.shape[-1] - 1)
            coarse = coarse[:, same][..., same]
        finer = [templates.new_zeros(len(templates), size, size) for size in sizes[1:]]
        self.parts = [coarse.clone(), *finer]
        self.free = [torch.full_like(part, not number, dtype=torch.bool) for number, part in enumerate(self.parts)]

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def numbers(self) -> Float[Tensor, "free"]:
        """All free coefficients."""
        return torch.cat([part[free] for part, free in zip(self.parts, self.free, strict=True)])

    def store(self, numbers: Float[Tensor, "free"]) -> None:
        """Replace all free coefficients."""
        counts = [int(free.sum()) for free in self.free]
        for part, free, values in zip(self.parts, self.free, torch.split(numbers, counts), strict=True):
            part[free] = values

    def templates(self) -> Float[Tensor, "clusters row column"]:
        """The coefficients of the sum on the finest grid."""
        total = self.parts[0]
        for matrix, part in zip(self.halvings, self.parts[1:], strict=True):
            total = matrix @ total @ matrix.mT + part
        return total

    def slopes(self, slope: Float[Tensor, "clusters row column"]) -> Float[Tensor, "free"]:
        """From the gradient by the finest coefficients, that by the free ones."""
        pulled = self._pulled_back(slope)
        return torch.cat([part[free] for part, free in zip(pulled, self.free, strict=True)])

    def _pulled_back(self, slope: Float[Tensor, "clusters row column"]) -> Sequence[Tensor]:
        found = [slope]
        for matrix in reversed(self.halvings):
            found.insert(0, matrix.mT @ found[0] @ matrix)
        return found

    def open(self, level: int, wrong: Float[Tensor, "clusters row column"]) -> None:
        """Free coefficients of a level where outlines are wrong.

        Args:
            wrong: How many wrong pixels there are around each knot of the finest grid.
        """
        wanted = (self._pulled_back(wrong)[level] > WANTED).to(wrong)
        self.free[level] = F.max_pool2d(wanted.unsqueeze(1), AROUND, 1, AROUND // 2).squeeze(1) > 0

    def steepen(self, factor: float) -> None:
        """Multiply all templates."""
        for part in self.parts:
            part.mul_(factor)
