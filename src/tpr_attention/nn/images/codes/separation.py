r"""Templates that have pixels on their sides: a convex problem, solved with all pixels at once.

    min_{c, m}  sum_p log(1 + exp(-y_p (s_c(x_p) + J_p m)))

The free coefficients of templates are c, small moves of codes are m. A pixel p that is on has y_p = 1, one that is off
-1; x_p is where its object sees it, and J_p says how a move changes what it reads.
"""

import warnings
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from tpr_attention.functional.images.splines import spline_taps
from tpr_attention.nn.images.codes.levels import Levels
from tpr_attention.nn.images.codes.outlines import Points, logits_of, tables_of, widened
from tpr_attention.nn.images.codes.pose_memory import FAR, SHAPE, PoseMemory
from tpr_attention.nn.images.pixels import in_frame

__all__ = ["separate", "wrong_around"]

AT_ONCE = 2**15  # pixels of which rows are made
LITTLE = 1e-3  # pixels, radians, or of a scale: how far codes are moved to see what it changes
LENGTH = 30.0  # of what a move of one changes, over all pixels: about as much as a coefficient does
PART = 5  # iterations between pauses


def separate(memory: PoseMemory, levels: Levels, points: Points, iterations: int, with_moves: bool) -> Iterator[None]:
    """Fit all templates to gathered pixels, and move codes if that is wanted. Yields every few quasi-Newton steps."""
    problem = _Problem(memory, levels, points, _moves(memory) if with_moves else [])
    for _ in range(-(-iterations // PART)):
        problem.step()
        yield
    problem.store()


def wrong_around(memory: PoseMemory, points: Points) -> Float[Tensor, "clusters row column"]:
    """How many wrong pixels there are around each knot of the templates."""
    total = torch.zeros_like(memory.templates).flatten()
    for part in points.split(AT_ONCE):
        wide = widened(part, memory)
        wrong = (logits_of(memory, wide, **tables_of(memory)) > 0) != part.labels
        places, weights = _taps(memory, wide.some(wrong))
        total.index_add_(0, places.flatten(), weights.flatten())
    return total.view_as(memory.templates)


def _taps(memory: PoseMemory, points: Points) -> tuple[Int[Tensor, "p 16"], Float[Tensor, "p 16"]]:
    """Which coefficients of all templates pixels read, and with what weights."""
    pose = memory.pose(points.codes, memory.log_scales, memory.angles, memory.places)
    size = memory.templates.shape[-1]
    places, weights = spline_taps(in_frame(pose, points.pixels, float(memory.reach)), size)
    return places + points.codes[:, SHAPE, None] * size**2, weights


def _moves(memory: PoseMemory) -> list[tuple[str, Tensor]]:
    """Changes of codes that templates cannot make up for: names of tables, and what is added to them.

    A template can be enlarged, so that scales are only stretched. It turns with its object, so that places are also
    moved; and so are angles, since a template that is its own mirror image cannot be turned.
    """
    counts = memory.counts
    rows = ("places", 0), ("places", 1), ("angles", 0)
    moves = [(*row, stretches) for row in rows for stretches in (False, True)]
    moves += [("log_scales", shape, True) for shape in range(counts["shapes"])]
    changes = []
    for table, row, stretches in moves:
        codes = getattr(memory, table)
        change = torch.zeros_like(codes)
        used = codes.view(-1, codes.shape[-1])[row] < FAR
        count = int(used.sum())
        line = torch.linspace(0, 1, count, device=codes.device, dtype=codes.dtype) if stretches else 1.0
        change.view(-1, codes.shape[-1])[row, :count] = line
        if table == "log_scales":  # stretches scales, not their logarithms
            change = torch.where(codes < FAR, change * torch.exp(-codes), 0)
        changes.append((table, change))
    return changes


class _Problem:
    """The convex problem of all templates and some moves of codes: min sum log(1 + exp(-A x)).

    A is a sparse matrix, with sixteen coefficients in a row, and a dense one with a column for each move.
    """

    def __init__(
        self, memory: PoseMemory, levels: Levels, points: Points, changes: Sequence[tuple[str, Tensor]]
    ) -> None:
        self.memory, self.levels = memory, levels
        parts = [self._rows(widened(part, memory), changes) for part in points.split(AT_ONCE)]
        places, weights, self.moves = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
        self.rows, self.columns = _sparse(places, weights, memory.templates.numel())
        units = LENGTH / self.moves.norm(dim=0).clamp_min(LITTLE)
        self.moves *= units
        self.changes = [(name, unit * change) for (name, change), unit in zip(changes, units, strict=True)]
        self.count = len(levels.numbers)
        self.solution = F.pad(levels.numbers, (0, len(changes))).requires_grad_()
        self.optimiser = torch.optim.LBFGS(
            [self.solution], max_iter=PART, history_size=20, line_search_fn="strong_wolfe"
        )

    def _rows(self, points: Points, changes: Sequence[tuple[str, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of A, with the sign of the side that each pixel is on."""
        tables = tables_of(self.memory)
        signs = (2 * points.labels - 1).unsqueeze(-1)
        places, weights = _taps(self.memory, points)
        now, moves = logits_of(self.memory, points, **tables), signs.new_zeros(len(signs), len(changes))
        for number, (name, change) in enumerate(changes):
            moved = logits_of(self.memory, points, **tables | {name: tables[name] + LITTLE * change})
            moves[:, number] = (moved - now) / LITTLE
        return places.int(), weights * signs, moves * signs

    def step(self) -> None:
        """A few quasi-Newton steps."""
        self.optimiser.step(self._objective)  # type: ignore[no-untyped-call]

    def _objective(self) -> float:
        """The value, with the gradient beside the solution."""
        numbers, moves = self.solution.detach().tensor_split([self.count])
        self.levels.store(numbers)
        margins = self.rows @ self.levels.templates().flatten() + self.moves @ moves
        pull = torch.sigmoid(-margins)
        slopes = self.levels.slopes((self.columns @ pull).view_as(self.memory.templates))
        self.solution.grad = -torch.cat([slopes, self.moves.mT @ pull])
        return float(F.softplus(-margins).sum())

    def store(self) -> None:
        """Put the solution into the memory."""
        numbers, moves = self.solution.detach().tensor_split([self.count])
        self.levels.store(numbers)
        self.memory.templates.copy_(self.levels.templates())
        for (name, change), size in zip(self.changes, moves, strict=True):
            getattr(self.memory, name).add_(size * change)


def _sparse(places: Int[Tensor, "p 16"], weights: Float[Tensor, "p 16"], count: int) -> tuple[Tensor, Tensor]:
    """A matrix of these rows, and its transpose."""
    rows, taps = places.shape
    order = places.flatten().argsort(stable=True)
    starts = torch.arange(0, rows * taps + 1, taps, dtype=torch.int32, device=places.device)
    ends = F.pad(torch.bincount(places.flatten(), minlength=count).cumsum(0), (1, 0))
    with warnings.catch_warnings():  # that sparse matrices are new to torch, and that nothing checks them
        warnings.filterwarnings("ignore", "Sparse ")
        matrix = torch.sparse_csr_tensor(starts, places.flatten(), weights.flatten(), (rows, count))
        transposed = torch.sparse_csr_tensor(ends.int(), (order // taps).int(), weights.flatten()[order], (count, rows))
    return matrix, transposed
