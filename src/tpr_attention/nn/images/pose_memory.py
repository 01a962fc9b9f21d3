"""A clean-up memory for what a template decoder draws: the shapes, scales, angles, places and colours there are."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.nn.images.clusters import centres_of, modes_of
from tpr_attention.nn.images.decoders import Pose, TemplateDecoder, own_frame

__all__ = ["PoseMemory"]

FAR = 1e6  # a code that is not used: nothing is near it
MOST = {"shapes": 8, "scales": 16, "angles": 64, "places": 64, "colours": 8}
BAND = 3  # pixels: how wide the outline is along which templates are refined
ELSEWHERE = 0.02  # the share of other pixels
HARD = 0.04  # the share of pixels that are gathered
AT_ONCE = 2**15  # of them
COARSE, FINE = (0.5, 5e-4), (0.5, 2e-4)  # rates of templates and poses
WARM_UP, LAST_RATE = 100, 1e-3
Masks = Float[Tensor, "b height width"]
Codes = Int[Tensor, "b codes"]
Points = tuple[Int[Tensor, "p codes"], Float[Tensor, "p xy"], Float[Tensor, "p"]]

SHAPE, SCALE, ANGLE, ACROSS, DOWN, COLOUR = range(6)


class PoseMemory(nn.Module):
    """Codes that fillers stand for, found in what the fillers of training images decode to, without labels.

    An object is read as six numbers: its shape, scale, angle, place across and down, and colour, each the code nearest
    to what its fillers decode to. Scales have codes of their own for each shape. How many codes there are is found.
    Templates, scales, angles and places are then refined on the outlines of training images.

    Args:
        resolution: Rows and columns of the refined templates.

    >>> memory = PoseMemory(TemplateDecoder(side=64, channels=3, filler_dim=8), resolution=16)
    >>> memory.counts  # nothing is found yet
    {'shapes': 0, 'scales': 0, 'angles': 0, 'places': 0, 'colours': 0}
    """

    shapes: Tensor
    log_scales: Tensor
    angles: Tensor
    places: Tensor
    colours: Tensor
    templates: Tensor
    reach: Tensor

    def __init__(self, decoder: TemplateDecoder, resolution: int = 384) -> None:
        super().__init__()
        self.side = decoder.side
        like = decoder.base.detach()
        for name, shape in {
            "shapes": (MOST["shapes"], decoder.filler_dim),
            "log_scales": (MOST["shapes"], MOST["scales"]),
            "angles": (MOST["angles"],),
            "places": (2, MOST["places"]),
            "colours": (MOST["colours"], decoder.channels),
        }.items():
            self.register_buffer(name, like.new_full(shape, FAR))
        self.register_buffer("templates", like.new_zeros(MOST["shapes"], resolution, resolution))
        self.register_buffer("reach", like.new_ones(()))

    @property
    def counts(self) -> dict[str, int]:
        """How many codes of each kind there are; of scales and places the most."""
        kinds = self.shapes[:, 0], self.log_scales, self.angles, self.places, self.colours[:, 0]
        return {name: int((kind < FAR).sum(-1).max()) for name, kind in zip(MOST, kinds, strict=True)}

    @torch.no_grad()
    def find(self, objects: Float[Tensor, "b r f"], decoder: TemplateDecoder, generator: torch.Generator) -> None:
        """Find the codes of these objects, and take over the templates of a decoder."""
        seen = decoder.seen(objects[:, 0])
        centres = centres_of(seen, generator)
        shape = torch.cdist(seen, centres).argmin(1)
        _store(self.shapes, torch.stack([objects[shape == k, 0].mean(0) for k in range(len(centres))]))
        _store(self.colours, centres_of(decoder.colours(objects), generator))
        pose = decoder.pose(objects)
        angle = _angle(pose)
        middle = torch.atan2(angle.sin().mean(), angle.cos().mean())
        _store(self.angles, modes_of((angle - middle + math.pi).remainder(2 * math.pi) - math.pi) + middle)
        for number in shape.unique().tolist():  # type: ignore[no-untyped-call]
            _store(self.log_scales[number], modes_of(pose.log_scale[shape == number], MOST["scales"]))
        for axis in range(2):
            _store(self.places[axis], modes_of(pose.centre[:, axis]))
        self._crop(decoder)

    def forget(self) -> None:
        """Be as empty as at the start."""
        for codes in (self.shapes, self.log_scales, self.angles, self.places, self.colours):
            codes.fill_(FAR)

    def _crop(self, decoder: TemplateDecoder) -> None:
        """Templates with finer cells, as far as they reach: the rest of the window is empty."""
        known = self.counts["shapes"]
        templates = decoder.template(self.shapes[:known])
        line = torch.linspace(-1, 1, templates.shape[-1], device=templates.device, dtype=templates.dtype)
        far = torch.maximum(line.abs(), line.abs().unsqueeze(-1))
        share = min(1.0, float(far.where(templates > 0, 0).max()) + 0.1)
        self.reach.fill_(share * decoder.reach)
        size = self.templates.shape[-1]
        fine = torch.linspace(-1, 1, size, device=line.device, dtype=line.dtype) * share
        cells = torch.stack(torch.meshgrid(fine, fine, indexing="xy"), -1).expand(known, -1, -1, -1)
        self.templates[:known] = F.grid_sample(templates.unsqueeze(1), cells, align_corners=True)[:, 0]

    @torch.no_grad()
    def read(self, objects: Float[Tensor, "b r f"], decoder: TemplateDecoder) -> Int[Tensor, "b codes"]:
        """The nearest codes."""
        pose = decoder.pose(objects)
        known = self.shapes[:, 0] < FAR
        distance = torch.cdist(decoder.seen(objects[:, 0]), decoder.seen(self.shapes))
        shape = distance.where(known, torch.inf).argmin(1)
        turn = (_angle(pose).unsqueeze(-1) - self.angles).remainder(2 * math.pi)
        turn = torch.minimum(turn, 2 * math.pi - turn).where(self.angles < FAR, FAR)
        codes = [
            shape,
            (pose.log_scale.unsqueeze(-1) - self.log_scales[shape]).abs().argmin(1),
            turn.argmin(1),
            (pose.centre[:, :1] - self.places[0]).abs().argmin(1),
            (pose.centre[:, 1:] - self.places[1]).abs().argmin(1),
            torch.cdist(decoder.colours(objects), self.colours).argmin(1),
        ]
        return torch.stack(codes, 1)

    def draw(self, codes: Int[Tensor, "b codes"]) -> Float[Tensor, "b channel height width"]:
        """The images of these codes: how likely each number is one."""
        pose = self.pose(codes, self.log_scales, self.angles, self.places)
        cells = own_frame(pose, self.side, float(self.reach))
        templates = self.templates[codes[:, SHAPE]].unsqueeze(1)
        field = F.grid_sample(templates, cells, padding_mode="border", align_corners=True)
        return self.colours[codes[:, COLOUR]][..., None, None] * field.sigmoid()

    def pose(self, codes: Codes, log_scales: Tensor, angles: Tensor, places: Tensor) -> Pose:
        """Where templates are drawn, by these tables."""
        shape, scale, angle, across, down, _ = codes.unbind(1)
        turn = angles[angle]
        centre = torch.stack([places[0][across], places[1][down]], -1)
        return Pose(centre, torch.stack([turn.cos(), turn.sin()], -1), log_scales[shape, scale])

    def refine(
        self, examples: Iterable[tuple[Masks, Codes]], steps: Sequence[int], generator: torch.Generator
    ) -> Iterator[None]:
        """Fit templates and codes to the outlines of images whose codes are read. Yields after every step.

        First all pixels along the outlines of some images are fitted. Then those that are hard to tell, which are the
        ones that the outline almost touches, are gathered from many images and fitted again and again: to have nearly
        every pixel of an image right, an outline must be right to a thousandth of a pixel.

        Args:
            examples: Masks and their codes, without end.
            steps: How many examples are fitted, how many are gathered from, and how many steps fit what was gathered.
        """
        first, gathered, last = steps
        examples = iter(examples)
        fit = _Fit(self, first, COARSE)
        for masks, codes in islice(examples, first):
            fit.step(*_outline(masks, codes, generator))
            yield
        hard: list[Points] = []
        for masks, codes in islice(examples, gathered):
            points = _outline(masks, codes, generator)
            sure = fit.logits(points[0], points[1]).abs()
            kept = sure.argsort()[: int(HARD * len(sure))]
            hard.append((points[0][kept], points[1][kept], points[2][kept]))
            yield
        codes, pixels, labels = (torch.cat(parts) for parts in zip(*hard, strict=True))
        fit = _Fit(self, last, FINE)
        for _ in range(last):
            some = torch.randint(len(labels), (AT_ONCE,), generator=generator, device=generator.device)
            some = some.to(labels.device)
            fit.step(codes[some], pixels[some], labels[some])
            yield


class _Fit:
    """Gradient steps on the templates and poses of a memory."""

    def __init__(self, memory: PoseMemory, steps: int, rates: tuple[float, float]) -> None:
        self.memory = memory
        names = "templates", "log_scales", "angles", "places"
        self.trained = {name: getattr(memory, name).detach().requires_grad_() for name in names}
        of_templates, of_poses = rates
        groups = [
            {"params": [tensor], "lr": of_templates if name == "templates" else of_poses}
            for name, tensor in self.trained.items()
        ]
        self.optimiser = torch.optim.Adam(groups, betas=(0.9, 0.99))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda step: min(1.0, (step + 1) / WARM_UP) * LAST_RATE ** (step / steps)
        )

    def logits(self, codes: Codes, pixels: Float[Tensor, "p xy"]) -> Float[Tensor, "p"]:
        """The logarithms of the odds that these pixels are on."""
        with torch.no_grad():
            return self._logits(codes, pixels)

    def _logits(self, codes: Codes, pixels: Float[Tensor, "p xy"]) -> Float[Tensor, "p"]:
        templates, *poses = self.trained.values()
        pose = self.memory.pose(codes, *poses)
        return _read_templates(templates, codes[:, SHAPE], pixels, pose, float(self.memory.reach))

    def step(self, codes: Codes, pixels: Float[Tensor, "p xy"], labels: Float[Tensor, "p"]) -> None:
        """Take a step; the memory's own tensors change."""
        loss = F.binary_cross_entropy_with_logits(self._logits(codes, pixels), labels)
        gradients = torch.autograd.grad(loss, list(self.trained.values()))
        for tensor, gradient in zip(self.trained.values(), gradients, strict=True):
            tensor.grad = gradient
        self.optimiser.step()
        self.schedule.step()


