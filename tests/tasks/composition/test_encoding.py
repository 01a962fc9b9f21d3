"""Objects have the fillers of appendix E, and can be read back."""

from dataclasses import replace
from math import cos, hypot, pi, sin, sqrt

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition import (
    INTERACTIONS,
    Column,
    Encoding,
    FillerTable,
    Grid,
    dsprites,
    dsprites_composition,
    dsprites_fillers,
)
from tpr_attention.tasks.composition.laws import interaction_table

from .small import small_encoding, small_grid


def appendix_e(factors, row):
    """The fillers of one object, number by number."""
    scale, x, y = int(factors.column("scale")[row]), *(factors.value(f"position_{a}")[row].item() for a in "xy")
    turn, theta, phi = factors.value("orientation")[row].item(), pi / 2 * scale / 5, pi / 4
    one_hot = {name: [float(k == int(factors.column(name)[row])) for k in range(3)] for name in ("shape", "colour")}
    return [
        one_hot["shape"],
        [cos(theta), sin(theta) * cos(phi), sin(theta) * sin(phi)],
        [cos(turn), sin(turn), 0.0],
        [x, y, 1 - sqrt(x**2 + y**2)],
        one_hot["colour"],
    ]


@pytest.mark.parametrize("interaction", [None, *INTERACTIONS])
def test_objects_are_those_of_appendix_e(interaction):
    task = dsprites_composition("square_red", interaction, seed=5)
    factors = task.grid.sample(200, named_generator(0, "a"))
    objects = task.encoding.encode(factors, torch.float64)
    mixing = torch.randn(3, 3, 3, generator=named_generator(5, "mixing"), dtype=torch.float64)
    for row in range(200):
        fillers = appendix_e(factors, row)
        if interaction == "scale_pos":
            total = [s + p for s, p in zip(fillers[1], fillers[3], strict=True)]
            fillers.append([entry / hypot(*total) for entry in total])
        if interaction == "shape_col":
            shape, colour = int(factors.column("shape")[row]), int(factors.column("colour")[row])
            fillers.append(mixing[:, shape, colour].tolist())
        torch.testing.assert_close(objects[row], torch.tensor(fillers, dtype=torch.float64), rtol=0, atol=1e-14)


def test_all_fillers_are_different_but_for_the_full_turn():
    for table in dsprites_fillers(dsprites()):
        distances = torch.cdist(table.fillers, table.fillers) + torch.eye(len(table.fillers))
        same = (distances < 1e-6).nonzero().tolist()
        assert same == ([[0, 39], [39, 0]] if table.role == "orientation" else []), table.role


def test_angles_can_be_chosen():
    angles = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    scale = dsprites_fillers(dsprites(), scale_angles=angles, azimuth=0.0)[1].fillers
    expected = torch.tensor([[cos(a), sin(a), 0.0] for a in angles], dtype=torch.float64)
    torch.testing.assert_close(scale, expected)
    with pytest.raises(ValueError, match="scale_angles: expected 6"):
        dsprites_fillers(dsprites(), scale_angles=[0.0, 1.0])


def test_a_sum_without_a_direction_is_refused(generator):
    """At the position (-1, 0) the filler is the opposite of that of the first scale."""
    positions = tuple(k / 31 * 2 - 1 for k in range(31))
    grid = dsprites()
    columns = tuple(
        replace(column, values=(-1.0, *positions[1:], 0.0)) if column.name.startswith("position") else column
        for column in grid.columns
    )
    with pytest.raises(ValueError, match=r"interaction: .*direction_of_sum': fillers that add up to zero"):
        interaction_table("scale_pos", dsprites_fillers(replace(grid, columns=columns)), generator=generator)


@pytest.mark.parametrize("interaction", [None, *INTERACTIONS])
@pytest.mark.parametrize("width", [None, 6, 11])
def test_decoding_inverts_encoding_for_any_orthonormal_roles(interaction, width, generator):
    count = 5 if interaction is None else 6
    roles = None if width is None else torch.linalg.qr(torch.randn(width, count, generator=generator).double())[0].T
    plain = dsprites_composition("scale_pos", interaction).encoding
    encoding = Encoding(plain.grid, plain.tables, roles)
    factors = encoding.grid.sample(500, generator)
    objects = encoding.encode(factors)
    assert objects.shape == (500, width or count, 3)
    assert objects.dtype == torch.float32
    decoded, classes = encoding.decode(objects).classes, factors.classes.clone()
    full_turn = classes[:, 2] == 39
    assert full_turn.any()
    same_angle = torch.isin(decoded[:, 2], torch.tensor([0, 39]))
    assert same_angle[full_turn].all()
    classes[:, 2] = torch.where(same_angle, decoded[:, 2], classes[:, 2])
    assert torch.equal(decoded, classes)
    assert set(encoding.accuracy(objects, factors).values()) == {1.0}


def test_decoding_takes_the_nearest_and_survives_noise(generator):
    encoding = dsprites_composition().encoding
    factors = encoding.grid.sample(300, generator)
    # Neighbouring orientations are 0.16 apart, positions 0.065: noise of 0.01 confuses neither.
    objects = encoding.encode(factors, torch.float64)
    noisy = objects + 0.01 * torch.randn(objects.shape, generator=generator, dtype=torch.float64).clamp(-1.5, 1.5)
    assert set(encoding.accuracy(noisy, factors).values()) == {1.0}
    moved = noisy.clone()
    moved[:150, 4] = -noisy[:150, 4]  # no colour at all, but the nearest is another
    shares = encoding.accuracy(moved, factors)
    assert shares.pop("colour") == 0.5
    assert set(shares.values()) == {1.0}


