"""What answers without learning reach by each metric, estimated on a fixed sample of each condition.

`black` answers nothing, `mean` the mean of training targets, `copy` the reference. `nearest` answers the image that
training may show with the fewest wrong numbers: the best that repeating can do. Answers of 0 and 1 pay for a wrong
number as for one of probability 1e-6. `oracle` reads the inputs, substitutes and draws.
"""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.signature import choose
from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition.factors import Grid
from tpr_attention.tasks.composition.held_out import HeldOut
from tpr_attention.tasks.images.frames import draw_frames
from tpr_attention.tasks.images.metrics import measure_images
from tpr_attention.tasks.images.reading import frames_of
from tpr_attention.tasks.task import Batch, Task

__all__ = ["AnswerMetrics", "floors_by", "image_floors", "nearest_known"]

COUNT = 128  # examples of each condition
MEAN_OF = 1024  # training targets in the mean image
BLOCK = 16  # images whose neighbours are searched at once

Answers = Mapping[str, Callable[[Batch], Tensor]]
AnswerMetrics = dict[str, dict[str, dict[str, float]]]
"""By condition and answer, the mean of each metric of `measure_images`."""


def image_floors(task: Task, answers: Answers) -> AnswerMetrics:
    """All metrics of answers under each condition, "train" included, beside those of a black and of the mean image.

    Args:
        answers: By name, what is answered to a batch.
    """
    mean = task.draw("train", MEAN_OF, named_generator(0, "mean image"), torch.float32).target.mean(0)
    plain: Answers = {
        "black": lambda batch: torch.zeros_like(batch.target),
        "mean": lambda batch: mean.expand_as(batch.target),
    }
    floors = {}
    for condition in ("train", *task.conditions):
        batch = task.draw(condition, COUNT, named_generator(0, f"floors of {condition}"), torch.float32)
        floors[condition] = {
            name: {metric: of.mean().item() for metric, of in measure_images(answer(batch), batch.target).items()}
            for name, answer in {**plain, **answers}.items()
        }
    return floors


def floors_by(metric: str, floors: AnswerMetrics) -> dict[str, dict[str, float]]:
    """One metric of each answer under each condition.

    >>> floors_by("iou", {"train": {"black": {"loss": 0.3, "iou": 0.0}}})
    {'train': {'black': 0.0}}
    """
    return {
        condition: {name: choose("metric", metric, found) for name, found in answers.items()}
        for condition, answers in floors.items()
    }


def nearest_known(
    images: Float[Tensor, "n c 64 64"], grid: Grid, held_out: HeldOut, warped: bool
) -> Float[Tensor, "n c 64 64"]:
    """For each frame the one with the fewest wrong numbers among those that are not held out, near its place.

    Positions are searched as far as `reading` does. A frame of another colour has all pixels of both wrong.
    """
    parts = [_nearest_known(part, grid, held_out, warped) for part in torch.split(images, BLOCK)]
    return draw_frames(grid.rows(torch.cat(parts)), images.dtype, warped)


def _nearest_known(images: Tensor, grid: Grid, held_out: HeldOut, warped: bool) -> Tensor:
    masks, colours, channels = (images > 0.5).any(1), images.sum((2, 3)).argmax(1), images.shape[1]
    frames = frames_of(grid, warped)
    numbers, distances = frames.compare(masks)
    apart = masks.flatten(1).sum(1)[:, None] + frames.sizes[numbers]  # wrong numbers in another colour
    objects = numbers[..., None] * channels + torch.arange(channels)
    same = colours[:, None, None] == torch.arange(channels)
    wrong = torch.where(same, distances[..., None], apart[..., None]).flatten(1)
    known = ~held_out(grid.rows(objects.flatten())).reshape(wrong.shape)
    best = wrong.where(known, torch.iinfo(wrong.dtype).max).argmin(1, keepdim=True)
    return objects.flatten(1).gather(1, best).squeeze(1)
