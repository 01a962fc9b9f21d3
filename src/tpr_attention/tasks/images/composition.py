"""The composition task as pixels (sec. 4): from two images and an action to the image of the answer."""

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any, Literal

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from tpr_attention.functional.signature import choose, expect_bool
from tpr_attention.tasks.composition.factors import substitute
from tpr_attention.tasks.composition.held_out import HeldOut, Split, find_split
from tpr_attention.tasks.composition.pairs import Pairing
from tpr_attention.tasks.composition.splits import SPLITS
from tpr_attention.tasks.composition.task import expect_every_action
from tpr_attention.tasks.images.distortions import add_noise, sharpen, soften
from tpr_attention.tasks.images.fillers import FILLER_DIM, true_fillers
from tpr_attention.tasks.images.floors import AnswerMetrics, floors_by, image_floors, nearest_known
from tpr_attention.tasks.images.frames import SIDE, as_pictures, coloured_grid, draw_frames, numbers_of
from tpr_attention.tasks.images.metrics import MeasuredImages
from tpr_attention.tasks.images.pairs import UnionPairing
from tpr_attention.tasks.images.reading import Reading, read_frames
from tpr_attention.tasks.task import Batch

__all__ = ["ImageComposition"]

CHANNELS = 3
DISTORTIONS = {name: name for name in ("none", "warped", "smooth", "noisy")}
MOST_SEED = 2**62


