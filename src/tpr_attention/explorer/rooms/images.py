"""The room "Pixels": a trained model that answers with images, and what it needs to draw and to judge them.

Weights have 13 of 16 bits, codes and templates of the clean-up memory 32. Of the templates only the shapes in use are
written, and coefficients that are far from the outline are cut to the range in which a pixel can be told from black.
The page looks at images once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from tpr_attention.explorer.packing import shortened
from tpr_attention.explorer.trained import Trained
from tpr_attention.models.build import build
from tpr_attention.models.images.composer import EAGER, ImageComposer
from tpr_attention.nn.images.codes.pose_memory import PoseMemory
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.encoder import UnbindingEncoder
from tpr_attention.tasks.composition.factors import Grid
from tpr_attention.tasks.composition.held_out import HeldOut
from tpr_attention.tasks.composition.splits import SPLITS
from tpr_attention.tasks.images.composition import ImageComposition
from tpr_attention.training.prepare import make_task

__all__ = ["cut", "data"]

SHOWN = {
    "task": {"distortion": "none"},
    "model": {"encoder": "unbinding", "decoder": "template", "composition": "tpr"},
}
"""The options that the page's arithmetic is made for."""
MOST_LOGIT = 9.0
"""What a logarithm of odds is cut to far from an outline: a pixel is then off by a ten-thousandth."""
NEAR = 3  # a point of a cubic spline has four coefficients around it in each direction


def data(trained: Sequence[Trained]) -> dict[str, Any] | None:
    """The first model with a clean-up memory, on the union of splits if there is one; None if there is no model.

    Left out are models of other parts, weights whose shapes are no longer those of the model, and memories some of
    whose angles look alike: these are told apart by drawing, which the page does not do.
    """
    for one in sorted(filter(_is_shown, trained), key=_preference):
        task = make_task(one.spec.task, one.spec.seed)
        assert isinstance(task, ImageComposition)
        model = build(one.spec.model.name, task, **one.spec.model.options).eval()
        assert isinstance(model, ImageComposer)
        if {name: tensor.shape for name, tensor in model.state_dict().items()} == {
            name: array.shape for name, array in one.weights.items()
        }:
            weights = {name: torch.from_numpy(array.astype(np.float32)) for name, array in one.weights.items()}
            model.load_state_dict(weights)
            if model.memory is None or not model.memory.look_alike.any():
                return _data(one, task, model)
    return None


def _data(chosen: Trained, task: ImageComposition, model: ImageComposer) -> dict[str, Any]:
    assert isinstance(model.encoder, UnbindingEncoder)
    assert isinstance(model.decoder, TemplateDecoder)
    weights = {name: shortened(array) for name, array in chosen.weights.items() if not name.startswith("memory.")}
    return {
        "label": chosen.label,
        "seed": chosen.spec.seed,
        "grid": _grid(task.grid),
        "splits": _splits(task, chosen.spec.task.options["split"]),
        "model": {
            "side": model.encoder.side,
            "cutoff": model.encoder.cutoff,
            "eager": EAGER,
            "weights": {**weights, "reach": np.array(model.decoder.reach, dtype=np.float64)},
            "memory": _memory(model.memory),
        },
    }


def _is_shown(one: Trained) -> bool:
    spec = one.spec
    if (spec.task.name, spec.model.name) != ("images-composition", "images-composer"):
        return False
    parts = (spec.task.options, SHOWN["task"]), (spec.model.options, SHOWN["model"])
    return all(options.get(name) == value for options, wanted in parts for name, value in wanted.items())


def _preference(one: Trained) -> tuple[bool, bool, bool, int]:
    options = one.spec.task.options
    return (
        not one.spec.model.options["clean_up"],
        options["split"] != "union",
        bool(options["shuffle_actions"]),
        one.spec.seed,
    )


def _grid(grid: Grid) -> dict[str, Any]:
    return {
        "columns": [{"name": column.name, "values": column.values, "labels": column.labels} for column in grid.columns],
        "actions": [{"name": name, "columns": columns} for name, columns in grid.actions.items()],
    }


def _splits(task: ImageComposition, split: object) -> list[dict[str, Any]]:
    """What each split holds out, as a table over the columns that it reads, the last changing fastest."""
    if split == "union":
        parts = {name: HeldOut(task.grid, part) for name, part in SPLITS.items()}
    else:
        parts = {split if isinstance(split, str) else "held out": task.held_out}
    return [
        {"name": name, "columns": part.names, "table": "".join("01"[held] for held in part.table.int().flatten())}
        for name, part in parts.items()
    ]


def _memory(memory: PoseMemory | None) -> Mapping[str, np.ndarray] | None:
    """The codes and templates of the shapes there are; None if they are not used."""
    if memory is None or not memory.is_used:
        return None
    known = memory.counts["shapes"]
    codes = {name: getattr(memory, name).numpy() for name in ("angles", "places", "colours", "reach")}
    return {
        **codes,
        "shapes": memory.shapes[:known].numpy(),
        "log_scales": memory.log_scales[:known].numpy(),
        "units": memory.units[:known].numpy(),
        "templates": np.stack([cut(template) for template in memory.templates[:known].numpy()]),
    }


def cut(template: Float[np.ndarray, "row column"]) -> Float[np.ndarray, "row column"]:
    """Cut coefficients that are far from the outline to +-`MOST_LOGIT`, so that a template compresses to a tenth.

    No pixel changes its side: a point of a spline is a mean of sixteen coefficients, and those of points that have some
    of either sign are left as they are.

    >>> cut(np.where(np.arange(8) < 4, 50.0, -20.0)[None].repeat(8, 0))[0].tolist()
    [9.0, 50.0, 50.0, 50.0, -20.0, -20.0, -20.0, -9.0]
    """
    around = np.lib.stride_tricks.sliding_window_view(np.pad(template > 0, NEAR, mode="edge"), (2 * NEAR + 1,) * 2)
    is_near = around.any((2, 3)) & ~around.all((2, 3))
    return np.where(is_near, template, template.clip(-MOST_LOGIT, MOST_LOGIT))
