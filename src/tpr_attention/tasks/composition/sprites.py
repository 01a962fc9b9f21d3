"""From factors to pixels: the images of dSprites, drawn instead of read, and a reader for those who own the file.

A pixel is on where its centre is inside the sprite; there is no anti-aliasing. Seen from the sprite, upright and at
scale 1, the centre has the coordinates u (to the right) and v (downwards), and each shape is a condition on them.
"""

import zipfile
from collections.abc import Callable
from dataclasses import replace
from math import pi
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from jaxtyping import Bool, Float64, Int64, UInt8
from torch import Tensor

from tpr_attention.tasks.composition.factors import Column, Factors, Grid, dsprites

__all__ = ["colour", "contact_sheet", "read_official", "render"]

Points = Float64[Tensor, "n h w"]
Mask = Bool[Tensor, "n h w"]

SIDE = 64
BLOCK = 512  # rows drawn at once; bounds the memory
LIGHT = 224  # the grey between the frames of a contact sheet
PALETTE = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}


def render(factors: Factors) -> UInt8[Tensor, "n 64 64"]:
    """Draw each object, 1 on 0, pixel for pixel as dSprites has it.

    Positions go evenly from the first class to the last, whatever values the grid gives them; colour is left to
    `colour`.

    >>> images = render(dsprites().combinations(("shape", "scale")))
    >>> images.shape, images.count_nonzero(dim=(1, 2))[:6]  # the square from small to large
    (torch.Size([18, 64, 64]), tensor([100, 144, 196, 256, 324, 400]))
    """
    labels, scales = _column(factors.grid, "shape").labels, _column(factors.grid, "scale").values
    if not labels or not set(labels) <= set(SHAPES):
        raise ValueError(f"shape: expected classes named {list(SHAPES)}, got {list(labels)}")
    if min(scales) <= 0 or max(scales) > 1:
        raise ValueError(f"scale: expected values above 0 and up to 1, got {list(scales)}")
    images = torch.zeros(len(factors), SIDE, SIDE, dtype=torch.uint8)
    for label in labels:
        reach, inside = SHAPES[label]
        # Only a window around each sprite is tested; these are all the windows there are, as views.
        windows = images.unfold(1, 2 * reach, 1).unfold(2, 2 * reach, 1)
        for rows in torch.split(factors.has("shape", label).nonzero().flatten(), BLOCK):
            left, top, u, v = _window(factors[rows], reach)
            windows[rows, top, left] = inside(u, v).byte()
    return images


def colour(images: UInt8[Tensor, "n h w"], factors: Factors) -> UInt8[Tensor, "n h w 3"]:
    """Paint images of 0 and 1 in the colours of their objects, on black.

    >>> factors = dsprites().combinations(("colour",))
    >>> colour(render(factors), factors)[:, 16, 16]
    tensor([[255,   0,   0],
            [  0, 255,   0],
            [  0,   0, 255]], dtype=torch.uint8)
    """
    labels = _column(factors.grid, "colour").labels
    if not labels or not set(labels) <= set(PALETTE):
        raise ValueError(f"colour: expected classes named {list(PALETTE)}, got {list(labels)}")
    if len(images) != len(factors):
        raise ValueError(f"images: expected one for each of {len(factors)} objects, got {len(images)}")
    _expect_bytes(images, most=1)
    paint = torch.tensor([PALETTE[label] for label in labels], dtype=torch.uint8)[factors.column("colour")]
    return rearrange(images, "n h w -> n h w 1") * rearrange(paint, "n rgb -> n 1 1 rgb")


