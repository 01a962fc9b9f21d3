"""Worlds of any number of factors, of the same kind as the paper's, to see how things grow."""

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.data.composition import Composition
from tpr_attention.data.encoding import Encoding, FillerTable
from tpr_attention.data.factors import Column, Factors, Grid
from tpr_attention.data.pairs import Pairing
from tpr_attention.data.splits import HeldOut
from tpr_attention.data.streams import stream
from tpr_attention.functional.signature import expect_positive

__all__ = ["random_composition"]

CLASSES = 4


def random_composition(num_factors: int, filler_dim: int, *, noise: float = 0.0, seed: int = 0) -> Composition:
    """A task without interactions: every factor has four classes, each with a random filler of unit length.

    The combination of the first class of the first two factors is held out, one object in sixteen.

    Args:
        noise: The standard deviation of noise on the inputs.
        seed: Of the fillers, which have a stream of their own.

    >>> task = random_composition(num_factors=40, filler_dim=8)
    >>> task.draw("ood_composition", 16, stream(0, "eval")).reference.shape
    torch.Size([16, 40, 8])
    """
    expect_positive(num_factors=num_factors, filler_dim=filler_dim)
    for name, size in {"num_factors": num_factors, "filler_dim": filler_dim}.items():
        if size < 2:
            raise ValueError(f"{name}: expected at least 2, got {size}")
    names = [f"factor_{k + 1}" for k in range(num_factors)]
    grid = Grid(tuple(Column(name, tuple(range(CLASSES))) for name in names), {name: (name,) for name in names})
    generator = stream(seed, "fillers")
    tables = tuple(FillerTable(name, (name,), _on_sphere(CLASSES, filler_dim, generator)) for name in names)
    return Composition(Encoding(grid, tables), Pairing(HeldOut(grid, _first_of_first_two)), noise)


def _first_of_first_two(factors: Factors) -> Tensor:
    return (factors.column("factor_1") == 0) & (factors.column("factor_2") == 0)


def _on_sphere(count: int, size: int, generator: torch.Generator) -> Float[Tensor, "count size"]:
    return torch.nn.functional.normalize(torch.randn(count, size, generator=generator, dtype=torch.float64), dim=-1)
