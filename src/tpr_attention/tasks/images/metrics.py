"""How images are measured: as numbers between 0 and 1 against targets of 0 and 1, and by the object that they show."""

from math import pi

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tpr_attention.functional.images.likelihood import negative_log_likelihood
from tpr_attention.tasks.composition.factors import Factors, Grid
from tpr_attention.tasks.images.reading import read_frames
from tpr_attention.tasks.task import Batch

__all__ = ["MeasuredImages", "equal_modulo_symmetry", "image_loss", "measure_factors", "measure_images"]

PERIODS = {"square": pi / 2, "ellipse": pi, "heart": 2 * pi}


def image_loss(output: Tensor, target: Float[Tensor, "*n c h w"]) -> Float[Tensor, "*n"]:
    """The negative log-likelihood of a number, in the mean over an image."""
    if output.shape != target.shape:
        raise ValueError(f"output: expected the target's shape {list(target.shape)}, got {list(output.shape)}")
    return negative_log_likelihood(output, target).mean((-3, -2, -1))


def measure_images(output: Tensor, target: Float[Tensor, "*n c h w"]) -> dict[str, Tensor]:
    """Metrics of each image, where the output has the probability that a number is 1.

    The loss is `image_loss`; no probability counts as less than 1e-12. Only the loss has a gradient. The others are
    `nll` and `sse`, sums over an image; `mse`; `iou`, the intersection of what is on over its union, 1 if nothing
    is; `wrong_numbers` and `wrong_pixels`, those that are wrong after rounding, where a pixel is wrong if one of
    its channels is; and `exact`, 1 where no number is wrong.

    A pixel is on where any of its channels is. So `iou` compares masks and ignores colour: a red square in the place of
    a green one has an `iou` of 1, and all its pixels are wrong.

    >>> target = torch.tensor([1.0, 0.0, 0.0, 0.0]).reshape(1, 1, 2, 2)
    >>> found = measure_images((target - 0.25).abs(), target)
    >>> [round(found[name].item(), 3) for name in ("loss", "sse", "iou", "exact")]
    [0.288, 0.25, 1.0, 1.0]
    """
    loss = image_loss(output, target)
    image, numbers, output = (-3, -2, -1), target.shape[-3:].numel(), output.detach()
    on, wanted = output > 0.5, target > 0.5
    wrong, seen, there = on != wanted, on.any(-3), wanted.any(-3)
    both, either = (seen & there).sum((-2, -1)).to(output), (seen | there).sum((-2, -1)).to(output)
    sse, wrong_numbers = (target - output).square().sum(image), wrong.sum(image)
    return {
        "loss": loss,
        "nll": loss.detach() * numbers,
        "sse": sse,
        "mse": sse / numbers,
        "iou": torch.where(either == 0, 1.0, both / either.clamp_min(1)),
        "wrong_numbers": wrong_numbers.to(output.dtype),
        "wrong_pixels": wrong.any(-3).sum((-2, -1)).to(output.dtype),
        "exact": (wrong_numbers == 0).to(output.dtype),
    }


def measure_factors(
    output: Float[Tensor, "n c 64 64"], target: Float[Tensor, "n c 64 64"], grid: Grid, warped: bool
) -> dict[str, Float[Tensor, "n"]]:
    """Which factors are right: those of the frame nearest to the output against those of the target's.

    `factors` is 1 where all are, and `factors_modulo_symmetry` where all are but for turns that hardly show, see
    `equal_modulo_symmetry`. Targets are read too, so that of objects with equal frames any is right. In an empty output
    nothing is right.
    """
    found, seen = read_frames(output.detach().cpu(), grid, warped)
    truth, _ = read_frames(target.cpu(), grid, warped)
    right = {name: seen & (found.column(name) == truth.column(name)) for name in grid.names}
    others = torch.stack([right[name] for name in grid.names if name != "orientation"]).all(0)
    metrics = {
        "factors": others & right["orientation"],
        **right,
        "factors_modulo_symmetry": others & equal_modulo_symmetry(found, truth),
    }
    return {name: values.to(output) for name, values in metrics.items()}


def equal_modulo_symmetry(found: Factors, truth: Factors) -> Bool[Tensor, "n"]:
    """Whether orientations are equal modulo the symmetry of the true shape, to half a step between orientations.

    A square is the same after 90 degrees, an ellipse after 180, a heart after 360. A step is 360 / 39 degrees, so that
    symmetric orientations of the grid are a quarter or half a step apart: their frames differ in few pixels or none.

    >>> from tpr_attention.tasks.images.frames import white_grid
    >>> squares = white_grid().table(torch.tensor([[0, 0, k, 0, 0, 0] for k in (0, 9, 10, 39)]))
    >>> equal_modulo_symmetry(squares, squares[torch.zeros(4, dtype=torch.long)])
    tensor([ True, False,  True,  True])
    """
    grid = truth.grid
    labels = grid.columns[grid.index("shape")].labels
    period = torch.tensor([PERIODS[label] for label in labels], dtype=torch.float64)[truth.column("shape")]
    turn = (found.value("orientation") - truth.value("orientation")).remainder(period)
    return torch.minimum(turn, period - turn) <= pi / 39 + 1e-9


class MeasuredImages:
    """What tasks of images measure: a loss that is cheaper than the metrics, and factors that are read at the end."""

    grid: Grid
    warped = False
    """Whether the canvas is bent."""

    quick_examples = 128
    """How many examples of a test are measured before the end."""

    def loss(self, output: Tensor, batch: Batch) -> Float[Tensor, "*n"]:
        """How unlikely the target is, in the mean over its numbers."""
        return image_loss(output, batch.target)

    def measure(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "*n"]]:
        """The metrics of `measure_images`; the first is the loss."""
        return measure_images(output, batch.target)

    measure_stack = measure
    """It takes any leading axes."""

    def measure_finally(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "n"]]:
        """What `measure` finds, and which factors are right. It reads images, which takes milliseconds each."""
        return {
            **measure_images(output, batch.target),
            **measure_factors(output, batch.target, self.grid, self.warped),
        }
