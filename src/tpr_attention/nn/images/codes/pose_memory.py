"""A clean-up memory for what a template decoder draws: the shapes, scales, angles, places and colours there are."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tpr_attention.functional.images.splines import knots, read_splines
from tpr_attention.nn.images.codes.clusters import centres_of, modes_around, modes_of
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.poses import Pose, own_frame

__all__ = ["ACROSS", "ANGLE", "COLOUR", "DOWN", "FAR", "SCALE", "SHAPE", "Codes", "PoseMemory"]

FAR = 1e6  # a code that is not used: nothing is near it
MOST = {"shapes": 8, "scales": 16, "angles": 64, "places": 64, "colours": 8}
SPARE = 0.1  # how much larger than its shapes a window is
NEARER = 0.9  # of a step between angles: those that are nearer than this modulo a symmetry look alike
Codes = Int[Tensor, "b codes"]

SHAPE, SCALE, ANGLE, ACROSS, DOWN, COLOUR = range(6)


class PoseMemory(nn.Module):
    """Codes that fillers stand for, found in what the fillers of training images decode to, without labels.

    An object is read as six numbers: its shape, scale, angle, place across and down, and colour, each the code nearest
    to what its fillers decode to. Scales have codes of their own for each shape. How many codes there are is found.
    `refinement.refine` then fits templates and poses to the outlines of training images. A template is a cubic spline:
    smooth, so that what images of one place tell of an outline holds at every other.

    Beside the codes it keeps `units`, how much larger the logarithms of scales of each shape are than what fillers
    decode to; `spread`, how far off a pose may be that is read, see `second_look`; and whether answers are drawn by
    codes, `is_used`. They are zero until something sets them. `orders` says how often each shape is the same in a turn:
    four times for a square; once, until something sets it.

    Args:
        resolution: Rows and columns of the coefficients of a template.

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
    units: Tensor
    orders: Tensor
    is_used: Tensor
    spread: Tensor

    def __init__(self, decoder: TemplateDecoder, resolution: int = 243) -> None:
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
        self.register_buffer("units", like.new_zeros(MOST["shapes"]))
        self.register_buffer("orders", torch.ones(MOST["shapes"], dtype=torch.long, device=like.device))
        self.register_buffer("is_used", torch.zeros((), dtype=torch.bool, device=like.device))
        self.register_buffer("spread", like.new_zeros(3))

    @property
    def counts(self) -> dict[str, int]:
        """How many codes of each kind there are; of scales and places the most."""
        kinds = self.shapes[:, 0], self.log_scales, self.angles, self.places, self.colours[:, 0]
        return {name: int((kind < FAR).sum(-1).max()) for name, kind in zip(MOST, kinds, strict=True)}

    @property
    def shapes_and_scales(self) -> Int[Tensor, "pairs 2"]:
        """All shapes with all their scales."""
        return (self.log_scales < FAR).nonzero()

    @property
    def place_counts(self) -> Int[Tensor, "2"]:
        """How many places there are across and down."""
        return (self.places < FAR).sum(1)

    @property
    def look_alike(self) -> Bool[Tensor, "shapes"]:
        """Shapes that have two angles which are nearer to each other modulo their symmetry than angles usually are."""
        known = self.angles[self.angles < FAR].sort().values
        if len(known) < 2:
            return torch.zeros_like(self.orders, dtype=torch.bool)
        turns = (known.unsqueeze(-1) - known).remainder(2 * math.pi)
        plain = torch.minimum(turns, 2 * math.pi - turns)
        period = (2 * math.pi / self.orders.to(turns))[:, None, None]
        apart = torch.minimum(turns.remainder(period), (-turns).remainder(period))
        nearer = (apart < NEARER * known.diff().median()) & (apart < NEARER * plain)
        return nearer.any((1, 2)) & (self.shapes[:, 0] < FAR)

    @torch.no_grad()
    def find(self, objects: Float[Tensor, "b r f"], decoder: TemplateDecoder, generator: torch.Generator) -> None:
        """Find the codes of these objects instead of those there were, and take over the templates of a decoder."""
        self.forget()
        seen = decoder.seen(objects[:, 0])
        centres = centres_of(seen, generator)
        shape = torch.cdist(seen, centres).argmin(1)
        _store(self.shapes, torch.stack([objects[shape == k, 0].mean(0) for k in range(len(centres))]))
        _store(self.colours, centres_of(decoder.colours(objects), generator))
        pose = decoder.pose(objects)
        _store(self.angles, modes_around(pose.angle))
        for number in shape.unique().tolist():  # type: ignore[no-untyped-call]
            _store(self.log_scales[number], modes_of(pose.log_scale[shape == number], MOST["scales"]))
        for axis in range(2):
            _store(self.places[axis], modes_of(pose.centre[:, axis]))
        self._crop(decoder)

    def forget(self) -> None:
        """Be as empty as at the start."""
        for codes in (self.shapes, self.log_scales, self.angles, self.places, self.colours):
            codes.fill_(FAR)
        self.units.zero_()
        self.orders.fill_(1)
        self.is_used.fill_(False)

    def _crop(self, decoder: TemplateDecoder) -> None:
        """Templates with finer cells, as far as they reach: the rest of the window is empty."""
        known = self.counts["shapes"]
        templates = decoder.template(self.shapes[:known])
        line = torch.linspace(-1, 1, templates.shape[-1], device=templates.device, dtype=templates.dtype)
        far = torch.maximum(line.abs(), line.abs().unsqueeze(-1))
        share = min(1.0, float(far.where(templates > 0, 0).max()) + SPARE)
        self.reach.fill_(share * decoder.reach)
        fine = knots(self.templates.shape[-1], line) * share
        cells = torch.stack(torch.meshgrid(fine, fine, indexing="xy"), -1).expand(known, -1, -1, -1)
        self.templates[:known] = F.grid_sample(
            templates.unsqueeze(1), cells, padding_mode="border", align_corners=True
        )[:, 0]

    @torch.no_grad()
    def read(self, objects: Float[Tensor, "b r f"], decoder: TemplateDecoder) -> Int[Tensor, "b codes"]:
        """The nearest codes."""
        pose = decoder.pose(objects)
        known = self.shapes[:, 0] < FAR
        seen = decoder.seen(torch.cat([objects[:, 0], self.shapes]))
        distance = torch.cdist(seen[: len(objects)], seen[len(objects) :])
        shape = distance.where(known, torch.inf).argmin(1)
        return torch.stack(
            [
                shape,
                ((pose.log_scale + self.units[shape]).unsqueeze(-1) - self.log_scales[shape]).abs().argmin(1),
                self._turns(pose).argmin(1),
                (pose.centre[:, :1] - self.places[0]).abs().argmin(1),
                (pose.centre[:, 1:] - self.places[1]).abs().argmin(1),
                torch.cdist(decoder.colours(objects), self.colours).argmin(1),
            ],
            1,
        )

    def _turns(self, pose: Pose) -> Float[Tensor, "b angles"]:
        """How far the angle of each pose is from each code; far from those that are not used."""
        turn = (pose.angle.unsqueeze(-1) - self.angles).remainder(2 * math.pi)
        return torch.minimum(turn, 2 * math.pi - turn).where(self.angles < FAR, FAR)

    def draw(self, codes: Int[Tensor, "b codes"]) -> Float[Tensor, "b channel height width"]:
        """The images of these codes: how likely each number is one."""
        return self.colours[codes[:, COLOUR]][..., None, None] * self.field(codes).sigmoid().unsqueeze(1)

    def field(self, codes: Int[Tensor, "b codes"]) -> Float[Tensor, "b height width"]:
        """The logarithm of the odds that a pixel is on."""
        pose = self.pose(codes, self.log_scales, self.angles, self.places)
        cells = own_frame(pose, self.side, float(self.reach))
        shape = codes[:, SHAPE].repeat_interleave(self.side**2)
        return read_splines(self.templates, shape, cells.flatten(0, 2)).reshape(-1, self.side, self.side)

    def objects(
        self, codes: Int[Tensor, "b codes"], read: Float[Tensor, "b r f"], decoder: TemplateDecoder
    ) -> Float[Tensor, "b r f"]:
        """Objects that are read as these codes and have the colours of others, with other fillers changed least."""
        shapes = torch.cat([self.shapes[codes[:, SHAPE]].unsqueeze(1), read[:, 1:]], 1)
        return decoder.posed(shapes, self.filler_pose(codes))

    def filler_pose(self, codes: Codes) -> Pose:
        """What fillers of these codes decode to: in the unit of scales that they have."""
        drawn = self.pose(codes, self.log_scales, self.angles, self.places)
        return drawn._replace(log_scale=drawn.log_scale - self.units[codes[:, SHAPE]])

    def pose(self, codes: Codes, log_scales: Tensor, angles: Tensor, places: Tensor) -> Pose:
        """Where templates are drawn, by these tables."""
        shape, scale, angle, across, down, _ = codes.unbind(1)
        centre = torch.stack([places[0][across], places[1][down]], -1)
        return Pose.at_angle(centre, angles[angle], log_scales[shape, scale])


def _store(codes: Tensor, found: Tensor) -> None:
    """Put what was found in front; the rest is far from everything."""
    codes.fill_(FAR)
    codes[: len(found)] = found