class ImageComposition(MeasuredImages):
    """Take the reference, replace one factor by the transform's, and draw the result.

    A model is called as `model(reference, transform, action)` with images `[n, 3, 64, 64]` and a one-hot action, and
    answers with the probability of each number of the target to be 1. Examples are kept as rows of whole numbers
    (reference, transform, action, label of the action, seed of the noise) and drawn when they are needed.

    Under the split "union" training shows nothing that any of the paper's splits holds out, and each split has its
    tests, named as in `square_red.ood_reference`; see `UnionPairing`.

    Args:
        split: A name of `SPLITS`, "union", the import path of a predicate on factors, a predicate, or the combination
            that is held out, such as `{"shape": "heart", "colour": "blue"}`.
        angles: How many of the 40 orientations there are, from the first. The frames of nine are all different
            (decision 0033).
        distortion: A control where priors of decoders are wrong: "warped" bends the canvas of all images, "smooth"
            softens the edges of inputs, and "noisy" adds normal noise of standard deviation 0.1 to inputs.
        shuffle_actions: A control where nothing can be learned of actions: in training the model is told a random one.
        factor_labels: Whether a model is also given the true fillers `[n, 5, 8]` of the reference and of the transform,
            after the action; see `true_fillers`. Tests have them too: what a model does with them there is its own.

    >>> task = ImageComposition("square_red")
    >>> batch = task.draw("ood_composition", 4, torch.Generator().manual_seed(0), torch.float32)
    >>> [list(tensor.shape) for tensor in (*batch.inputs, batch.target)]
    [[4, 3, 64, 64], [4, 3, 64, 64], [4, 5], [4, 3, 64, 64]]
    """

    def __init__(
        self,
        split: str | Mapping[str, Any] | Split = "square_red",
        angles: int = 9,
        distortion: Literal["none", "warped", "smooth", "noisy"] = "none",
        shuffle_actions: bool = False,
        factor_labels: bool = False,
    ) -> None:
        expect_bool(shuffle_actions=shuffle_actions, factor_labels=factor_labels)
        self.grid, self.angles = coloured_grid(angles), angles
        self.distortion, self.shuffle_actions = choose("distortion", distortion, DISTORTIONS), shuffle_actions
        self.warped, self.factor_labels = distortion == "warped", factor_labels
        self.held_out = HeldOut(self.grid, find_split(split, {**SPLITS, "union": _union}, self.grid))
        if split == "union":
            parts = {name: HeldOut(self.grid, part) for name, part in SPLITS.items()}
            self.pairing: Pairing = UnionPairing(self.held_out, parts)
        else:
            self.pairing = Pairing(self.held_out)
        expect_every_action(self.pairing)
        self.conditions = tuple(name for name in self.pairing.conditions if name != "train")
        self.group_names = {"action": tuple(self.grid.actions), "target": ("known", "held_out")}
        actions = len(self.grid.actions)
        self.sizes = {"num_actions": actions, "num_roles": actions, "side": SIDE, "channels": CHANNELS}
        if factor_labels:
            self.sizes["filler_dim"] = FILLER_DIM

    @property
    def stack_key(self) -> Hashable:
        """Equal for tasks whose batches have the same shapes and whose measures are the same functions."""
        return type(self).__name__, self.conditions, self.angles, self.warped, self.factor_labels

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        """Draw images of independent pairs of one condition."""
        return self.batch(self.draw_examples(condition, count, generator), dtype)

    def draw_examples(self, condition: str, count: int, generator: torch.Generator) -> Int64[Tensor, "n 5"]:
        """Draw pairs, as numbers of their objects. The pairs are the same whatever else is asked for."""
        pairs = self.pairing.draw(condition, count, generator)
        label, seed = pairs.action, torch.zeros(count, dtype=torch.long)
        if self.shuffle_actions and condition == "train":
            label = torch.randint(len(self.grid.actions), (count,), generator=generator)
        if self.distortion == "noisy":
            seed = torch.randint(MOST_SEED, (count,), generator=generator)
        return torch.stack([numbers_of(pairs.reference), numbers_of(pairs.transform), pairs.action, label, seed], 1)

    def batch(self, examples: Int64[Tensor, "n 5"], dtype: torch.dtype) -> Batch:
        """Draw the images of these examples; the same rows give the same bits."""
        first, second, action, label, seed = examples.unbind(1)
        pair = self.grid.rows(first), self.grid.rows(second)
        target = substitute(*pair, action)
        everything = self.grid.rows(torch.cat([first, second, numbers_of(target)]))
        reference, transform, answer = draw_frames(everything, dtype, self.warped).chunk(3)
        if self.distortion == "smooth":
            reference, transform = soften(reference), soften(transform)
        if self.distortion == "noisy":
            reference, transform = add_noise(torch.cat([reference, transform], 1), seed).chunk(2, 1)
        inputs = reference, transform, torch.eye(len(self.grid.actions), dtype=dtype)[label]
        labels = tuple(true_fillers(factors, dtype) for factors in pair) if self.factor_labels else ()
        return Batch((*inputs, *labels), answer, {"action": action, "target": self.held_out(target).long()})

    def read(self, images: Float[Tensor, "n 3 64 64"]) -> Reading:
        """Which objects inputs show, whatever was done to them."""
        images = sharpen(images) if self.distortion == "smooth" else images
        return read_frames(images.cpu(), self.grid, self.warped)

    @torch.no_grad()
    def best_answer(
        self,
        reference: Float[Tensor, "n 3 64 64"],
        transform: Float[Tensor, "n 3 64 64"],
        action: Float[Tensor, "n a"],
        *labels: Float[Tensor, "n 5 8"],
    ) -> Float[Tensor, "n 3 64 64"]:
        """Read both images, substitute, and draw: the exact target, unless other objects look like the inputs'.

        Labels are not looked at, so that the answer is the same with them.
        """
        found = substitute(self.read(reference).factors, self.read(transform).factors, action.argmax(-1).cpu())
        return draw_frames(found, reference.dtype, self.warped).to(reference.device)

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
            self,
            {
                "copy": lambda batch: self._told(batch.inputs[0]),
                "nearest": lambda batch: nearest_known(batch.target, self.grid, self.held_out, self.warped),
                "oracle": lambda batch: self.best_answer(
                    batch.inputs[0], batch.inputs[1], torch.eye(len(self.grid.actions))[batch.groups["action"]]
                ),
            },
        )

    def _told(self, images: Tensor) -> Tensor:
        """What inputs show, drawn without what was done to them."""
        return draw_frames(self.read(images).factors, images.dtype, self.warped)

    def words(self, batch: Batch) -> list[dict[str, str]]:
        """Each example's objects in words, as its images are read, and the action that a model is told."""
        parts = {part: self.read(images).factors for part, images in self._inputs(batch).items()}
        parts["target"] = read_frames(batch.target, self.grid, self.warped).factors
        names = self.group_names["action"]
        return [
            {part: found.describe(row) for part, found in parts.items()} | {"action": names[number]}
            for row, number in enumerate(batch.inputs[2].argmax(-1).tolist())
        ]

    def pictures(self, batch: Batch) -> dict[str, UInt8[Tensor, "n 64 64 3"]]:
        """The images of each example."""
        return {name: as_pictures(images) for name, images in {**self._inputs(batch), "target": batch.target}.items()}

    def _inputs(self, batch: Batch) -> dict[str, Tensor]:
        return {"reference": batch.inputs[0], "transform": batch.inputs[1]}


def _union(factors: Any) -> Any:
    """What any of the paper's splits holds out: 38.9 % of the grid."""
    return torch.stack([split(factors) for split in SPLITS.values()]).any(0)
