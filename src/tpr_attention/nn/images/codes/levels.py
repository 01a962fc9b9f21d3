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
SYMMETRIC = 0.01  # of the area: a template of which less is other in a mirror, or when it is turned, is symmetric
GROUPS: list[list[tuple[int, bool]]] = [
    [(0, False)],
    *([(0, False), (turns, True)] for turns in range(4)),
    [(0, False), (2, False)],
    *([(0, False), (2, False), (turns, True), (turns + 2, True)] for turns in range(2)),
    [(turns, False) for turns in range(4)],
    [(turns, is_mirrored) for turns in range(4) for is_mirrored in (False, True)],
]
"""All groups of quarter turns, each after a mirror or not; the last one has all of them."""
AROUND = 3  # knots: with each one that becomes free, its neighbours do


class Levels:
    r"""Splines whose cells halve from level to level; the template is their sum.

    t_0 = c_0,    t_k = H_k t_(k-1) H_k^T + c_k

    The coefficients of the coarsest level are free, those of the others zero until they are opened. So an outline has
    few free numbers where it is smooth, and many at a corner.

    A template that nearly is its own mirror image, or nearly the same after a quarter or half of a turn, is made
    exactly so: then every pixel tells of several places of the outline.

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
        self.symmetries = [_symmetries(template) for template in templates]
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
        return self._evened(total)

    def slopes(self, slope: Float[Tensor, "clusters row column"]) -> Float[Tensor, "free"]:
        """From the gradient by the finest coefficients, that by the free ones."""
        pulled = self._pulled_back(self._evened(slope))
        return torch.cat([part[free] for part, free in zip(pulled, self.free, strict=True)])

    def _evened(self, templates: Float[Tensor, "clusters row column"]) -> Float[Tensor, "clusters row column"]:
        """The mean over the mirrors and turns that change nothing."""
        each = zip(templates, self.symmetries, strict=True)
        return torch.stack([torch.stack([_moved(one, *way) for way in same]).mean(0) for one, same in each])

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
        counts = wrong.new_tensor([len(same) for same in self.symmetries])[:, None, None]
        wanted = (self._pulled_back(counts * self._evened(wrong))[level] > WANTED).to(wrong)
        self.free[level] = F.max_pool2d(wanted.unsqueeze(1), AROUND, 1, AROUND // 2).squeeze(1) > 0

    def steepen(self, factor: float) -> None:
        """Multiply all templates."""
        for part in self.parts:
            part.mul_(factor)


def _symmetries(template: Float[Tensor, "row column"]) -> list[tuple[int, bool]]:
    """The largest group of quarter turns, each after a mirror or not, that a template is the same after."""
    inside = template > 0
    limit = SYMMETRIC * inside.sum()
    same = {way for way in GROUPS[-1] if not any(way) or (inside != _moved(inside, *way)).sum() < limit}
    largest: list[tuple[int, bool]] = max((group for group in GROUPS if same.issuperset(group)), key=len)
    return sorted(largest)


def _moved(template: Tensor, turns: int, is_mirrored: bool) -> Tensor:
    """A template in a mirror that stands upright, if that is wanted, and after quarter turns."""
    return torch.rot90(template.flip(-1) if is_mirrored else template, turns)
