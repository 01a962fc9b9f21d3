"""Worlds of any number of factors, of the same kind as the paper's, to see how things grow."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition.encoding import Encoding, FillerTable
from tpr_attention.tasks.composition.factors import Column, Factors, Grid
from tpr_attention.tasks.composition.held_out import HeldOut
from tpr_attention.tasks.composition.pairs import Pairing
from tpr_attention.tasks.composition.task import Composition, scored_roles

__all__ = ["random_composition"]

CLASSES = 4
MOST = {"factors": 128, "filler_dim": 1024}  # to make and to draw from a larger one takes minutes


def random_composition(
    factors: int = 5,
    filler_dim: int = 3,
    *,
    noise: float = 0.0,
    scored: Literal["all", "factors"] = "all",
    seed: int = 0,
) -> Composition:
    """A task without interactions: every factor has four classes, each with a random filler of unit length.

    The combination of the first class of the first two factors is held out, one object in sixteen.

    Args:
        factors: How many there are.
        filler_dim: How many numbers a filler has.
        noise: The standard deviation of noise on the inputs.
        scored: Without interactions, all roles are those of factors.
        seed: Of the fillers, which have a generator of their own.

    >>> task = random_composition(factors=40, filler_dim=8)
    >>> task.draw("ood_composition", 16, named_generator(0, "eval")).target.shape
    torch.Size([16, 40, 8])
    """
    for name, size in {"factors": factors, "filler_dim": filler_dim}.items():
        if not isinstance(size, int) or size < 2:
            raise ValueError(f"{name}: expected a whole number of at least 2, got {size!r}")
        if size > MOST[name]:
            raise ValueError(f"{name}: expected at most {MOST[name]:,}, got {size:,}")
    names = [f"factor_{k + 1}" for k in range(factors)]
    grid = Grid(tuple(Column(name, tuple(range(CLASSES))) for name in names), {name: (name,) for name in names})
    generator = named_generator(seed, "fillers")
    tables = tuple(FillerTable(name, (name,), _on_sphere(CLASSES, filler_dim, generator)) for name in names)
    return Composition(
        Encoding(grid, tables), Pairing(HeldOut(grid, _first_of_first_two)), noise, scored_roles(scored, names)
    )


def _first_of_first_two(factors: Factors) -> Tensor:
    return (factors.column("factor_1") == 0) & (factors.column("factor_2") == 0)


def _on_sphere(count: int, size: int, generator: torch.Generator) -> Float[Tensor, "count size"]:
    return torch.nn.functional.normalize(torch.randn(count, size, generator=generator, dtype=torch.float64), dim=-1)
