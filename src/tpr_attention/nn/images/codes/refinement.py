"""Outlines of a pose memory, refined until nearly every pixel of an image is right.

A pixel is wrong if the outline passes on the wrong side of its centre. To have 99 of 100 images right, an outline of
fifty pixels must be right to 1e-4 of a pixel. Four things make that possible. Codes that are evenly spaced are made
exactly so. A template has few free coefficients where its outline is smooth (`levels`), so that many pixels tell of
each. All images that training shows are used, each once. Templates and codes are fitted together, to all pixels at once
(`separation`).
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from tpr_attention.nn.images.codes.levels import Levels
from tpr_attention.nn.images.codes.outlines import Points, logits_of, outlines_of, points_of, tables_of, widened
from tpr_attention.nn.images.codes.pose_memory import Codes, PoseMemory
from tpr_attention.nn.images.codes.regularity import even_out
from tpr_attention.nn.images.codes.separation import AT_ONCE, separate, wrong_around
from tpr_attention.nn.images.codes.verification import MOST_WRONG
from tpr_attention.nn.images.pixels import Masks, border

__all__ = ["fit", "refine"]

ELSEWHERE = 0.02  # the share of pixels away from outlines that gradient steps see
NEAR = 0.25  # the share of the pixels of outlines that is gathered: the nearest
FARTHER = 0.1  # the share of the others that is gathered
RATES = {"templates": 0.3, "log_scales": 5e-4, "angles": 5e-4, "places": 5e-4}
WARM_UP, LAST_RATE = 20, 1e-2
FIRST_SHARE, SHARE = 0.3, 0.06  # of the gathered pixels, the nearest: those that a round fits, in the first and later
FEWEST = 2**15  # pixels: a round fits as many, if there are
GUARDS = 0.03  # the share of the others that it fits as well
ROUNDS = 2  # of each level; the coarsest has one more
STEEPER, STEEPENED = 3.0, range(2, 6)  # how much steeper outlines become, and before which rounds


def fit(
    memory: PoseMemory, examples: Iterable[tuple[Masks, Codes]], steps: int, generator: torch.Generator
) -> Iterator[None]:
    """Fit coarse templates and all codes to images whose codes are read, and space codes evenly where they nearly are.

    Yields after every step, of which each takes one of the examples.
    """
    levels = Levels(memory.templates)
    fitted = _Fit(memory, levels.parts[0], steps)
    for masks, codes in islice(examples, steps):
        others = torch.rand(masks.shape, generator=generator, device=generator.device).to(masks) < ELSEWHERE
        fitted.step(points_of(masks, codes, border(masks) | others)[1])
        yield
    memory.templates.copy_(levels.templates())
    even_out(memory)


def refine(
    memory: PoseMemory,
    examples: Iterable[tuple[Masks, Codes]],
    gathered: int,
    iterations: int,
    generator: torch.Generator,
) -> Iterator[None]:
    """Fit templates and codes to the outlines of images whose codes are read. Yields every now and then.

    Args:
        examples: Masks and their codes, without end.
        gathered: How many examples pixels are gathered from.
        iterations: How many quasi-Newton steps fit templates and codes to these.
    """
    levels, gathering = Levels(memory.templates), _Gathering(memory, generator)
    for masks, codes in islice(examples, gathered):
        gathering.add(masks, codes)
        yield
    if not gathering.parts:  # all images were read wrongly
        return
    points = gathering.points()
    rounds = [0, *(level for level in range(len(levels)) for _ in range(ROUNDS))]
    for number, level in enumerate(rounds):
        if level > rounds[number - 1]:
            levels.open(level, wrong_around(memory, points))
        nearest = points.some(_nearest(memory, points, SHARE if number else FIRST_SHARE, generator))
        if number in STEEPENED:
            levels.steepen(STEEPER)
            memory.templates.mul_(STEEPER)
        yield from separate(memory, levels, nearest, iterations // len(rounds), with_moves=number > 0)
        even_out(memory)


class _Fit:
    """Gradient steps on the poses of a memory and on templates of fewer coefficients."""

    def __init__(self, memory: PoseMemory, templates: Float[Tensor, "clusters row column"], steps: int) -> None:
        self.memory = memory
        tables = tables_of(memory) | {"templates": templates}
        self.trained = {name: table.detach().requires_grad_() for name, table in tables.items()}
        groups = [{"params": [tensor], "lr": RATES[name]} for name, tensor in self.trained.items()]
        self.optimiser = torch.optim.Adam(groups, betas=(0.9, 0.99))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda step: min(1.0, (step + 1) / WARM_UP) * LAST_RATE ** (step / steps)
        )

    def step(self, points: Points) -> None:
        """Take a step; the tensors change themselves."""
        logits = logits_of(self.memory, points, **self.trained)
        loss = F.binary_cross_entropy_with_logits(logits, points.labels)
        gradients = torch.autograd.grad(loss, list(self.trained.values()))
        for tensor, gradient in zip(self.trained.values(), gradients, strict=True):
            tensor.grad = gradient
        self.optimiser.step()
        self.schedule.step()


class _Gathering:
    """Pixels along the outlines of images, of each combination of codes once."""

    def __init__(self, memory: PoseMemory, generator: torch.Generator) -> None:
        self.memory, self.generator = memory, generator
        sizes = [
            len(memory.shapes),
            memory.log_scales.shape[-1],
            *(memory.angles.shape),
            *2 * (memory.places.shape[-1],),
        ]
        self.known = torch.zeros(sizes, dtype=torch.bool, device=memory.angles.device)
        self.parts: list[Points] = []

    @torch.no_grad()
    def add(self, masks: Masks, codes: Codes) -> None:
        """Gather the nearest pixels, all wrong ones, and some others. Images that are read wrongly have none."""
        fresh = ~self.known[codes[:, :-1].unbind(1)]
        masks, codes = masks[fresh], codes[fresh]
        image, points, logits, is_wrong, counts = outlines_of(self.memory, masks, codes)
        if not len(image):
            return
        is_read = counts <= MOST_WRONG
        self.known[codes[is_read, :-1].unbind(1)] = True
        near = logits.abs() <= logits.abs().quantile(NEAR)
        other = torch.rand(len(image), generator=self.generator, device=self.generator.device).to(logits) < FARTHER
        codes, pixels, labels = points.some((near | is_wrong | other) & is_read[image])
        if len(labels):
            self.parts.append(Points(codes.to(torch.uint8), pixels.floor().to(torch.uint8), labels > 0.5))

    def points(self) -> Points:
        """All that was gathered."""
        return Points(*(torch.cat(tensors) for tensors in zip(*self.parts, strict=True)))


@torch.no_grad()
def _nearest(memory: PoseMemory, points: Points, share: float, generator: torch.Generator) -> Bool[Tensor, "p"]:
    """Which pixels are fitted: the nearest, the wrong ones, and some others."""
    parts = points.split(AT_ONCE)
    logits = torch.cat([logits_of(memory, widened(part, memory), **tables_of(memory)) for part in parts])
    wrong, far = (logits > 0) != points.labels, logits.abs()
    count = min(len(far), max(FEWEST, int(share * len(far))))
    near = far <= far.kthvalue(count).values
    others = torch.rand(len(far), generator=generator, device=generator.device).to(far) < GUARDS
    return near | wrong | others
