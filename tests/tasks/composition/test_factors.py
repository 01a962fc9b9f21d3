"""The grid is the product of its columns, and substitution replaces just the acted factor."""

from math import pi

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition import Column, Factors, Grid, dsprites, substitute

from .small import small_grid


def test_the_grid_of_dsprites():
    grid = dsprites()
    assert grid.names == ("shape", "scale", "orientation", "position_x", "position_y", "colour")
    assert len(grid) == 737_280 * 3
    values = {column.name: column.values for column in grid.columns}
    assert values["shape"] == (1, 2, 3)
    assert values["scale"] == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], abs=1e-15)
    assert values["orientation"] == pytest.approx([2 * pi * k / 39 for k in range(40)], abs=1e-15)
    assert values["position_x"] == pytest.approx([2 * k / 31 - 1 for k in range(32)], abs=1e-15)
    assert values["position_y"] == values["position_x"]
    assert len(set(values["position_x"])) == 32


def test_rows_are_in_the_order_of_the_file_with_colour_last():
    grid = dsprites()
    classes = grid.all().classes
    shape, scale, orientation, x, y, colour = classes.long().T
    numbers = ((((shape * 6 + scale) * 40 + orientation) * 32 + x) * 32 + y) * 3 + colour
    assert torch.equal(numbers, torch.arange(len(grid)))
    some = torch.tensor([0, 1, 77, 2_000_001, len(grid) - 1])
    assert torch.equal(grid.rows(some).classes, classes[some])


def test_combinations_of_some_columns_leave_the_others_at_their_first_class():
    grid = small_grid()
    classes = grid.combinations(("size", "kind")).classes
    assert classes.tolist() == [[k, s, 0, 0] for s in range(3) for k in range(2)]
    assert len(grid.combinations(())) == 1


def test_samples_are_uniform_and_repeatable():
    grid = small_grid()
    drawn = grid.sample(48_000, named_generator(0, "a"))
    numbers = ((drawn.column("kind") * 3 + drawn.column("size")) * 2 + drawn.column("x")) * 2 + drawn.column("y")
    counts = torch.bincount(numbers, minlength=24)
    assert (counts - 2000).abs().max() < 5 * 2000**0.5
    assert torch.equal(drawn.classes, grid.sample(48_000, named_generator(0, "a")).classes)
    assert not torch.equal(drawn.classes, grid.sample(48_000, named_generator(1, "a")).classes)


@given(st.lists(st.tuples(*[st.integers(0, 2_211_839)] * 2, st.integers(0, 4)), min_size=1, max_size=20))
def test_substitution_replaces_the_acted_columns_and_no_others(rows):
    grid = dsprites()
    reference, transform = (grid.rows(torch.tensor(numbers)) for numbers in list(zip(*rows, strict=True))[:2])
    target = substitute(reference, transform, torch.tensor([row[2] for row in rows]))
    for k, (_, _, action) in enumerate(rows):
        acted = list(grid.actions.values())[action]
        for c, name in enumerate(grid.names):
            source = transform if name in acted else reference
            assert target.classes[k, c] == source.classes[k, c]


def test_a_table_of_ones_own():
    grid = small_grid()
    factors = grid.table(torch.tensor([[1, 2, 0, 1], [0, 0, 1, 1]]))
    assert factors.value("size").tolist() == [0.3, 0.1]
    assert factors.has("kind", "ring").tolist() == [True, False]
    assert factors.row(0) == {"kind": "ring", "size": 0.3, "x": -1.0, "y": 1.0}
    assert repr(factors) == "Factors(2 rows of kind, size, x, y)"
    assert factors[1:].classes.tolist() == [[0, 0, 1, 1]]


