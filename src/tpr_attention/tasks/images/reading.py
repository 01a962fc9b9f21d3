"""Which object an image shows: the frame with the fewest pixels that differ.

All frames of a grid are kept as bits of a window around the sprite, 128 bytes each. An image that equals a frame is
found by a hash. For any other, candidates are all contents (shape, scale, orientation), each at the positions within
two cells of where its centre should be, given the image's centre of mass.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64, UInt8
from torch import Tensor

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition.factors import Factors, Grid
from tpr_attention.tasks.images.distortions import source
from tpr_attention.tasks.images.frames import SIDE, draw_masks

__all__ = ["Frames", "Reading", "frames_of", "read_frames"]

WINDOW = 32  # pixels in each direction; with what a warp adds, no sprite is larger
REACH = 2  # cells of the grid in each direction
BLOCK = 4096  # frames drawn at once
IMAGES = 4  # images compared at once; keeps the candidates in the cache
CONTENT = ("shape", "scale", "orientation")
PLACE = ("position_x", "position_y")
LOW_HALF = 2**32 - 1


class Reading(NamedTuple):
    """What images show.

    Args:
        factors: The nearest object of each image; of several the one with the lowest number in the grid.
        seen: False for images with no pixel on, which are read as object 0.
    """

    factors: Factors
    seen: Bool[Tensor, "n"]


def read_frames(images: Float[Tensor, "n c 64 64"], grid: Grid, warped: bool = False) -> Reading:
    """Read images: a pixel is on where some channel is above one half, and the colour is the channel of largest sum.

    >>> from tpr_attention.tasks.images.frames import draw_frames, white_grid
    >>> truth = white_grid(angles=1).rows(torch.tensor([0, 1234]))
    >>> torch.equal(read_frames(draw_frames(truth), truth.grid).factors.classes, truth.classes)
    True
    """
    masks, colours = (images > 0.5).any(1), images.sum((2, 3)).argmax(1)
    seen = masks.flatten(1).any(1)
    numbers = torch.zeros(len(images), dtype=torch.long)
    numbers[seen] = frames_of(grid, warped).nearest(masks[seen]) * images.shape[1] + colours[seen]
    return Reading(grid.rows(numbers), seen)


@lru_cache(maxsize=3)
def frames_of(grid: Grid, warped: bool) -> "Frames":
    """The frames of a grid, drawn once: 24 MB and three seconds for nine angles, 106 MB and a dozen for forty."""
    return Frames(grid, warped)


class Frames:
    """All frames of a grid, whatever their colour, as bits. Frame k is that of the objects k * colours + colour.

    `sizes` has how many pixels are on in each frame.
    """

    def __init__(self, grid: Grid, warped: bool) -> None:
        self.grid, self.warped = grid, warped
        self.across, self.down = (grid.sizes[grid.index(name)] for name in PLACE)
        self.everything = grid.combinations((*CONTENT, *PLACE))
        count = len(self.everything)
        self.contents = count // (self.across * self.down)
        self.corners = [_centres(size).round().long() - WINDOW // 2 for size in (self.across, self.down)]
        self.bits = torch.empty(count, WINDOW // 2, dtype=torch.long)
        self.sizes, hashes = torch.empty(count, dtype=torch.int32), torch.empty(count, dtype=torch.long)
        for start in range(0, count, BLOCK):
            some = self.everything[start : start + BLOCK]
            rows = _rows(draw_masks(some, warped))
            left, top = (corner[some.column(name)] for corner, name in zip(self.corners, PLACE, strict=True))
            self.bits[start : start + BLOCK] = window = _window(rows, left, top)
            self.sizes[start : start + BLOCK], hashes[start : start + BLOCK] = _count(window), _hash(rows)
        self.hashes, self.order = hashes.sort(stable=True)
        x, y = self.across // 2, self.down // 2
        contents = self.everything[x * self.down + y :: self.across * self.down]
        middle = torch.stack([_centres(self.across)[x], _centres(self.down)[y]])
        self.offsets = _centre_of_mass(draw_masks(contents)) - middle  # a heart's centre of mass is not its centre

    def nearest(self, masks: Bool[Tensor, "n 64 64"]) -> Int64[Tensor, "n"]:
        """The number of the frame with the fewest other pixels; the lowest of several."""
        rows = _rows(masks.byte())
        numbers = self.order[torch.searchsorted(self.hashes, _hash(rows)).clamp(max=len(self.order) - 1)]
        drawn = draw_masks(self.everything[numbers], self.warped) == masks
        for part in torch.split((~drawn.flatten(1).all(1)).nonzero().flatten(), IMAGES):
            candidates, distances = self.compare(masks[part])
            numbers[part] = candidates.gather(1, distances.argmin(1, keepdim=True)).squeeze(1)
        return numbers

    def compare(self, masks: Bool[Tensor, "n 64 64"]) -> tuple[Int64[Tensor, "n k"], Int64[Tensor, "n k"]]:
        """The numbers of the candidates of each image in growing order, and how many pixels are other in them.

        No image may be empty.
        """
        centre = _centre_of_mass(masks)
        if self.warped:
            centre = torch.stack(source(*centre.unbind(-1)), -1)
        cells = []
        for axis, size in enumerate((self.across, self.down)):
            wide = min(2 * REACH + 1, size)
            place = (centre[:, None, axis] - self.offsets[:, axis] - 16) * (size - 1) / 32
            first = (place.round().long() - REACH).clamp(0, size - wide)
            cells.append(first[..., None] + torch.arange(wide))
        places = (cells[0][..., :, None] * self.down + cells[1][..., None, :]).flatten(2)  # [n contents 25]
        numbers = (torch.arange(self.contents)[:, None] * (self.across * self.down) + places).flatten(1)
        windows = self._windows(_rows(masks.byte()))
        outside = masks.flatten(1).sum(1)[:, None] - _count(windows)
        there = (places.flatten(1) + torch.arange(len(masks))[:, None] * windows.shape[1]).flatten()
        other = self.bits.index_select(0, numbers.flatten())
        other ^= windows.flatten(0, 1).index_select(0, there)
        return numbers, (_count(other) + outside.flatten()[there]).reshape(numbers.shape)

    def _windows(self, rows: Int64[Tensor, "n 64"]) -> Int64[Tensor, "n places words"]:
        """The window of each image at every position of the grid."""
        left, top = self.corners
        bits = (rows[:, None] >> left[:, None]) & LOW_HALF
        pairs = bits[..., :-1] | (bits[..., 1:] << WINDOW)
        return pairs.unfold(-1, WINDOW - 1, 1)[..., top, ::2].flatten(1, 2)


def _centres(size: int) -> Float64[Tensor, "size"]:
    """Where the centres of sprites are, for each class of a position, in pixels."""
    return 16 + 32 * torch.linspace(0, 1, size, dtype=torch.float64)


def _centre_of_mass(masks: Tensor) -> Float64[Tensor, "n 2"]:
    """In pixels to the right and downwards; the centre of the first pixel is at one half."""
    pixels = torch.arange(0.5, SIDE, dtype=torch.float64)
    columns, rows = masks.sum(1).double(), masks.sum(2).double()
    return torch.stack([columns @ pixels, rows @ pixels], -1) / columns.sum(1, keepdim=True)


def _rows(masks: UInt8[Tensor, "n 64 64"]) -> Int64[Tensor, "n 64"]:
    """Each row of pixels as the bits of a number, the first pixel lowest."""
    packed = np.packbits(masks.numpy(), axis=-1, bitorder="little")
    return torch.from_numpy(packed.view("<i8").astype(np.int64)).squeeze(-1)


def _window(rows: Int64[Tensor, "n 64"], left: Int[Tensor, "n"], top: Int[Tensor, "n"]) -> Int64[Tensor, "n words"]:
    """The bits of a window, two rows of it in a number."""
    chosen = rows.gather(1, top.long()[:, None] + torch.arange(WINDOW))
    bits = (chosen >> left.long()[:, None]) & LOW_HALF
    return bits[:, 0::2] | (bits[:, 1::2] << WINDOW)


def _count(words: Int64[Tensor, "*n words"]) -> Int64[Tensor, "*n"]:
    """How many bits are one: sums of neighbouring bits, then of pairs, of fours, and of bytes."""
    words = words - (words >> 1).bitwise_and_(0x5555555555555555)
    words = (words & 0x3333333333333333).add_((words >> 2).bitwise_and_(0x3333333333333333))
    words = words.add_(words >> 4).bitwise_and_(0x0F0F0F0F0F0F0F0F)
    return words.sum(-1, keepdim=True).view(torch.uint8).sum(-1)  # 16 words give at most 128 in a byte


def _hash(rows: Int64[Tensor, "n 64"]) -> Int64[Tensor, "n"]:
    """A number for each image; others have another, but for rare accidents."""
    factors = torch.randint(2**62, (2, SIDE), generator=named_generator(0, "hash of frames")) * 2 + 1
    mixed = rows * factors[0]
    return ((mixed ^ (mixed >> 31)) * factors[1]).sum(-1)
