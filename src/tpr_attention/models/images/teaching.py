"""Codes as teachers: what a pose memory has found is learned by the encoder, the layer and the decoder.

The memory draws combinations of its codes, also those that training never shows. The encoder is trained to read the
object of the codes of such an image, and the decoder to draw it. The layer is fitted to objects of training examples,
by the codes that are then read of their images. These three share no parameter, so that their errors need no weights.
No label is used: what training does not show is drawn by the memory. Fillers of scales then have one unit for all
shapes.
"""

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
from tpr_attention.nn.images.codes.pose_memory import ANGLE, COLOUR, SCALE, SHAPE, Codes, PoseMemory
from tpr_attention.nn.images.codes.recombination import Recombination
from tpr_attention.nn.images.codes.regularity import units_of
from tpr_attention.nn.images.codes.verification import codes_of
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.poses import Pose
from tpr_attention.nn.images.second_look import DIRECTIONS, second_look

__all__ = ["Pupil", "images_of", "sharpen", "teach"]

Images = Float[Tensor, "b channel height width"]
Objects = Float[Tensor, "b r f"]

RATES = {"encoder": 1e-3, "decoder": 3e-3}
COMPOSED, ITERATIONS = 100, 500  # batches whose objects the composition is fitted to, and quasi-Newton steps
DROPPED = 0.02  # of the examples: those that are left out when it is fitted again
WIDER = (2.0, 1.0, 1.0)  # than what is measured: how far off positions, angles and scales may be
LEAST_SPREAD = 1e-3  # pixels, radians, or of a scale
WARM_UP = 50
LEARNED = (0, 1, 2, 4)  # roles whose fillers are learned; positions have a code of their own
RADIUS = 10.0  # pixels: errors of angles and scales count as far as they move an outline here
LESSON, DRAWN = 64, 12  # images of a step, and how many of them the decoder draws
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
    pupil: Pupil,
    memory: PoseMemory,
    objects: Objects,
    batches: Iterable[Examples],
    steps: int,
    generator: torch.Generator,
) -> Iterator[None]:
    """Train a pupil on the codes of a memory, which keeps how far off what is read is then. Yields after every step.

    Args:
        objects: Some in the frame of the memory; of their fillers those of codes are made.
        batches: Training examples, for the composition.
    """
    decoder, lessons, made = pupil.decoder, _Lessons(memory, pupil.decoder, objects), Recombination(memory)
    parts = {"encoder": [*pupil.encoder.parameters()], "decoder": _drawing(decoder)}
    optimiser, schedule = _training(parts, steps)
    errors: list[Tensor] = []
    for number in range(steps):
        codes = made.codes(LESSON, generator)
        images = made.images(codes)
        read = pupil.encoder(images)
        wanted = lessons.objects(codes, decoder.pose(read.detach()).angle)
        off = _pose_error(decoder.pose(read), decoder.pose(wanted), decoder.side)
        loss = (
            off.square().sum(1).mean()
            + (read - wanted)[:, LEARNED].square().sum((1, 2)).mean()
            + negative_log_likelihood(decoder(wanted[:DRAWN]), images[:DRAWN]).mean()
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if number >= steps - LAST:
            errors.append(off.detach())
        yield
    for part in (pupil.encoder, decoder):
        part.zero_grad()
    across, down, turn, grow = torch.cat(errors).square().mean(0)
    spread = torch.stack([((across + down) / 2).sqrt(), turn.sqrt() / RADIUS, grow.sqrt() / RADIUS])
    memory.spread.copy_(spread.clamp_min(LEAST_SPREAD) * spread.new_tensor(WIDER))
    memory.units.copy_(lessons.units)
    if pupil.composition:
        examples = [lessons.examples(batch, pupil.encoder) for batch in islice(batches, COMPOSED)]
        _fit_composition(pupil, [torch.cat(tensors) for tensors in zip(*examples, strict=True)])


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
            objects = second_look(decoder, encoder(batch.target), batch.target.sum(1), spread, DIRECTIONS)
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
    """Objects of codes: each scale, angle and colour has the mean of the fillers that are read as it."""

    @torch.no_grad()
    def __init__(self, memory: PoseMemory, decoder: TemplateDecoder, objects: Objects) -> None:
        self.memory, self.decoder, self.units = memory, decoder, units_of(memory)
        codes = memory.read(objects, decoder)
        kinds = (1, SCALE), (2, ANGLE), (4, COLOUR)
        most = memory.log_scales.shape[1], len(memory.angles), len(memory.colours)
        self.scales, self.angles, self.colours = (
            _means(objects[:, role], codes[:, kind], count) for (role, kind), count in zip(kinds, most, strict=True)
        )

    @torch.no_grad()
    def objects(self, codes: Codes, near: Float[Tensor, "b"] | None = None) -> Objects:
        """What should be read of the images of codes.

        Args:
            near: Angles. Of a shape some of whose angles look alike, the symmetric one nearest to this should be read.
        """
        memory = self.memory
        pose = memory.pose(codes, memory.log_scales - self.units.unsqueeze(-1), memory.angles, memory.places)
        alike = memory.look_alike[codes[:, SHAPE]]
        if near is not None and alike.any():
            period = 2 * math.pi / memory.orders[codes[:, SHAPE]]
            turns = ((near - pose.angle) / period).round() * period
            pose = Pose.at_angle(pose.centre, pose.angle + turns.where(alike, 0), pose.log_scale)
        shapes, colours = memory.shapes[codes[:, SHAPE]], self.colours[codes[:, COLOUR]]
        contents = shapes, self.scales[codes[:, SCALE]], self.angles[codes[:, ANGLE]]
        anywhere = torch.zeros_like(shapes)  # until it is posed
        return self.decoder.posed(torch.stack([*contents, anywhere, colours], 1), pose)

    @torch.no_grad()
    def examples(self, batch: Examples, encoder: nn.Module) -> list[Tensor]:
        """The objects of all images of examples, by the codes that an encoder reads, and their other inputs."""
        images, others = images_of(batch)
        read = [codes_of(self.memory, self.decoder, encoder(some), some.sum(1)) for some in images]
        return [*map(self.objects, read), *others]


def _means(fillers: Float[Tensor, "b f"], codes: Int[Tensor, "b"], count: int) -> Float[Tensor, "codes f"]:
    """The mean of the fillers of each code; of all, for a code that none has."""
    members = F.one_hot(codes, count).to(fillers)
    sizes = members.sum(0).unsqueeze(-1)
    return torch.where(sizes > 0, members.mT @ fillers / sizes.clamp_min(1), fillers.mean(0))


def _pose_error(read: Pose, wanted: Pose, side: int) -> Float[Tensor, "b 4"]:
    """How far off poses are, in pixels: across, down, by a turn, and by a scale."""
    centre = (read.centre - wanted.centre + side / 2).remainder(side) - side / 2
    turn = (read.direction - wanted.direction).square().sum(-1).clamp_min(TINY).sqrt()
    grow = read.log_scale - wanted.log_scale
    return torch.cat([centre, RADIUS * torch.stack([turn, grow], 1)], 1)
