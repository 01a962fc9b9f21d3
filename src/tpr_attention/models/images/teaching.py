"""Codes as teachers: what a pose memory has found is learned by the encoder, the layer and the decoder.

Each is trained by itself on what the codes of training images say: the encoder to read the object of an image's codes,
the layer to make of the objects of two images that of the target, and the decoder to draw the object of an image. They
share no parameter, so that their errors need no weights. No label is used: codes are read by the encoder as it was
before, and replaced by better ones where they draw an image badly. Fillers of scales then have one unit for all shapes.
"""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.functional.images.likelihood import negative_log_likelihood
from tpr_attention.models.contract import Examples
from tpr_attention.nn.images.decoders import Pose, TemplateDecoder
from tpr_attention.nn.images.outlines import Masks, outlines_of
from tpr_attention.nn.images.pose_memory import ANGLE, SCALE, SHAPE, PoseMemory
from tpr_attention.nn.images.regularity import units_of
from tpr_attention.nn.images.second_look import second_look

__all__ = ["Pupil", "images_of", "sharpen", "teach"]

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


def teach(
    pupil: Pupil, memory: PoseMemory, objects: Objects, batches: Iterable[Examples], steps: int
) -> Iterator[None]:
    """Train a pupil on the codes of a memory, which keeps how far off what is read is then. Yields after every step.

    Args:
        objects: Some that the encoder reads now; of their fillers those of codes are made.
    """
    decoder, before = pupil.decoder, copy.deepcopy(pupil.encoder)
    lessons = _Lessons(memory, decoder, objects)
    parts = {"encoder": [*pupil.encoder.parameters()], "decoder": _drawing(decoder)}
    optimiser, schedule = _training(parts, steps)
    errors: list[Tensor] = []
    composed: list[tuple[Tensor, ...]] = []
    for number, batch in enumerate(islice(batches, steps)):
        images, others = images_of(batch)
        everything = torch.cat(images)
        read = pupil.encoder(everything)
        with torch.no_grad():
            wanted = lessons.objects(everything.sum(1), before(everything))
        off = _pose_error(decoder.pose(read), decoder.pose(wanted), decoder.side)
        by_image = torch.split(wanted, [len(some) for some in images])
        few = -(-len(batch.target) // DRAWN)
        loss = (
            off.square().sum(1).mean()
            + (read - wanted)[:, :3].square().sum((1, 2)).mean()
            + negative_log_likelihood(decoder(by_image[-1][:few]), batch.target[:few]).mean()
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if number < COMPOSED:
            composed.append((*by_image, *others))
        if number >= steps - LAST:
            errors.append(off.detach())
        yield
    for part in (pupil.encoder, decoder):
        part.zero_grad()
    if pupil.composition:
        _fit_composition(pupil, [torch.cat(tensors) for tensors in zip(*composed, strict=True)])
    across, down, turn, grow = torch.cat(errors).square().mean(0)
    spread = torch.stack([((across + down) / 2).sqrt(), turn.sqrt() / RADIUS, grow.sqrt() / RADIUS])
    memory.spread.copy_(spread.clamp_min(LEAST_SPREAD) * spread.new_tensor(WIDER))
    memory.units.copy_(lessons.units)


def sharpen(
    encoder: nn.Module,
    decoder: TemplateDecoder,
    spread: Float[Tensor, "3"],
    batches: Iterable[Examples],
    steps: int,
) -> Iterator[None]:
    """Train what a decoder draws on poses that a second look finds, nearer to the truth than those of training.

    This is for images without codes. The encoder stays as it is: what a second look finds tells it no more than images
    did. Yields after every step.
    """
    optimiser, schedule = _training({"decoder": _drawing(decoder)}, steps)
    for batch in islice(batches, steps):
        with torch.no_grad():
            objects = second_look(decoder, encoder(batch.target), batch.target.sum(1), spread)
        negative_log_likelihood(decoder(objects), batch.target).mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        yield
    decoder.zero_grad()


def _drawing(decoder: TemplateDecoder) -> list[nn.Parameter]:
    """What a decoder draws, but for poses and colours."""
    return [decoder.base, decoder.templates, decoder.gain]


def _training(
    parts: Mapping[str, Sequence[nn.Parameter]], steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """An optimiser of parts that are named as their rates are, and a schedule that ends at zero."""
    optimiser = torch.optim.Adam([{"params": part, "lr": RATES[name]} for name, part in parts.items()], fused=True)
    return optimiser, torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / WARM_UP) * math.cos(math.pi / 2 * step / steps) ** 2
    )


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


class _Lessons:
    """Objects of images by their codes: each scale and each angle has the mean of the fillers that are read as it."""

    @torch.no_grad()
    def __init__(self, memory: PoseMemory, decoder: TemplateDecoder, objects: Objects) -> None:
        self.memory, self.decoder, self.units = memory, decoder, units_of(memory)
        codes = memory.read(objects, decoder)
        self.scales = _means(objects[:, 1], codes[:, SCALE])
        self.angles = _means(objects[:, 2], codes[:, ANGLE])

    def objects(self, masks: Masks, read: Objects) -> Objects:
        """What should be read of images, by the codes of what was read before; colours stay."""
        memory, decoder = self.memory, self.decoder
        codes = memory.read(read, decoder)
        doubted = outlines_of(memory, masks, codes).counts > MOST_WRONG
        if doubted.any():
            codes[doubted] = memory.verified(codes[doubted], masks[doubted])
        scales, angles = self.scales[codes[:, SCALE]], self.angles[codes[:, ANGLE]]
        found = torch.stack([memory.shapes[codes[:, SHAPE]], scales, angles, *read[:, 3:].unbind(1)], 1)
        pose = memory.pose(codes, memory.log_scales - self.units.unsqueeze(-1), memory.angles, memory.places)
        return decoder.posed(found, pose)


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
