"""Clusters without labels: how many there are is found."""

import math
from itertools import groupby, pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["centres_of", "modes_around", "modes_of"]

MOST_CENTRES = 8
TRIES, ROUNDS = 4, 30
FALL, NOTHING = 0.2, 1e-6
FINEST, WIDTHS = 4096, 24  # cells of the density, and widths of its kernel that are tried
LEAST_SHARE = 0.1  # of the highest mode: what is lower is noise
LITTLE = 0.5  # of the lower of two modes: with less between them, they are apart


def centres_of(points: Float[Tensor, "b entries"], generator: torch.Generator) -> Float[Tensor, "clusters entries"]:
    """The centres of k-means, for the last k up to eight at which the error falls to less than a fifth.

    What is left after a millionth of the error of one centre counts as nothing.

    >>> points = torch.eye(3).repeat(50, 1) + 0.01 * torch.randn(150, 3, generator=torch.Generator().manual_seed(0))
    >>> centres_of(points, torch.Generator().manual_seed(0)).shape
    torch.Size([3, 3])
    """
    found = [_k_means(points, count, generator) for count in range(1, MOST_CENTRES + 1)]
    errors = [max(float(error), NOTHING * float(found[0][0])) for error, _ in found]
    falls = [k for k in range(1, MOST_CENTRES) if errors[k] < FALL * errors[k - 1]]
    return found[max(falls, default=0)][1]


def _k_means(
    points: Float[Tensor, "b entries"], count: int, generator: torch.Generator
) -> tuple[Float[Tensor, ""], Float[Tensor, "clusters entries"]]:
    """The least error of several tries, each from points that are drawn far from each other."""
    best = torch.tensor(torch.inf, device=points.device), points[:count]
    for _ in range(TRIES):
        first = torch.randint(len(points), (1,), generator=generator, device=generator.device)
        centres = points[first.to(points.device)]
        while len(centres) < count:
            distance = torch.cdist(points, centres).amin(1).square() + torch.finfo(points.dtype).tiny
            drawn = torch.multinomial(distance.to(generator.device), 1, generator=generator)
            centres = torch.cat([centres, points[drawn.to(points.device)]])
        for _ in range(ROUNDS):
            nearest = F.one_hot(torch.cdist(points, centres).argmin(1), count).to(points)
            sizes = nearest.sum(0).unsqueeze(-1)
            centres = torch.where(sizes > 0, nearest.mT @ points / sizes.clamp_min(1), centres)
        error = torch.cdist(points, centres).amin(1).square().mean()
        if error < best[0]:
            best = error, centres
    return best


def modes_of(numbers: Float[Tensor, "b"], most: int = 64) -> Float[Tensor, "clusters"]:
    """The modes of numbers along a line, from low to high.

    The density is smoothed with kernels from fine to coarse. The number of modes, up to `most`, that stays the same
    over most of these widths is taken, at the finest width that has it. Widths count where there is little between
    modes, if there are any: wide kernels leave some waves of many modes. A mode is the median of what is nearest to it.

    >>> numbers = torch.arange(5.0).repeat(100) + 0.05 * torch.randn(500, generator=torch.Generator().manual_seed(0))
    >>> modes_of(numbers).round().int().tolist()
    [0, 1, 2, 3, 4]
    """
    low, high = numbers.aminmax()
    if low == high:
        return low.unsqueeze(0)
    cell = (high - low) / FINEST
    density = torch.histc(numbers, FINEST, float(low), float(high))
    # from a cell to an eighth of the line, in steps of equal ratio
    widths = torch.logspace(0, 9, WIDTHS, base=2.0, device=numbers.device, dtype=numbers.dtype)
    found = [_peaks(density, float(width)) for width in widths]
    apart = [one for one in found if len(one.places) <= most and one.are_apart]
    counts = [len(one.places) for one in found]
    few = {len(one.places) for one in apart} or {count for count in counts if count <= max(most, min(counts))}
    usual = max(few, key=lambda count: (_longest(counts, count), -count))
    some = found[counts.index(usual)].places[:: -(-usual // most)]  # all, unless no width has as few as `most`
    centres = low + (some.to(numbers) + 0.5) * cell
    for _ in range(3):
        nearest = (numbers.unsqueeze(-1) - centres).abs().argmin(1)
        members = [numbers[nearest == k] for k in range(len(centres))]
        centres = torch.stack([part.median() for part in members if len(part)])
    return centres


def modes_around(angles: Float[Tensor, "b"]) -> Float[Tensor, "clusters"]:
    """The modes of angles, in order around the circle.

    The circle is cut opposite to the mean direction; in the widest gap, if angles are all around.

    >>> around = 2 * math.pi * torch.arange(9.0).repeat(100) / 9
    >>> noise = torch.randn(900, generator=torch.Generator().manual_seed(0))
    >>> modes_around(around + 0.02 * noise).diff().rad2deg().round().int().tolist()
    [40, 40, 40, 40, 40, 40, 40, 40]
    """
    turn = 2 * math.pi
    middle = torch.atan2(angles.sin().mean(), angles.cos().mean())
    ordered = angles.remainder(turn).sort().values
    gaps = torch.cat([ordered.diff(), ordered[:1] + turn - ordered[-1:]])
    if gaps.max() < math.pi:
        middle = ordered[gaps.argmax()] + gaps.max() / 2 - math.pi
    return modes_of((angles - middle + math.pi).remainder(turn) - math.pi) + middle


class _Peaks(NamedTuple):
    """Where a smooth density has its modes, and whether there is little between most of them."""

    places: Int[Tensor, "modes"]
    are_apart: bool


def _peaks(density: Float[Tensor, "cells"], width: float) -> _Peaks:
    """The modes of a density that is smoothed with a normal kernel of this width."""
    reach = int(4 * width) + 1
    offsets = torch.arange(-reach, reach + 1, device=density.device, dtype=density.dtype)
    kernel = torch.exp(-0.5 * (offsets / width).square())
    smooth = F.conv1d(F.pad(density, (reach, reach))[None, None], kernel[None, None])[0, 0]
    padded = F.pad(smooth, (1, 1))
    is_peak = (smooth > padded[:-2]) & (smooth >= padded[2:]) & (smooth > LEAST_SHARE * smooth.max())
    places = is_peak.nonzero().flatten()
    if len(places) < 2:
        return _Peaks(places, True)
    between = torch.stack([smooth[one:other].min() for one, other in pairwise(places.tolist())])
    lower = torch.minimum(smooth[places[:-1]], smooth[places[1:]])
    return _Peaks(places, bool((between / lower).median() < LITTLE))


def _longest(counts: list[int], wanted: int) -> int:
    """The length of the longest stretch of a count."""
    return max(len(list(same)) for count, same in groupby(counts) if count == wanted)
