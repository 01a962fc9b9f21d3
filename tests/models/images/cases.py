"""The image contestants as they are held to the contract."""

import torch

from ..conformance import Case

TASKS = {
    "images-composer": ("images-composition", {}),
    "images-labelled": ("images-composition", {"factor_labels": True}),
    "images-autoencoder": ("images-reconstruction", {}),
    "images-decoder": ("images-reconstruction", {"given": "fillers"}),
}

SIZES = {"num_roles": 5, "side": 64, "channels": 3}


def seeded(make, *sizes, seed=0, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(*sizes, **options)


def images(name):
    """The case of an image contestant."""
    return Case(name, *TASKS[name])
