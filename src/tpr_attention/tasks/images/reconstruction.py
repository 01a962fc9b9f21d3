"""Reconstruction of white sprites under published splits: from an image, or from true fillers, to the image."""

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any, Literal

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from tpr_attention.functional.signature import choose
from tpr_attention.tasks.composition.held_out import HeldOut, Split, find_split
from tpr_attention.tasks.images.fillers import FILLER_DIM, true_fillers
from tpr_attention.tasks.images.floors import AnswerMetrics, floors_by, image_floors, nearest_known
from tpr_attention.tasks.images.frames import SIDE, as_pictures, draw_frames, white_grid
from tpr_attention.tasks.images.metrics import MeasuredImages
from tpr_attention.tasks.images.reading import read_frames
from tpr_attention.tasks.images.splits import PUBLISHED
from tpr_attention.tasks.task import Batch

__all__ = ["ImageReconstruction"]

GIVEN = {name: name for name in ("image", "fillers")}


class ImageReconstruction(MeasuredImages):
    """Draw what is given: an image, or its true fillers. Objects are white sprites, drawn uniformly.

    A model is called as `model(image)` with `[n, 1, 64, 64]` or `model(fillers)` with `[n, 5, 8]`, and answers with the
    probability of each number of the image to be 1. Training and "in_distribution" have no object that the split holds
    out, "ood" has no other.

    Args:
        split: A name of `PUBLISHED`, the import path of a predicate on factors, a predicate, or a combination that is
            held out. Positions go from 0 to 1.
        angles: How many of the 40 orientations there are, from the first. The published splits have all.
        given: "image", or "fillers" for a decoder alone; see `true_fillers`.

    >>> task = ImageReconstruction("r2r-1", given="fillers")
    >>> batch = task.draw("ood", 4, torch.Generator().manual_seed(0), torch.float32)
    >>> batch.inputs[0].shape, batch.target.shape, batch.groups["shape"]  # hearts
    (torch.Size([4, 5, 8]), torch.Size([4, 1, 64, 64]), tensor([2, 2, 2, 2]))
    """

    conditions = ("in_distribution", "ood")

    def __init__(
        self,
        split: str | Mapping[str, Any] | Split = "sqr2tx",
        angles: int = 40,
        given: Literal["image", "fillers"] = "image",
    ) -> None:
        self.grid, self.angles, self.given = white_grid(angles), angles, choose("given", given, GIVEN)
        self.held_out = HeldOut(self.grid, find_split(split, PUBLISHED, self.grid))
        held_out = self.held_out(self.grid.all())
        known, new = (~held_out).nonzero().flatten(), held_out.nonzero().flatten()
        if not (len(known) and len(new)):
            raise ValueError(
                f"split: expected one that holds out some objects and not all, got {len(new):,} of {len(self.grid):,}"
            )
        self._numbers = {"train": known, "in_distribution": known, "ood": new}
        shapes = self.grid.columns[self.grid.index("shape")].labels
        self.group_names = {"shape": shapes}
        self.sizes = {"num_roles": len(self.grid.actions), "side": SIDE, "channels": 1}
        if given == "fillers":
            self.sizes["filler_dim"] = FILLER_DIM

    @property
    def stack_key(self) -> Hashable:
        """Equal for tasks whose batches have the same shapes and whose measures are the same functions."""
        return type(self).__name__, self.angles, self.given

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        """Draw images of independent objects."""
        return self.batch(self.draw_examples(condition, count, generator), dtype)

    def draw_examples(self, condition: str, count: int, generator: torch.Generator) -> Int64[Tensor, "n 1"]:
        """Draw numbers of objects."""
        numbers = choose("condition", condition, self._numbers)
        return numbers[torch.randint(len(numbers), (count, 1), generator=generator)]

    def batch(self, examples: Int64[Tensor, "n 1"], dtype: torch.dtype) -> Batch:
        """Draw the images of these examples; the same rows give the same bits."""
        factors = self.grid.rows(examples.squeeze(1))
        images = draw_frames(factors, dtype)
        given = images if self.given == "image" else true_fillers(factors, dtype)
        return Batch((given,), images, {"shape": factors.column("shape").long()})

    def floors(self, metric: str = "loss") -> dict[str, dict[str, float]]:
        """What answers without learning reach under each condition, on a fixed sample; see `floors`.

        All metrics are found at the first call, and kept.

        Args:
            metric: One of `measure`.
        """
        return floors_by(metric, self._floors)

    @cached_property
    def _floors(self) -> AnswerMetrics:
        return image_floors(
            self, {"nearest": lambda batch: nearest_known(batch.target, self.grid, self.held_out, warped=False)}
        )

    def words(self, batch: Batch) -> list[dict[str, str]]:
        """Each example's object in words, as its image is read."""
        found = read_frames(batch.target, self.grid).factors
        return [{"target": found.describe(row)} for row in range(len(found))]

    def pictures(self, batch: Batch) -> dict[str, UInt8[Tensor, "n 64 64 3"]]:
        """The image of each example."""
        return {"target": as_pictures(batch.target)}
