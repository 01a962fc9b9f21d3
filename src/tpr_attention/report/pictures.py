"""How pictures look and are written: the same contents give the same bytes, whatever the reader's own settings are."""

from contextlib import AbstractContextManager
from io import BytesIO

import matplotlib.style
from matplotlib.figure import Figure

__all__ = ["FORMS", "encoded", "literal", "look"]

LOOK = {
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
FORMS = tuple(METADATA)
"""The endings that a picture may have."""


def look() -> AbstractContextManager[None]:
    """The settings that pictures are drawn and written with; the reader's own stay as they are."""
    return matplotlib.style.context(["default", LOOK])


def encoded(figure: Figure, form: str) -> bytes:
    """A picture in one of `FORMS`."""
    buffer = BytesIO()
    with look():
        figure.savefig(buffer, format=form, dpi=150, metadata=METADATA[form])
    return buffer.getvalue()


def literal(text: str) -> str:
    """A text in which matplotlib sees no formula.

    >>> literal("$5")
    '\\\\$5'
    """
    return text.replace("$", r"\$")