def contact_sheet(
    images: UInt8[Tensor, "n h w"] | UInt8[Tensor, "n h w 3"], columns: int, gap: int = 2
) -> UInt8[Tensor, "sheet_h sheet_w 3"]:
    """Lay out frames, of 0 and 1 or coloured, on one light sheet, row by row; unused places stay light.

    >>> contact_sheet(render(dsprites().combinations(("shape",))), columns=2).shape
    torch.Size([130, 130, 3])
    """
    if images.ndim not in (3, 4) or len(images) == 0 or (images.ndim == 4 and images.shape[-1] != 3):
        raise ValueError(f"images: expected one or more, [n h w] or [n h w 3], got {list(images.shape)}")
    _expect_bytes(images, most=1 if images.ndim == 3 else 255)
    if columns < 1:
        raise ValueError(f"columns: expected at least 1, got {columns}")
    if gap < 0:
        raise ValueError(f"gap: expected at least 0, got {gap}")
    if images.ndim == 3:
        images = repeat(images * 255, "n h w -> n h w 3")
    count, height, width, _ = images.shape
    lines = -(-count // columns)
    places = torch.full((lines * columns, height + gap, width + gap, 3), LIGHT, dtype=torch.uint8)
    places[:count, :height, :width] = images
    sheet = rearrange(places, "(line column) h w rgb -> (line h) (column w) rgb", line=lines)
    return sheet[: len(sheet) - gap, : sheet.shape[1] - gap]


def read_official(path: str | Path) -> Factors:
    """The objects of the official dSprites file, in its order, once the file is found to hold just these.

    Its images are not read: `render` draws the same ones. Nothing in it is unpickled, and its field `metadata`, which
    is a pickle, is not touched.

    >>> read_official("dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz")
    Traceback (most recent call last):
    ...
    FileNotFoundError: dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz: expected the official dSprites file
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected the official dSprites file")
    with_colour = dsprites(position_range=(0.0, 1.0))
    grid = replace(
        with_colour,
        columns=tuple(column for column in with_colour.columns if column.name != "colour"),
        actions={action: names for action, names in with_colour.actions.items() if "colour" not in names},
    )
    # The file has one column more, the first: all its sprites are white, of class 0 and value 1.
    shape = (len(grid), 1 + len(grid.columns))
    found = _field(path, "latents_classes", "int64", shape), _field(path, "latents_values", "float64", shape)
    factors = grid.all()
    classes = F.pad(factors.classes, (1, 0), value=0)
    values = F.pad(torch.stack([factors.value(name) for name in grid.names], -1), (1, 0), value=1)
    _expect_table(f"{path}: latents_classes", found[0], classes)
    _expect_table(f"{path}: latents_values", found[1], values)
    return factors


def _field(path: Path, name: str, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """One field of an .npz file; nothing but its header is read unless that has the expected dtype and shape."""
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive, archive.open(f"{name}.npy") as member:
                np.lib.format.read_magic(member)
                found_shape, _, found_dtype = np.lib.format.read_array_header_1_0(member)
                if found_shape != shape or found_dtype != np.dtype(dtype):
                    raise ValueError(f"got {found_dtype} {list(found_shape)}")
                member.seek(0)
                return torch.from_numpy(np.lib.format.read_array(member, allow_pickle=False))
        except Exception as error:  # what a damaged archive raises depends on where the damage is
            raise ValueError(
                f"{path}: expected the field {name} of the official dSprites file, {dtype} {list(shape)}; "
                f"{type(error).__name__}: {error}"
            ) from error


def _expect_table(name: str, found: Tensor, expected: Tensor) -> None:
    # As floating-point numbers, because the difference of two integers may wrap.
    right = ((found.double() - expected).abs() <= 1e-9).all(-1)
    if not right.all():
        row = int(right.logical_not().nonzero()[0])
        raise ValueError(f"{name}: expected {expected[row].tolist()} in row {row}, got {found[row].tolist()}")


def _column(grid: Grid, name: str) -> Column:
    return grid.columns[grid.index(name)]


def _expect_bytes(images: Tensor, most: int) -> None:
    if images.dtype != torch.uint8:
        raise TypeError(f"images: expected torch.uint8, got {images.dtype}")
    if (images > most).any():
        raise ValueError(f"images: expected numbers up to {most}, got {int(images.max())}")


def _window(factors: Factors, reach: int) -> tuple[Int64[Tensor, "n"], Int64[Tensor, "n"], Points, Points]:
    """The left and top end of a window around each sprite, and where its pixels are as the sprite sees them."""
    columns, rows = (16 + 32 * _fraction(factors, name) for name in ("position_x", "position_y"))
    left, top = columns.round().long() - reach, rows.round().long() - reach
    pixels = torch.arange(0.5, 2 * reach, dtype=torch.float64)
    dx, dy = (left - columns)[:, None] + pixels, (top - rows)[:, None] + pixels
    angle, scale = factors.value("orientation")[:, None], factors.value("scale")[:, None]
    cos, sin = angle.cos() / scale, angle.sin() / scale
    u = rearrange(cos * dx, "n w -> n 1 w") - rearrange(sin * dy, "n h -> n h 1")
    v = rearrange(sin * dx, "n w -> n 1 w") + rearrange(cos * dy, "n h -> n h 1")
    return left, top, u, v


def _fraction(factors: Factors, name: str) -> Float64[Tensor, "n"]:
    """How far along its column each class is, from 0 to 1."""
    classes = len(_column(factors.grid, name).values)
    return torch.linspace(0, 1, classes, dtype=torch.float64)[factors.column(name)]


def _square(u: Points, v: Points) -> Mask:
    return (u.abs() < 9.598) & (v.abs() < 9.598)


def _ellipse(u: Points, v: Points) -> Mask:
    return (u / 12.766) ** 2 + (v / 7.214) ** 2 < 1


def _heart(u: Points, v: Points) -> Mask:
    """Inside a polygon of 150 points that is its own mirror image: its right half decides, on |u|.

    From the notch the outline rises to the top of the lobe, then falls to the point, so that at each height the inside
    is one interval. Past their ends both lines go on vertically, which makes the interval empty above the lobe and
    below the point, and lets it begin at the axis below the notch.
    """
    t = 2 * pi * torch.arange(76, dtype=torch.float64) / 150
    across = 9.6 * t.sin() ** 3
    across[-1] = 0  # sin(pi) is a little more, which would light pixels straight below the point
    down = -0.6623 * (13 * t.cos() - 5 * (2 * t).cos() - 2 * (3 * t).cos() - (4 * t).cos()) - 1.44
    top = int(down.argmin())
    inner = _line(v, down[: top + 1].flip(0), across[: top + 1].flip(0))
    outer = _line(v, down[top:], across[top:])
    return (inner <= u.abs()) & (u.abs() < outer)


def _line(v: Points, down: Float64[Tensor, "k"], across: Float64[Tensor, "k"]) -> Points:
    """How far from the axis a line of straight pieces is at each height."""
    slope = across.diff() / down.diff()
    start = torch.cat([across[:1], across[:-1] - slope * down[:-1], across[-1:]])
    piece = torch.bucketize(v, down)
    return start[piece] + F.pad(slope, (1, 1))[piece] * v


# Each shape and how many pixels it reaches from its centre at scale 1, rounded up.
SHAPES: dict[str, tuple[int, Callable[[Points, Points], Mask]]] = {
    "square": (14, _square),
    "ellipse": (13, _ellipse),
    "heart": (12, _heart),
}
