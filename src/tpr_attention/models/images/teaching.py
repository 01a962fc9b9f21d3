"""What is known better than the encoder reads it, learned by the encoder, the layer and the decoder.

That are the codes that a pose memory has found, or else what a second look at images finds. Each part is trained by
itself: the encoder to read the object of an image, the layer to make of the objects of two images that of the target,
and the decoder to draw the object of an image. They share no parameter, so that their errors need no weights. No label
is used: codes are read by the encoder as it was before, and replaced by better ones where they draw an image badly.
Fillers of scales then have one unit for all shapes.
"""

import copy
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.functional.images.likelihood import negative_log_likelihood
from tpr_attention.models.contract import Examples
from tpr_attention.nn.images.decoders import Pose, TemplateDecoder
from tpr_attention.nn.images.outlines import outlines_of
from tpr_attention.nn.images.pose_memory import ANGLE, SCALE, SHAPE, PoseMemory
from tpr_attention.nn.images.regularity import units_of
from tpr_attention.nn.images.second_look import second_look

__all__ = ["CodeLessons", "Lessons", "LookLessons", "Pupil", "images_of", "teach", "teach_codes"]

Images = Float[Tensor, "b channel height width"]
Objects = Float[Tensor, "b r f"]

RATES = {"encoder": 1e-3, "decoder": 3e-3}
COMPOSED, ITERATIONS = 100, 300  # batches whose objects the composition is fitted to, and quasi-Newton steps
DROPPED = 0.02  # of the examples: those that are left out when it is fitted again
WIDER = (2.0, 1.0, 1.0)  # than what is measured: how far off positions, angles and scales may be
LEAST_SPREAD = 1e-3  # pixels, radians, or of a scale
WARM_UP = 50
RADIUS = 10.0  # pixels: errors of angles and scales count as far as they move an outline here
DRAWN = 3  # of so many targets, one is drawn
MOST_WRONG = 2  # pixels of an outline: codes that draw an image with more are verified
TINY = 1e-12  # keeps the gradient of a length of zero finite
LAST = 50  # steps over which the spread of what is read is measured


class Pupil(NamedTuple):
    """What is taught.

    Args:
        composition: Parameters of what is done with objects; none if nothing is.
        composition_error: From the objects of all images of examples, and their other inputs, how wrong what is
            composed is, for each example.
    """

    encoder: nn.Module
    decoder: TemplateDecoder
    composition: Sequence[nn.Parameter]
    composition_error: Callable[[Sequence[Tensor]], Tensor]


def images_of(batch: Examples) -> tuple[list[Images], list[Tensor]]:
    """The images of examples, the target last, and their other inputs."""
    images = [tensor for tensor in (*batch.inputs, batch.target) if tensor.ndim == 4]
    return images, [tensor for tensor in batch.inputs if tensor.ndim != 4]


@runtime_checkable
class Lessons(Protocol):
    """What should be read of images."""

    def objects(self, images: Images, read: Objects) -> Objects:
        """Objects of images, given those that the encoder reads now."""


class Step(NamedTuple):
    """What a step has used: examples, the objects of their images, and how far off those were that were read."""

    batch: Examples
    objects: Objects
    off: Float[Tensor, "b 4"]


