"""A split is one predicate; training has the rest."""

import pytest
import torch

from tpr_attention.tasks.composition import SPLITS, HeldOut, dsprites

from .small import large_discs, small_grid


def literal(name, factors):
    """The three splits by class index."""
    shape, scale, x, colour = (factors.column(c) for c in ("shape", "scale", "position_x", "colour"))
    return {
        "scale_pos": (scale >= 3) & (x >= 16),
        "square_pos": (shape == 0) & (x >= 16),
        "square_red": (shape == 0) & (colour == 0),
    }[name]


@pytest.mark.parametrize(("name", "share"), [("scale_pos", 1 / 4), ("square_pos", 1 / 6), ("square_red", 1 / 9)])
def test_the_splits_of_the_paper(name, share):
    grid = dsprites()
    everything = grid.all()
    held = SPLITS[name](everything)
    assert torch.equal(held, literal(name, everything))
    held_out = HeldOut(grid, SPLITS[name])
    assert torch.equal(held_out(everything), held)
    assert held_out.share == pytest.approx(share)
    assert held.double().mean().item() == pytest.approx(share)


def test_positions_in_another_range_move_the_split():
    """With positions from 0 to 1, posX > 0 is all but the first column."""
    assert HeldOut(dsprites((0.0, 1.0)), SPLITS["square_pos"]).share == pytest.approx(31 / 32 / 3)


def test_only_what_a_split_reads_is_tabulated():
    assert HeldOut(dsprites(), SPLITS["scale_pos"]).names == ("scale", "position_x")
    assert HeldOut(small_grid(), large_discs).table.shape == (2, 3, 2)
    assert HeldOut(small_grid(), lambda f: f.classes.sum(-1) > 5).names == small_grid().names


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (("kind",), ("size", "x")),
        (("x", "y"), ("size", "kind")),
        (("size",), ("y", "x", "kind")),
        ((), ("kind", "size", "x")),
    ],
)
def test_the_matrix_has_an_entry_for_each_combination(rows, columns):
    grid = small_grid()
    held_out = HeldOut(grid, large_discs)
    expected = large_discs(grid.combinations((*rows, *columns))).reshape(len(grid.combinations(rows)), -1)
    assert torch.equal(held_out.matrix(rows, columns), expected)


def test_a_split_that_reads_nothing_holds_out_all_or_nothing():
    held_out = HeldOut(small_grid(), lambda factors: torch.zeros(len(factors), dtype=torch.bool))
    assert held_out.share == 0
    assert not held_out(small_grid().all()).any()


def test_a_split_that_reads_a_column_only_sometimes():
    """Too rare to be met by chance: twelve objects of two million."""

    def rare(factors):
        few = factors.has("shape", "heart") & (factors.column("orientation") == 7)
        few &= (factors.column("position_x") == 3) & (factors.column("position_y") == 5)
        return few & ~factors.has("colour", "red") if few.any() else few

    held_out = HeldOut(dsprites(), rare)
    assert held_out.names == ("shape", "orientation", "position_x", "position_y", "colour")
    assert held_out.share * len(dsprites()) == pytest.approx(12)


def uneven(factors):
    return torch.arange(len(factors)) % 2 == 0


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (lambda f: f.value("size"), r"split: expected a boolean for each of 4096 rows, got torch.float64"),
        (lambda f: f.has("kind", "disc").any(), r"split: expected a boolean .* got torch.bool \[\]"),
        (lambda f: True, "split: expected a boolean .* got bool"),
        (uneven, "split: expected one that looks at each row by itself"),
        (lambda f: f.has("kind", "box"), "split: label: expected one of"),
    ],
)
def test_a_split_that_is_no_predicate_is_refused(split, message):
    with pytest.raises(ValueError, match=message):
        HeldOut(small_grid(), split)


def test_a_split_that_reads_too_many_combinations_is_refused(monkeypatch):
    monkeypatch.setattr("tpr_attention.tasks.composition.held_out.MOST_COMBINATIONS", 11)
    with pytest.raises(ValueError, match=r"split: expected one that reads .* at most 11 combinations, got 12"):
        HeldOut(small_grid(), large_discs)
