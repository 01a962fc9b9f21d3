"""Outlines of a pose memory, refined until nearly every pixel of an image is right.

A pixel is wrong if the outline passes on the wrong side of its centre. To have 99 of 100 images right, an outline of
fifty pixels must be right to 1e-4 of a pixel. Three things make that possible. Codes that are evenly spaced are made
exactly so. A template is a spline with few coefficients, so that many pixels tell of each. Templates and codes are
fitted to all pixels at once (`separation`).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tpr_attention.nn.images.outlines import Masks, Points, border, logits_of, points_of, tables_of
from tpr_attention.nn.images.pose_memory import FAR, Codes, PoseMemory
from tpr_attention.nn.images.separation import separate

__all__ = ["even_out", "refine"]

ELSEWHERE = 0.02  # the share of pixels away from outlines that gradient steps see
NEAR = 0.25  # the share of the pixels of outlines that is gathered: the nearest
FARTHER = 0.1  # the share of the others that is gathered
MOST_WRONG = 4  # pixels: an image with more has been read wrongly
RATES = {"templates": 0.3, "log_scales": 5e-4, "angles": 5e-4, "places": 5e-4}
WARM_UP, LAST_RATE = 20, 1e-2
ROUNDS = (False, True, False)  # whether codes are moved: not before outlines are as steep as they become
EVEN = 0.02  # of a step: how far codes may be from evenly spaced ones


def refine(
    memory: PoseMemory,
    examples: Iterable[tuple[Masks, Codes]],
    steps: Sequence[int],
    generator: torch.Generator,
) -> Iterator[None]:
    """Fit templates and codes to the outlines of images whose codes are read. Yields after every step.

    Args:
        examples: Masks and their codes, without end.
        steps: How many examples templates and codes are first fitted to, how many pixels are then gathered from, and
            how many iterations fit both to what was gathered.
    """
    first, gathered, last = steps
    examples = iter(examples)
    fit = _Fit(memory, first)
    for masks, codes in islice(examples, first):
        others = torch.rand(masks.shape, generator=generator, device=generator.device).to(masks) < ELSEWHERE
        fit.step(points_of(masks, codes, border(masks) | others)[1])
        yield
    even_out(memory)
    parts = []
    for masks, codes in islice(examples, gathered):
        parts.append(_gathered(memory, masks, codes, generator))
        yield
    points = Points(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))
    for with_moves in ROUNDS:
        yield from separate(memory, points, last // len(ROUNDS), with_moves)
        even_out(memory)


@torch.no_grad()
def even_out(memory: PoseMemory) -> None:
    """Space places, angles and scales evenly where they nearly are: by the line of least squares through them.

    >>> from tpr_attention.nn.images.decoders import TemplateDecoder
    >>> memory = PoseMemory(TemplateDecoder(side=64, channels=3, filler_dim=8))
    >>> memory.angles[:4] = torch.tensor([0.0, 1.01, 1.99, 3.0])
    >>> even_out(memory)
    >>> memory.angles[:4].diff()
    tensor([0.9980, 0.9980, 0.9980])
    """
    for row in (memory.angles, *memory.places):
        _even(row)
    for row in memory.log_scales:
        scales = torch.where(row < FAR, row.exp(), FAR)
        _even(scales)
        row.copy_(torch.where(row < FAR, scales.log(), FAR))


def _even(codes: Float[Tensor, "most"]) -> None:
    """Even out the codes that are used, in place; they are in order."""
    used = int((codes < FAR).sum())
    found = codes[:used].double()
    if used < 3 or (found.diff() <= 0).any():
        return
    number = torch.arange(used, device=codes.device, dtype=torch.float64)
    number = number - number.mean()
    step = (number @ found) / number.square().sum()
    line = found.mean() + step * number
    if (found - line).abs().max() <= EVEN * step:
        codes[:used] = line.to(codes)


class _Fit:
    """Gradient steps on the templates and poses of a memory."""

    def __init__(self, memory: PoseMemory, steps: int) -> None:
        self.memory = memory
        self.trained = {name: table.detach().requires_grad_() for name, table in tables_of(memory).items()}
        groups = [{"params": [tensor], "lr": RATES[name]} for name, tensor in self.trained.items()]
        self.optimiser = torch.optim.Adam(groups, betas=(0.9, 0.99))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda step: min(1.0, (step + 1) / WARM_UP) * LAST_RATE ** (step / steps)
        )

    def step(self, points: Points) -> None:
        """Take a step; the memory's own tensors change."""
        logits = logits_of(self.memory, points, **self.trained)
        loss = F.binary_cross_entropy_with_logits(logits, points.labels)
        gradients = torch.autograd.grad(loss, list(self.trained.values()))
        for tensor, gradient in zip(self.trained.values(), gradients, strict=True):
            tensor.grad = gradient
        self.optimiser.step()
        self.schedule.step()


@torch.no_grad()
def _gathered(memory: PoseMemory, masks: Masks, codes: Codes, generator: torch.Generator) -> Points:
    """Pixels along outlines: the nearest, all wrong ones, and some others. Images that are read wrongly have none."""
    image, points = points_of(masks, codes, border(masks))
    logits = logits_of(memory, points, **tables_of(memory))
    is_wrong = (logits > 0) != (points.labels > 0.5)
    wrong = torch.bincount(image, is_wrong, len(masks))
    near = logits.abs() <= logits.abs().quantile(NEAR)
    other = torch.rand(len(image), generator=generator, device=generator.device).to(logits) < FARTHER
    codes, pixels, labels = points.some((near | is_wrong | other) & (wrong <= MOST_WRONG)[image])
    return Points(codes.to(torch.uint8), pixels.floor().to(torch.uint8), labels > 0.5)
