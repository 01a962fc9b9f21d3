"""A world small enough to list every pair in it."""

import torch

from tpr_attention.tasks.composition import Column, Encoding, FillerTable, Grid


def small_grid():
    return Grid(
        columns=(
            Column("kind", (1.0, 2.0), ("disc", "ring")),
            Column("size", (0.1, 0.2, 0.3)),
            Column("x", (-1.0, 1.0)),
            Column("y", (-1.0, 1.0)),
        ),
        actions={"kind": ("kind",), "size": ("size",), "place": ("x", "y")},
    )


def small_encoding(grid, generator):
    """Random fillers for every action's columns."""
    sizes = {"kind": 2, "size": 3, "place": 4}
    return Encoding(
        grid,
        tuple(
            FillerTable(name, columns, torch.randn(sizes[name], 3, generator=generator, dtype=torch.float64))
            for name, columns in grid.actions.items()
        ),
    )


def large_discs(factors):
    """Half of the discs of two sizes: read from three columns."""
    return factors.has("kind", "disc") & (factors.value("size") > 0.15) & (factors.value("x") > 0)
