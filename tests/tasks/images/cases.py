"""The image tasks as they are held to the contract; few angles, so that frames are drawn in no time."""

import torch

from tpr_attention.tasks.images.reading import read_frames

from ..cases import Case


def shows_what_is_held_out(task, batch):
    """Whether some image of an example, as it is read, is of an object that training never shows."""
    images = (*(given for given in batch.inputs if given.ndim == 4), batch.target)
    warped = getattr(task, "warped", False)
    return torch.stack([task.held_out(read_frames(each, task.grid, warped).factors) for each in images]).any(0)


CASES = {
    "images-composition": Case("images-composition", {"angles": 2}, shows_what_is_held_out),
    "images-union": Case("images-composition", {"split": "union", "angles": 2}, shows_what_is_held_out),
    "images-noisy": Case("images-composition", {"angles": 2, "distortion": "noisy", "shuffle_actions": True}),
    "images-labelled": Case("images-composition", {"angles": 2, "factor_labels": True}, shows_what_is_held_out),
    "images-reconstruction": Case("images-reconstruction", {"angles": 2}, shows_what_is_held_out),
    "images-fillers": Case(
        "images-reconstruction", {"angles": 2, "split": "r2r-3", "given": "fillers"}, shows_what_is_held_out
    ),
}

IMAGES = {name: case._replace(limits=(0.0, 1.0)) for name, case in CASES.items()}
