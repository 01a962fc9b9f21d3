"""Draw one head of TPR-Attention as a strip: question, match, extract, map, bind.

`python docs/figures/attention_strip.py` writes `attention-strip.png` beside this file. Every number in it is computed
by `tpr_attention.functional`, from the three objects of the paper's first figure.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Patch, Polygon, Rectangle
from torch import Tensor

from tpr_attention.functional import attend, bind, extract, match, memorise, rebind, superpose

ROLES = ("colour", "shape")
FILLERS = ("red", "yellow", "green", "circle", "triangle", "square")
OBJECTS = (("red", "circle"), ("yellow", "triangle"), ("green", "square"))
PAINT = {"red": "#d1495b", "yellow": "#edae49", "green": "#2e8b7a", "none": "#9aa5b1"}
INK, FAINT, CARD, EDGE = "#1f2933", "#66727f", "#fbfbf8", "#d5dae0"


class Story(NamedTuple):
    """What every stage gives, by its name."""

    objects: Tensor  # [t r f]
    memory: Tensor  # [r f r f]
    weights: Tensor  # [t]
    found: Tensor  # [r f]
    extracted: Tensor  # [f]
    filler_map: Tensor  # [f f]
    mapped: Tensor  # [f]
    bound: Tensor  # [r f]


def story() -> Story:
    """Find the yellow object, read its shape, map it to the next shape, and bind that to the role of shapes."""
    roles, fillers = torch.eye(len(ROLES)), torch.eye(len(FILLERS))
    role = dict(zip(ROLES, roles, strict=True))
    filler = dict(zip(FILLERS, fillers, strict=True))
    objects = torch.stack([superpose(bind(roles, torch.stack([filler[one] for one in pair]))) for pair in OBJECTS])
    memory = memorise(objects)
    found = match(memory, role["colour"], filler["yellow"])
    extracted = extract(found, role["shape"])
    filler_map = torch.eye(6)
    filler_map[3:, 3:] = torch.eye(3).roll(1, dims=1)  # circle to triangle to square to circle
    bound = rebind(extracted, filler_map, role["shape"])
    asked = attend(memory, role["colour"], filler["yellow"], role["shape"], filler_map, role["shape"])
    if not torch.equal(asked, bound):
        raise ValueError("attend differs from its three stages")
    weights = torch.stack([extract(obj, role["colour"]) @ filler["yellow"] for obj in objects])
    return Story(objects, memory, weights, found, extracted, filler_map, extracted @ filler_map, bound)


def shape_patch(shape: str, x: float, y: float, size: float, **style: object) -> Patch:
    """A circle, triangle or square around a point."""
    if shape == "circle":
        return Circle((x, y), size * 0.52, **style)
    if shape == "square":
        return Rectangle((x - size / 2, y - size / 2), size, size, **style)
    corners = [(x, y + 0.62 * size), (x - 0.62 * size, y - 0.46 * size), (x + 0.62 * size, y - 0.46 * size)]
    return Polygon(corners, **style)


class Strip:
    """A card with five stages, in units of which the card is 25 wide and 8.6 high."""

    def __init__(self) -> None:
        self.figure = plt.figure(figsize=(11.3, 3.887))
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, 25), ylim=(0, 8.6), aspect="equal")
        self.axes.axis("off")
        self.figure.patch.set_alpha(0)
        self.axes.add_patch(
            FancyBboxPatch(
                (0.3, 0.3), 24.4, 8.0, boxstyle="round,pad=0,rounding_size=0.4", facecolor=CARD, edgecolor=EDGE
            )
        )

    def text(self, x: float, y: float, words: str, size: float = 11, **style: object) -> None:
        self.axes.text(x, y, words, **{"fontsize": size, "color": INK, "ha": "center", "va": "center"} | style)

    def sprite(self, obj: Tensor, x: float, y: float, size: float, alpha: float = 1.0) -> None:
        """An object of one-hot fillers; a role without a filler is drawn as an outline."""
        colours = [name for name, value in zip(FILLERS[:3], obj[0, :3], strict=True) if value > 0.5]
        (shape,) = (name for name, value in zip(FILLERS[3:], obj[1, 3:], strict=True) if value > 0.5)
        style = {"facecolor": PAINT[colours[0]], "edgecolor": "none"} if colours else {"fill": False, "linestyle": "--"}
        outline = {} if colours else {"edgecolor": INK, "linewidth": 1.6}
        self.axes.add_patch(shape_patch(shape, x, y, size, alpha=alpha, **style, **outline))

    def matrix(self, values: Tensor, x: float, y: float, cell: float = 0.5) -> None:
        """Cells of a matrix around a point: dark is one, white is zero."""
        rows, columns = values.shape
        left, top = x - columns * cell / 2, y + rows * cell / 2
        for row in range(rows):
            for column in range(columns):
                value = values[row, column].item()
                shade = plt.get_cmap("Blues")(0.05 + 0.75 * value)
                corner = (left + column * cell, top - (row + 1) * cell)
                self.axes.add_patch(Rectangle(corner, cell, cell, facecolor=shade, edgecolor="white", linewidth=1.2))
                centre = (corner[0] + cell / 2, corner[1] + cell / 2)
                self.text(*centre, f"{value:.0f}", 8.5, color="white" if value > 0.5 else "#9aa5b1")

    def arrow(self, x: float, y: float = 4.75) -> None:
        style = "-|>,head_width=5,head_length=7"
        self.axes.add_patch(FancyArrowPatch((x - 0.33, y), (x + 0.33, y), arrowstyle=style, color=FAINT, linewidth=1.6))

    def stage(self, x: float, name: str, words: str, equation: str) -> None:
        self.text(x, 7.55, name, 15, fontweight="bold")
        self.text(x, 6.88, words, 10.5, color=FAINT)
        self.text(x, 1.0, equation, 12)


def question(strip: Strip) -> None:
    strip.stage(2.75, "Question", "which shape follows\nthat of the yellow one?", r"$r_m,\ f_m,\ r_t,\ H,\ r_n$")
    asked = (("match", "colour = yellow"), ("extract", "shape"), ("map", "next shape"), ("bind to", "shape"))
    for row, (name, value) in enumerate(asked):
        strip.text(1.95, 5.45 - row * 0.8, name, 10.5, color=FAINT, ha="right")
        strip.text(2.1, 5.45 - row * 0.8, value, 10.5, ha="left", fontweight="bold")


def matched(strip: Strip, told: Story) -> None:
    strip.stage(
        8.2, "Match", "each stored object, weighted\nby how well it answers", r"$\sum_s (r_m^\top O_s f_m)\, O_s$"
    )
    for place, (obj, weight) in enumerate(zip(told.objects, told.weights.tolist(), strict=True)):
        x = 6.65 + 1.55 * place
        strip.sprite(obj, x, 5.2, 1.0, alpha=0.3 + 0.7 * weight)
        strip.axes.add_patch(Rectangle((x - 0.45, 3.15), 0.9, 1.1, facecolor="#e9edf1", edgecolor="none"))
        strip.axes.add_patch(Rectangle((x - 0.45, 3.15), 0.9, 1.1 * weight, facecolor="#2b6cb0", edgecolor="none"))
        strip.text(x, 2.75, f"{weight:.0f}", 11, fontweight="bold" if weight > 0.5 else "normal")
    strip.text(8.2, 2.1, "weight of each", 10.5, color=FAINT)


def extracted(strip: Strip, told: Story) -> None:
    strip.stage(13.6, "Extract", "the shape of\nwhat was found", r"$r_t^\top O$")
    strip.matrix(told.found, 14.05, 4.9)
    for row, name in enumerate(ROLES):
        strip.text(12.42, 5.15 - row * 0.5, name, 10, color=FAINT, ha="right")
    strip.axes.add_patch(Rectangle((12.55, 4.4), 3.0, 0.5, fill=False, edgecolor=PAINT["red"], linewidth=1.8))
    for column, name in enumerate(FILLERS):
        style = {"rotation": 60, "ha": "right", "va": "top", "rotation_mode": "anchor"}
        strip.text(12.75 + column * 0.5, 4.22, name, 9, color=FAINT, **style)
    strip.text(13.75, 2.1, FILLERS[int(told.extracted.argmax())], 12, fontweight="bold")


def mapped(strip: Strip, told: Story) -> None:
    strip.stage(18.45, "Map", "to the\nnext shape", r"$f^\top H$")
    strip.matrix(told.filler_map[3:, 3:], 18.6, 4.4, 0.66)
    for place, name in enumerate(FILLERS[3:]):
        style = {"facecolor": PAINT["none"], "edgecolor": "none"}
        strip.axes.add_patch(shape_patch(name, 17.25, 5.06 - place * 0.66, 0.36, **style))
        strip.axes.add_patch(shape_patch(name, 17.94 + place * 0.66, 5.72, 0.36, **style))
    strip.text(18.5, 2.1, FILLERS[int(told.mapped.argmax())], 12, fontweight="bold")


def bound(strip: Strip, told: Story) -> None:
    strip.stage(22.6, "Bind", "to a role\nof the answer", r"$r_n \otimes f$")
    strip.sprite(told.bound, 22.75, 5.2, 1.0)
    strip.matrix(told.bound, 22.95, 3.65, 0.43)
    for row, name in enumerate(ROLES):
        strip.text(21.55, 3.86 - row * 0.43, name, 9.5, color=FAINT, ha="right")
    strip.text(22.6, 2.1, "an update", 10.5, color=FAINT)


def draw() -> plt.Figure:
    """The strip as a figure: an opaque card with round corners, which stands on light and dark pages."""
    told, strip = story(), Strip()
    question(strip)
    for stage in (matched, extracted, mapped, bound):
        stage(strip, told)
    for x in (5.4, 10.85, 16.3, 20.45):
        strip.arrow(x)
    return strip.figure


def main(path: Path) -> None:
    with plt.rc_context({"font.family": "DejaVu Sans", "mathtext.fontset": "dejavusans"}):
        draw().savefig(path, dpi=175, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("attention-strip.png"))