def _store(codes: Tensor, found: Tensor) -> None:
    """Put what was found in front; the rest is far from everything."""
    codes.fill_(FAR)
    codes[: len(found)] = found


def _angle(pose: Pose) -> Float[Tensor, "b"]:
    return torch.atan2(pose.direction[:, 1], pose.direction[:, 0])


def _outline(masks: Masks, codes: Codes, generator: torch.Generator) -> Points:
    """Pixels near the border of what is on, and a few others: codes, centres, and whether they are on."""
    padded = masks.unsqueeze(1)
    most, least = (sign * F.max_pool2d(sign * padded, BAND, 1, BAND // 2).squeeze(1) for sign in (1, -1))
    other = torch.rand(masks.shape, generator=generator, device=generator.device).to(masks) < ELSEWHERE
    image, row, column = ((most != least) | other).nonzero(as_tuple=True)
    return codes[image], torch.stack([column, row], -1) + 0.5, masks[image, row, column]


def _read_templates(
    templates: Float[Tensor, "clusters row column"],
    shape: Int[Tensor, "p"],
    pixel: Float[Tensor, "p xy"],
    pose: Pose,
    reach: float,
) -> Float[Tensor, "p"]:
    """The templates at single pixels, by bilinear interpolation as in `grid_sample`."""
    size = templates.shape[-1]
    near = (pixel - pose.centre) * (torch.exp(-pose.log_scale) / reach).unsqueeze(-1)
    cos, sin = pose.direction.unbind(-1)
    across, down = near.unbind(-1)
    own = torch.stack([cos * across - sin * down, sin * across + cos * down], -1)
    cell = ((own.clamp(-1, 1) + 1) * (size - 1) / 2).clamp(max=size - 1 - 1e-4)
    corner = cell.detach().floor()
    share_x, share_y = (cell - corner).unbind(-1)
    column, row = corner.long().unbind(-1)
    first = (shape * size + row) * size + column
    flat = templates.flatten()
    upper = flat[first] * (1 - share_x) + flat[first + 1] * share_x
    lower = flat[first + size] * (1 - share_x) + flat[first + size + 1] * share_x
    return upper * (1 - share_y) + lower * share_y
