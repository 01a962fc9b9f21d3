"""Interactions of factors: a further role whose filler is a function of the fillers of several factors (App. E).

A law takes one tensor of fillers for each factor, [n f] each, and gives the fillers that they share, [n f]: row by row,
in float64. It may ask for two arguments by keyword: `generator`, to draw what is random, and `mixing`, the name of the
distribution that was chosen for it. A law of your own joins by its import path:

    interaction={"law": "my_package.my_module:law", "factors": ["scale", "position"]}

What follows from a law without a generator can be known. What a law draws can only be known from examples: the best
guess at a filler that training never shows is zero, or what the law gives as a second value beside the fillers.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.signature import choose
from tpr_attention.generators import named_generator
from tpr_attention.imports import ImportPathError, load
from tpr_attention.tasks.composition.encoding import Encoding, FillerTable
from tpr_attention.tasks.composition.factors import MOST_COMBINATIONS, Grid
from tpr_attention.tasks.composition.interactions import ALL_INTERACTIONS, Interaction

__all__ = ["MIXINGS", "direction_of_sum", "encode_interaction", "interaction_table", "random_bilinear"]

Fillers = Float[Tensor, "n f"]

MIXINGS: dict[str, Callable[[tuple[int, ...], torch.Generator], Tensor]] = {
    "normal": lambda shape, generator: torch.randn(shape, generator=generator, dtype=torch.float64),
    "uniform": lambda shape, generator: 2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1,
}
"""How the random tensor of an interaction may be drawn. All have mean zero."""


def direction_of_sum(first: Fillers, second: Fillers) -> Fillers:
    r"""The numerical interaction.

    normalize(f_1 + f_2)                                                                        (App. E)
    """
    total = first + second
    length = torch.linalg.vector_norm(total, dim=-1, keepdim=True)
    if length.min() < 1e-6:
        raise ValueError("fillers that add up to zero have no direction")
    return total.div(length)


def random_bilinear(first: Fillers, second: Fillers, *, generator: torch.Generator, mixing: str = "normal") -> Fillers:
    r"""The categorical interaction.

    f[k] = sum_ij f_1[i] M[k, i, j] f_2[j]                                                      (App. E)

    M is random, so that the filler of a combination that was never seen cannot be known.
    """
    tensor = MIXINGS[mixing]((first.shape[-1],) * 3, generator)
    shared: Tensor = einsum(first, tensor, second, "n i, k i j, n j -> n k")
    return shared


def encode_interaction(
    grid: Grid,
    tables: tuple[FillerTable, ...],
    interaction: str | Mapping[str, Any] | None,
    *,
    seed: int,
    mixing: str = "normal",
    interaction_action: bool = False,
) -> Encoding:
    """The encoding of factors and, if there is one, of their interaction.

    Args:
        seed: Of what the interaction's law draws, from the generator "mixing".
        mixing: A name of `MIXINGS`, for laws that ask for it.
        interaction_action: Whether a further action replaces all factors of the interaction.
    """
    generator = named_generator(seed, "mixing")
    choose("mixing", mixing, MIXINGS)
    if interaction is None:
        return Encoding(grid, tables)
    table = interaction_table(interaction, tables, generator=generator, mixing=mixing)
    if interaction_action:
        grid = replace(grid, actions={**grid.actions, table.role: table.columns})
    return Encoding(grid, (*tables, table))


def interaction_table(
    interaction: str | Mapping[str, Any],
    tables: Sequence[FillerTable],
    *,
    generator: torch.Generator,
    mixing: str = "normal",
) -> FillerTable:
    """The fillers of an interaction: a row for each combination of the factors' own.

    Args:
        interaction: A name of `ALL_INTERACTIONS`, or a mapping with `law`, an import path, and `factors`, role names.
        tables: The fillers of the factors.
    """
    role, (factors, path) = _named(interaction)
    found = {table.role: table for table in tables}
    if len(set(factors)) != len(factors) or len(factors) < 2 or not set(factors) <= set(found):
        raise ValueError(f"interaction: expected two or more different factors of {list(found)}, got {list(factors)}")
    if role in found:
        raise ValueError(f"interaction: expected factors whose names together are no other role's, got {role!r}")
    chosen = [found[name] for name in factors]
    sizes = [len(table.fillers) for table in chosen]
    if prod(sizes) > MOST_COMBINATIONS:
        raise ValueError(f"interaction: expected at most {MOST_COMBINATIONS} combinations, got {prod(sizes)}")
    rows = torch.cartesian_prod(*map(torch.arange, sizes)).unbind(-1)
    fillers = [table.fillers.double()[row] for table, row in zip(chosen, rows, strict=True)]
    columns = tuple(name for table in chosen for name in table.columns)
    return FillerTable(role, columns, *_apply(path, fillers, {"generator": generator, "mixing": mixing}))


def _named(interaction: str | Mapping[str, Any]) -> tuple[str, Interaction]:
    """The role's name and what it stands for."""
    if isinstance(interaction, str):
        return interaction, choose("interaction", interaction, ALL_INTERACTIONS)
    if not isinstance(interaction, Mapping) or set(interaction) != set(Interaction._fields):
        raise ValueError(
            f"interaction: expected one of {[*ALL_INTERACTIONS]} or the keys 'factors' and 'law', got {interaction!r}"
        )
    factors, law = interaction["factors"], interaction["law"]
    are_names = isinstance(factors, list | tuple) and all(isinstance(name, str) for name in factors)
    if not (are_names and isinstance(law, str)):
        raise ValueError(f"interaction: expected a list of factors and the path of a law, got {interaction!r}")
    return "_".join(factors), Interaction(tuple(factors), law)


def _apply(
    path: str, fillers: list[Fillers], offered: Mapping[str, object]
) -> tuple[Fillers, Float[Tensor, "f"] | None]:
    """The fillers that a law gives, and the best guess at those that training does not show."""
    try:
        law = load(path)
        asked = inspect.signature(law).parameters.keys() & offered.keys()
        given = law(*fillers, **{name: offered[name] for name in asked})
    except ImportPathError as error:
        raise ValueError(f"interaction: {error}") from error
    except Exception as error:
        raise ValueError(f"interaction: {path!r}: {error}") from error
    shared, guess = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    expected = fillers[0].shape
    if not isinstance(shared, Tensor) or shared.shape != expected or not shared.is_floating_point():
        got = f"{shared.dtype} {list(shared.shape)}" if isinstance(shared, Tensor) else type(shared).__name__
        raise ValueError(f"interaction: {path!r}: expected fillers {list(expected)}, got {got}")
    if not shared.isfinite().all():
        raise ValueError(f"interaction: {path!r}: expected finite fillers")
    if guess is None:
        return shared.double(), torch.zeros(expected[-1], dtype=torch.float64) if "generator" in asked else None
    if not isinstance(guess, Tensor) or guess.shape != expected[-1:] or not guess.isfinite().all():
        raise ValueError(f"interaction: {path!r}: expected a guess of {expected[-1]} finite numbers, got {guess!r}")
    return shared.double(), guess.double()
