"""Which orientations cannot be told apart: all frames of dSprites, compared pixel for pixel (decision 0033).

    python benchmarks/aliasing.py [--out benchmarks/results]

For several numbers of angles, counted from the first: frames that equal one of other factors, by shape, and how many
pixels frames are from another angle of the same shape, scale and place. Writes a table.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from measure import write_table
from tpr_attention.tasks.composition.factors import Grid
from tpr_attention.tasks.images.frames import draw_masks, white_grid

COUNTS = 9, 10, 11, 39, 40
WARPED = (9,)
NEAR = 2  # pixels
COLUMNS = (
    "canvas",
    "angles",
    "frames",
    "equal to another",
    "with another shape, scale or place",
    "squares",
    "ellipses",
    "hearts",
    "least distance to another angle, in pixels",
    f"at most {NEAR} pixels from another angle",
    "least distance of the smallest squares",
)


class Frames(NamedTuple):
    """All frames of a grid, by shape, scale, orientation and place.

    Args:
        digests: A number for each frame; other frames have others.
        distances: The least number of other pixels in another angle, for each number of angles.
    """

    digests: np.ndarray
    distances: dict[int, Tensor]


def frames_of(grid: Grid, counts: tuple[int, ...], warped: bool) -> Frames:
    """Draw all frames, and compare those of all angles at the same place."""
    sizes = grid.sizes[:5]
    numbers = torch.arange(len(grid)).view(sizes)
    digests, found = np.empty(sizes, dtype="S32"), defaultdict(list)
    for shape, scale, across in np.ndindex(sizes[0], sizes[1], sizes[3]):
        block = numbers[shape, scale, :, across]
        masks = draw_masks(grid.rows(block.flatten()), warped).unflatten(0, block.shape)  # angle, place down
        digests[shape, scale, :, across] = np.reshape([*map(digest, masks.flatten(0, 1))], block.shape)
        for count, least in zip(counts, least_distances(masks, counts), strict=True):
            found[count].append(least)
    whole = {count: torch.stack(parts).view(*sizes[:2], sizes[3], sizes[4], count) for count, parts in found.items()}
    return Frames(digests, {count: distances.permute(0, 1, 4, 2, 3) for count, distances in whole.items()})


def digest(mask: Tensor) -> bytes:
    """128 bits of a frame, as text: arrays of bytes drop zeros at their end."""
    return blake2b(np.packbits(mask.numpy()).tobytes(), digest_size=16).hexdigest().encode()


def least_distances(masks: Tensor, counts: tuple[int, ...]) -> Iterator[Tensor]:
    """Pixels that differ from the nearest other angle, for the first angles of each number."""
    pixels = masks.transpose(0, 1).flatten(2).float()
    sizes = pixels.sum(-1)
    apart = sizes.unsqueeze(-1) + sizes.unsqueeze(-2) - 2 * pixels @ pixels.mT
    apart.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    for count in counts:
        yield apart[:, :count, :count].amin(-1)


def row_of(grid: Grid, frames: Frames, count: int) -> list[str]:
    """What is counted among the first angles."""
    digests, distances = frames.digests[:, :, :count], frames.distances[count]
    _, group, members = np.unique(digests, return_inverse=True, return_counts=True)
    equal = (members > 1)[group].reshape(digests.shape)
    contents = np.arange(digests.size).reshape(digests.shape)[:, :, :1]  # the same for all angles of a place
    pairs = np.stack([group.flatten(), np.broadcast_to(contents, digests.shape).flatten()], 1)
    contents_of_groups = np.bincount(np.unique(pairs, axis=0)[:, 0])
    elsewhere = int((contents_of_groups > 1)[group].sum())
    return [
        str(count),
        f"{digests.size:,}",
        f"{equal.sum():,}",
        f"{elsewhere:,}",
        *(with_scales(grid, of_shape) for of_shape in equal),
        f"{distances.min():.0f}",
        f"{(distances <= NEAR).sum():,}",
        f"{distances[0, 0].min():.0f}",
    ]


def with_scales(grid: Grid, equal: np.ndarray) -> str:
    """How many frames of a shape equal another, and of which scales they are unless of all."""
    scales = [f"{scale:g}" for scale, some in zip(grid.columns[1].values, equal, strict=True) if some.any()]
    return f"{equal.sum():,}" + (f" (scale {', '.join(scales)})" if 0 < len(scales) < len(equal) else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    start, rows = time.perf_counter(), []
    for canvas, counts in (("plain", COUNTS), ("bent", WARPED)):
        grid = white_grid(max(counts))
        frames = frames_of(grid, counts, canvas == "bent")
        rows += [[canvas, *row_of(grid, frames, count)] for count in counts]
    said = (
        f"{time.perf_counter() - start:.0f} seconds. Frames that equal one of other factors, pixel for pixel, in all "
        "and of each shape; and pixels in which frames differ from the nearest other angle of the same shape, scale "
        "and place."
    )
    print(write_table(asked.out / "aliasing.md", "Orientations that look alike", said, COLUMNS, rows))


if __name__ == "__main__":
    main()
