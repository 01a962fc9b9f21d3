"""Figures as blocks of a document: what they show is read at once, how it is drawn is loaded when they are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tpr_attention.imports import load
from tpr_attention.report.drawings import interactive
from tpr_attention.report.drawings.comparisons import ShownAnswers
from tpr_attention.report.drawings.curves import FigureCurves
from tpr_attention.report.drawings.squares import Squares
from tpr_attention.report.inspection import Inspection

__all__ = ["AnswerGrid", "Curves", "HeadMaps", "SquareMap"]

SIDE, BETWEEN = 128 / 150, 0.06
"""Inches in a grid of answers: an image, each of whose 64 pixels is two of the picture wide; between two."""


class Curves(FigureCurves):
    """The figure of a plan, as a picture and for plotly.js."""

    def draw(self) -> Any:
        """The figure as a picture."""
        return load("tpr_attention.report.drawings.figures:draw")(self)

    def plot(self) -> Mapping[str, Any]:
        """The figure for plotly.js."""
        return interactive.plot(self)


@dataclass(frozen=True, eq=False)
class HeadMaps:
    """What the heads of a run do, as heat maps."""

    name: str
    inspection: Inspection
    caption: str
    notes: str = ""

    def draw(self) -> Any:
        """The heat maps as a picture."""
        return load("tpr_attention.report.drawings.heat_maps:draw")(self.inspection)


@dataclass(frozen=True, eq=False)
class AnswerGrid:
    """What models answer to the same examples, as images: a row for each model."""

    name: str
    shown: ShownAnswers
    caption: str
    notes: str = ""

    def draw(self) -> Any:
        """The images as a picture."""
        return load("tpr_attention.report.drawings.pictures:image_grid")(
            self.shown.by_model(), side=SIDE, apart=BETWEEN
        )


class SquareMap(Squares):
    """A map of squares as a picture."""

    def draw(self) -> Any:
        """The map as a picture."""
        return load("tpr_attention.report.drawings.square_maps:draw")(self)
