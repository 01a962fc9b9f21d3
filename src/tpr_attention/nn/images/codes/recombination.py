"""Images of combinations of codes that a pose memory knows: also of those that were never shown together."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int8
from torch import Tensor

from tpr_attention.functional.images.splines import read_splines, spline_cells
from tpr_attention.nn.images.codes.pose_memory import COLOUR, SHAPE, Codes, PoseMemory
from tpr_attention.nn.images.poses import own_frame

__all__ = ["Recombination"]

AROUND = 4  # coefficients across and down that a point reads


class Recombination:
    """Draws what codes of a memory draw, as `PoseMemory.draw` does, but with outlines that are not soft.

    A spline lies between the least and the greatest of the sixteen coefficients around a point. So its sign is known
    without reading it, but for points in cells along outlines. The memory must stay as it is.
    """

    def __init__(self, memory: PoseMemory) -> None:
        self.memory = memory
        self.signs = _signs(memory.templates[: memory.counts["shapes"]])

    def codes(self, count: int, generator: torch.Generator) -> Codes:
        """Codes that are drawn independently of each other, but that a scale is one of its shape."""
        pairs, known = self.memory.shapes_and_scales, self.memory.counts
        limits = len(pairs), known["angles"], *self.memory.place_counts.tolist(), known["colours"]
        drawn = [torch.randint(limit, (count,), generator=generator, device=generator.device) for limit in limits]
        pair, *others = (numbers.to(pairs.device) for numbers in drawn)
        return torch.cat([pairs[pair], torch.stack(others, 1)], 1)

    @torch.no_grad()
    def images(self, codes: Codes) -> Float[Tensor, "b channel height width"]:
        """The images of codes: what is on has the colour of the memory."""
        memory = self.memory
        pose = memory.pose(codes, memory.log_scales, memory.angles, memory.places)
        points = own_frame(pose, memory.side, float(memory.reach)).flatten(1, 2)
        column, row = spline_cells(points, memory.templates.shape[-1])[0].unbind(-1)
        size = self.signs.shape[-1]
        signs = self.signs.flatten()[(codes[:, SHAPE, None] * size + row) * size + column]
        image, number = (signs == 0).nonzero(as_tuple=True)
        fields = read_splines(memory.templates, codes[image, SHAPE], points[image, number])
        masks = (signs > 0).to(points)
        masks[image, number] = (fields > 0).to(points)
        masks = masks.view(-1, 1, memory.side, memory.side)
        colours: Tensor = memory.colours[codes[:, COLOUR]]
        return colours[..., None, None] * masks


def _signs(templates: Float[Tensor, "clusters row column"]) -> Int8[Tensor, "clusters down across"]:
    """The sign of splines in each cell: zero where it is not the same for all coefficients around it."""
    greatest, least = (F.max_pool2d(sign * templates.unsqueeze(1), AROUND, 1).squeeze(1) for sign in (1, -1))
    return (least < 0).to(torch.int8) - (greatest <= 0).to(torch.int8)
