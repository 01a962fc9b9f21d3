"""Figures that commands write: the form is checked first, matplotlib is loaded when something is drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tpr_attention.runner.files import write_file
from tpr_attention.runner.store import StoreError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FigureFile"]


class FigureFile:
    """A file that a figure is to be written to."""

    def __init__(self, path: str) -> None:
        from tpr_attention.report.drawings.pictures import form_of  # only now: matplotlib takes a second

        self.path, self.form = Path(path), form_of(path)

    def write(self, draw: "Callable[[], Figure]") -> None:
        """Draw the figure and write it."""
        from tpr_attention.report.drawings.pictures import encoded

        try:
            write_file(self.path, encoded(draw(), self.form))
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written: {error.strerror}") from error