def columns(**changes):
    """Two objects of the small grid."""
    return {name: torch.zeros(2, dtype=torch.int32) for name in small_grid().names} | changes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Column("a", ()), "values: expected one or more finite numbers for the column 'a'"),
        (lambda: Column("a", (0.0, float("nan"))), "values: expected one or more finite"),
        (lambda: Column("a", (0.0, "x")), "values: expected one or more finite"),
        (lambda: Column("a", (0.0, 1.0), ("p",)), "labels: expected 2 different ones"),
        (lambda: Column("a", (0.0, 1.0), ("p", "p")), "labels: expected 2 different ones"),
        (lambda: Column("a", (0.0, 1.0), ("p", "p", "q")), "labels: expected 2 different ones"),
        (lambda: Grid((), {}), "columns: expected one or more"),
        (lambda: Grid((Column("a", (0.0,)), Column("a", (1.0,))), {"a": ("a",)}), "columns: .* different names"),
        (lambda: Grid((Column("a", (0.0,)),), {}), "actions: expected at least one"),
        (
            lambda: Grid((Column("a", (0.0,)),), {"a": ("b",)}),
            r"actions: expected a tuple of columns of \['a'\] for 'a'",
        ),
        (lambda: Grid((Column("a", (0.0,)),), {"a": ()}), "actions: expected a tuple of columns"),
        (lambda: Grid((Column("a", (0.0,)),), {"a": ("a", "a")}), "actions: expected a tuple of columns"),
        (lambda: small_grid().table(torch.tensor([[0, -1, 0, 0]])), "classes: expected numbers from 0"),
        (lambda: Factors(small_grid(), {"kind": torch.zeros(2).int()}), "columns: expected .* got .'kind'"),
        (
            lambda: substitute(small_grid().all()[:1], small_grid().all()[:1], torch.tensor([-1])),
            "action: expected numbers from 0 to 2",
        ),
        (
            lambda: Factors(small_grid(), columns(size=torch.zeros(3).int())),
            r"columns: expected \[2\] for 'size', .*\[3\]",
        ),
        (lambda: Factors(small_grid(), columns(size=torch.tensor([0, 3]))), "columns: expected classes from 0 to 2"),
        (
            lambda: Factors(small_grid(), columns(x=torch.tensor([-1, 0]))),
            "columns: expected classes from 0 to 1 for 'x'",
        ),
        (lambda: dsprites((1.0, 1.0)), "position_range: expected two growing, finite numbers"),
        (lambda: dsprites((-1e308, 1e308)), "position_range: expected two growing, finite numbers"),
        (lambda: dsprites().all().value("size"), "column: expected one of .* got 'size'"),
        (lambda: small_grid().all().has("kind", "box"), r"label: expected one of \['disc', 'ring'\]"),
        (lambda: small_grid().all().has("size", "large"), r"label: expected one of \[\]"),
        (lambda: small_grid().rows(torch.tensor([24])), "numbers: expected 0 to 23"),
        (lambda: small_grid().rows(torch.tensor([-1])), "numbers: expected 0 to 23"),
        (lambda: small_grid().table(torch.zeros(2, 3, dtype=torch.long)), r"classes: expected \[n, 4\]"),
        (lambda: small_grid().table(torch.tensor([[0, 3, 0, 0]])), "classes: expected numbers from 0"),
        (
            lambda: substitute(small_grid().all(), small_grid().all(), torch.zeros(3, dtype=torch.long)),
            "as many references",
        ),
        (
            lambda: substitute(small_grid().all(), dsprites().rows(torch.arange(24)), torch.zeros(24).long()),
            "transform: expected factors of the reference's grid",
        ),
    ],
)
def test_bad_input_is_refused(call, message, as_users_run_it):
    with pytest.raises(ValueError, match=message):
        call()


def test_classes_are_whole_numbers(as_users_run_it):
    with pytest.raises(TypeError, match="classes: expected whole numbers"):
        small_grid().table(torch.tensor([[0.0, torch.nan, 0.0, 0.0]]))
    for dtype in (torch.float32, torch.bool, torch.uint8):
        with pytest.raises(TypeError, match=f"columns: expected int32 or int64 for 'size', got {dtype}"):
            Factors(small_grid(), columns(size=torch.zeros(2, dtype=dtype)))
    assert Factors(small_grid(), columns(size=torch.tensor([0, 2]))).value("size").tolist() == [0.1, 0.3]


def test_grids_are_equal_if_their_actions_are_in_the_same_order(as_users_run_it):
    grid = small_grid()
    assert grid == small_grid()
    assert hash(grid) == hash(small_grid())
    assert grid != Grid(grid.columns, dict(reversed(grid.actions.items())))
    assert Grid(list(grid.columns), grid.actions) == grid


def test_streams_differ_by_name_and_seed():
    first = {(seed, name): named_generator(seed, name).initial_seed() for seed in range(100) for name in "abcdefgh"}
    assert len(set(first.values())) == 800


@pytest.mark.parametrize("seed", [-1, 2**63, True, "x", 0.5])
def test_a_seed_is_a_whole_number(as_users_run_it, seed):
    with pytest.raises(ValueError, match="seed: expected a whole number"):
        named_generator(seed, "a")
