"""The image contestants as they are held to the contract."""

from ..conformance import Case

TASKS = {
    "images-composer": ("images-composition", {}),
    "images-labelled": ("images-composition", {"factor_labels": True}),
    "images-autoencoder": ("images-reconstruction", {}),
    "images-decoder": ("images-reconstruction", {"given": "fillers"}),
}


def images(name):
    """The case of an image contestant."""
    return Case(name, *TASKS[name])