def test_an_answer_that_is_not_finite_is_wrong_and_cannot_be_decoded():
    encoding = dsprites_composition().encoding
    factors = encoding.grid.rows(torch.arange(4))
    objects = encoding.encode(factors)
    objects[1, 2, 0] = float("nan")
    objects[2, 0, 0] = float("inf")
    assert encoding.accuracy(objects, factors) == dict.fromkeys(encoding.role_names, 0.5)
    with pytest.raises(ValueError, match="objects: expected finite"):
        encoding.decode(objects)


def test_a_neighbouring_filler_is_wrong():
    """Positions are 0.065 apart."""
    encoding = dsprites_composition().encoding
    factors = encoding.grid.combinations(("position_x",))
    shares = encoding.accuracy(encoding.encode(factors[:-1]), factors[1:])
    assert shares == {"shape": 1.0, "scale": 1.0, "orientation": 1.0, "position": 0.0, "colour": 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e, f: e.accuracy(e.encode(f)[:0], f[:0]), "objects: expected one for each of the factors, got 0 for 0"),
        (lambda e, f: e.accuracy(e.encode(f)[:1], f), "objects: expected one for each of the factors, got 1 for 4"),
        (lambda e, f: e.decode(torch.ones(2, 7, 3)), "objects: expected .* r=5"),
    ],
)
def test_objects_that_do_not_fit_are_refused(call, message, as_users_run_it):
    encoding = dsprites_composition().encoding
    with pytest.raises(ValueError, match=message):
        call(encoding, encoding.grid.rows(torch.arange(4)))


def test_blocks_do_not_change_what_is_nearest(monkeypatch, generator):
    encoding = dsprites_composition().encoding
    objects = torch.randn(50, 5, 3, generator=generator)
    whole = encoding.decode(objects).classes
    monkeypatch.setattr("tpr_attention.tasks.composition.encoding.MOST_DISTANCES", 3000)
    assert torch.equal(encoding.decode(objects).classes, whole)


def with_table(encoding, **changes):
    return Encoding(encoding.grid, (replace(encoding.tables[0], **changes), *encoding.tables[1:]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: Encoding(e.grid, ()), "tables: expected one or more roles"),
        (lambda e: with_table(e, role="size"), "tables: .* different names"),
        (lambda e: with_table(e, fillers=torch.ones(3, 3)), r"tables: expected fillers \[2, 3\] for the role 'kind'"),
        (lambda e: with_table(e, fillers=torch.full((2, 3), torch.nan)), "tables: expected finite fillers"),
        (
            lambda e: with_table(e, fillers=torch.ones(2, 3).long()),
            "tables: expected floating-point .* got torch.int64",
        ),
        (lambda e: with_table(e, guess=torch.full((3,), torch.nan)), r"tables: expected a finite guess \[3\]"),
        (lambda e: Encoding(e.grid, e.tables, torch.eye(3) * torch.nan), "roles: expected orthonormal rows"),
        (lambda e: with_table(e, guess=torch.zeros(2)), r"tables: expected a finite guess \[3\]"),
        (lambda e: with_table(e, columns=("colour",)), "column: expected one of"),
        (lambda e: Encoding(e.grid, e.tables, torch.eye(2)), r"roles: expected \[3, r\], got \[2, 2\]"),
        (lambda e: Encoding(e.grid, e.tables, torch.ones(3, 3)), "roles: expected orthonormal rows"),
        (lambda e: with_table(e, columns=("kind", "kind"), fillers=torch.ones(4, 3)), "tables: .*different columns"),
        (lambda e: Encoding(e.grid, e.tables, 1.01 * torch.eye(3)), "roles: expected orthonormal rows"),
        (lambda e: Encoding(e.grid, e.tables, 2 * torch.eye(3)), "roles: expected orthonormal rows"),
        (lambda e: e.encode(dsprites().rows(torch.arange(2))), "factors: expected factors of the encoding's grid"),
        (lambda e: Encoding(e.grid, e.tables[:2]).decode(torch.ones(1, 2, 3)), "none does on .*'x', 'y'"),
    ],
)
def test_bad_tables_are_refused(call, message, generator, as_users_run_it):
    with pytest.raises(ValueError, match=message):
        call(small_encoding(small_grid(), generator))


def test_a_column_is_read_from_the_role_that_depends_on_the_fewest(generator):
    """Also where a role that depends on more comes first."""
    grid = Grid((Column("a", (0.0, 1.0)), Column("b", (0.0, 1.0))), {"a": ("a",), "b": ("b",)})
    both = FillerTable("both", ("a", "b"), torch.zeros(4, 2))
    single = [FillerTable(name, (name,), torch.eye(2)) for name in "ab"]
    encoding = Encoding(grid, (both, *single))
    assert torch.equal(encoding.decode(encoding.encode(grid.all())).classes, grid.all().classes)


def test_tables_and_roles_of_several_dtypes_give_objects_of_one(generator):
    encoding = small_encoding(small_grid(), generator)
    mixed = [replace(encoding.tables[0], fillers=encoding.tables[0].fillers.float()), *encoding.tables[1:]]
    found = Encoding(encoding.grid, tuple(mixed), torch.eye(3, dtype=torch.float16))
    for dtype in (torch.float32, torch.float64):
        objects = found.encode(encoding.grid.all(), dtype)
        assert objects.dtype == dtype
        torch.testing.assert_close(objects, encoding.encode(encoding.grid.all(), dtype), rtol=1e-6, atol=1e-6)


def test_one_role_is_enough(generator):
    grid = small_grid()
    table = FillerTable("all", grid.names, torch.randn(24, 3, generator=generator))
    encoding = Encoding(grid, (table,))
    objects = encoding.encode(grid.all())
    assert objects.shape == (24, 1, 3)
    assert torch.equal(encoding.decode(objects).classes, grid.all().classes)
