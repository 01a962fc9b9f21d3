"""How pictures look and are encoded: the same contents give the same bytes, whatever a user's settings are."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from textwrap import fill

import matplotlib
import matplotlib.style
import numpy as np
from jaxtyping import UInt8
from matplotlib.figure import Figure

from tpr_attention.training.spec import SpecError

__all__ = ["FORMATS", "encoded", "form_of", "image_grid", "literal", "settings"]

SETTINGS = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9ca3af",
    "axes.linewidth": 0.8,
    "xtick.color": "#9ca3af",
    "ytick.color": "#9ca3af",
    "xtick.labelcolor": "#374151",
    "ytick.labelcolor": "#374151",
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "pdf.fonttype": 42,
    "svg.hashsalt": "tpr-attention",
}
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
FORMATS = tuple(METADATA)
"""The formats of pictures, which are also the endings of their files."""

SIDE, BETWEEN, BLOCK, LETTER, LINE, TOP, MARGIN = 0.95, 0.06, 0.22, 0.075, 0.17, 0.42, 0.12
"""Inches of a grid of images: an image, between two, between groups of rows, a letter, a line, above and around all."""
LETTERS = 30
"""In a line of the name of a group of rows."""


def settings() -> AbstractContextManager[None]:
    """The settings that pictures are drawn and encoded with; outside they stay as they are."""
    return matplotlib.style.context(["default", SETTINGS])


def encoded(figure: Figure, form: str) -> bytes:
    """A picture in one of `FORMATS`."""
    buffer = BytesIO()
    with settings():
        figure.savefig(buffer, format=form, dpi=150, metadata=METADATA[form])
    return buffer.getvalue()


def literal(text: str) -> str:
    """A text in which matplotlib sees no formula.

    >>> literal("$5")
    '\\\\$5'
    """
    return text.replace("$", r"\$")


def form_of(path: str) -> str:
    """Which of `FORMATS` the name of a file asks for.

    >>> form_of("heads.PNG")
    'png'
    """
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise SpecError(f"figure: expected a file that ends in .png, .svg or .pdf, got {path!r}")
    return form


def image_grid(
    arrays: Mapping[str, Mapping[str, UInt8[np.ndarray, "n h w 3"]]], *, side: float = SIDE, apart: float = BLOCK
) -> Figure:
    """Images of examples: a group of rows for each condition, a row for each of its examples, a column for each part.

    Args:
        arrays: For each condition and each part of its examples, one image an example.
        side: Inches of an image.
        apart: Inches between groups of rows.
    """
    parts = list(dict.fromkeys(part for found in arrays.values() for part in found))
    counts = {condition: max(map(len, found.values()), default=0) for condition, found in arrays.items()}
    above = TOP + LINE * max((part.count("\n") for part in parts), default=0)
    labels = {condition: fill(condition, LETTERS) for condition in arrays}
    names = 2 * MARGIN + LETTER * max((len(line) for label in labels.values() for line in label.split("\n")), default=0)
    width = names + len(parts) * (side + BETWEEN) - BETWEEN + MARGIN
    height = above + sum(count * (side + BETWEEN) - BETWEEN + apart for count in counts.values()) - apart + MARGIN
    with settings(), matplotlib.rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(width, height))
        for column, part in enumerate(parts):
            middle = names + column * (side + BETWEEN) + side / 2
            figure.text(middle / width, 1 - (above - 0.08) / height, part, ha="center", va="bottom", size=9.5)
        top = above
        for condition, found in arrays.items():
            middle = top + (counts[condition] * (side + BETWEEN) - BETWEEN) / 2
            figure.text(MARGIN / width, 1 - middle / height, labels[condition], va="center", size=9.5)
            for row in range(counts[condition]):
                for column, part in enumerate(parts):
                    if row < len(found.get(part, ())):
                        left = names + column * (side + BETWEEN)
                        box = (left / width, 1 - (top + side) / height, side / width, side / height)
                        axes = figure.add_axes(box)
                        axes.imshow(found[part][row], interpolation="nearest")
                        axes.axis("off")
                top += side + BETWEEN
            top += apart - BETWEEN
    return figure