def teach(pupil: Pupil, lessons: Lessons, batches: Iterable[Examples], steps: int) -> Iterator[Step]:
    """Train encoder and decoder."""
    decoder = pupil.decoder
    parts = {"encoder": [*pupil.encoder.parameters()], "decoder": [decoder.base, decoder.templates, decoder.gain]}
    optimiser = torch.optim.Adam([{"params": part, "lr": RATES[name]} for name, part in parts.items()], fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / WARM_UP) * math.cos(math.pi / 2 * step / steps) ** 2
    )
    for batch in islice(batches, steps):
        images = torch.cat(images_of(batch)[0])
        read = pupil.encoder(images)
        with torch.no_grad():
            wanted = lessons.objects(images, read.detach())
        off = _pose_error(decoder.pose(read), decoder.pose(wanted), decoder.side)
        few = -(-len(batch.target) // DRAWN)
        drawn = decoder(wanted[-len(batch.target) :][:few])
        loss = (
            off.square().sum(1).mean()
            + (read - wanted)[:, :3].square().sum((1, 2)).mean()
            + negative_log_likelihood(drawn, batch.target[:few]).mean()
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        yield Step(batch, wanted, off.detach())
    for part in (pupil.encoder, decoder):
        part.zero_grad()


def teach_codes(
    pupil: Pupil, memory: PoseMemory, objects: Objects, batches: Iterator[Examples], steps: int
) -> Iterator[None]:
    """Train a pupil on the codes of a memory, which keeps how far off what is read is then. Yields after every step.

    Args:
        objects: Some that the encoder reads now; of their fillers those of codes are made.
    """
    lessons = CodeLessons(memory, pupil, objects)
    composed: list[tuple[Tensor, ...]] = []
    last: deque[Tensor] = deque(maxlen=LAST)
    for step in teach(pupil, lessons, batches, steps):
        if len(composed) < COMPOSED:
            images, others = images_of(step.batch)
            composed.append((*torch.split(step.objects, [len(some) for some in images]), *others))
        last.append(step.off)
        yield
    if pupil.composition:
        _fit_composition(pupil, [torch.cat(tensors) for tensors in zip(*composed, strict=True)])
    across, down, turn, grow = torch.cat([*last]).square().mean(0)
    spread = torch.stack([((across + down) / 2).sqrt(), turn.sqrt() / RADIUS, grow.sqrt() / RADIUS])
    memory.spread.copy_(spread.clamp_min(LEAST_SPREAD) * spread.new_tensor(WIDER))
    memory.units.copy_(lessons.units)


def _fit_composition(pupil: Pupil, tensors: Sequence[Tensor]) -> None:
    """Fit the composition to objects, and again without those that it then has most wrong: a few have wrong codes."""
    _minimise(pupil, tensors)
    with torch.no_grad():
        errors = pupil.composition_error(tensors)
    right = errors <= errors.quantile(1 - DROPPED)
    _minimise(pupil, [tensor[right] for tensor in tensors])


def _minimise(pupil: Pupil, tensors: Sequence[Tensor]) -> None:
    """There are few parameters, so that every quasi-Newton step uses all examples."""
    solver = torch.optim.LBFGS(pupil.composition, max_iter=ITERATIONS, history_size=30, line_search_fn="strong_wolfe")

    def error() -> Tensor:
        solver.zero_grad()
        found = pupil.composition_error(tensors).mean()
        found.backward()  # type: ignore[no-untyped-call]
        return found

    solver.step(error)  # type: ignore[no-untyped-call]
    solver.zero_grad()


class CodeLessons:
    """Objects of images by their codes: each scale and each angle has the mean of the fillers that are read as it."""

    @torch.no_grad()
    def __init__(self, memory: PoseMemory, pupil: Pupil, objects: Objects) -> None:
        self.memory, self.decoder, self.units = memory, pupil.decoder, units_of(memory)
        self.encoder = copy.deepcopy(pupil.encoder)  # as it is before it is taught
        codes = memory.read(objects, self.decoder)
        self.scales = _means(objects[:, 1], codes[:, SCALE])
        self.angles = _means(objects[:, 2], codes[:, ANGLE])

    def objects(self, images: Images, read: Objects) -> Objects:
        """Objects of the codes of images; colours are as they are read."""
        memory, decoder, masks = self.memory, self.decoder, images.sum(1)
        codes = memory.read(self.encoder(images), decoder)
        doubted = outlines_of(memory, masks, codes).counts > MOST_WRONG
        if doubted.any():
            codes[doubted] = memory.verified(codes[doubted], masks[doubted])
        scales, angles = self.scales[codes[:, SCALE]], self.angles[codes[:, ANGLE]]
        found = torch.stack([memory.shapes[codes[:, SHAPE]], scales, angles, *read[:, 3:].unbind(1)], 1)
        pose = memory.pose(codes, memory.log_scales - self.units.unsqueeze(-1), memory.angles, memory.places)
        return decoder.posed(found, pose)


class LookLessons:
    """Objects of images as a second look finds them."""

    def __init__(self, decoder: TemplateDecoder, spread: Float[Tensor, "3"]) -> None:
        self.decoder, self.spread = decoder, spread

    def objects(self, images: Images, read: Objects) -> Objects:
        """What is read, corrected."""
        return second_look(self.decoder, read, images.sum(1), self.spread)


def _means(fillers: Float[Tensor, "b f"], codes: Int[Tensor, "b"]) -> Float[Tensor, "codes f"]:
    """The mean of the fillers of each code; of all, for a code that none has."""
    members = F.one_hot(codes).to(fillers)
    sizes = members.sum(0).unsqueeze(-1)
    return torch.where(sizes > 0, members.mT @ fillers / sizes.clamp_min(1), fillers.mean(0))


def _pose_error(read: Pose, wanted: Pose, side: int) -> Float[Tensor, "b 4"]:
    """How far off poses are, in pixels: across, down, by a turn, and by a scale."""
    centre = (read.centre - wanted.centre + side / 2).remainder(side) - side / 2
    turn = (read.direction - wanted.direction).square().sum(-1).clamp_min(TINY).sqrt()
    grow = read.log_scale - wanted.log_scale
    return torch.cat([centre, RADIUS * torch.stack([turn, grow], 1)], 1)
