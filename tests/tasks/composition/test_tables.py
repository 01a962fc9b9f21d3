"""A table's columns become factors: distinct values are classes, and fillers are made or read."""

import hashlib
from pathlib import Path

import polars as pl
import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition import table_composition

FRUIT = Path(__file__).with_name("fruit.csv")
ROWS = pl.read_csv(FRUIT)
FACTORS = {"kind": "one-hot", "weight": "numeric", "taste": ["sweet", "sour"]}


def fillers(task):
    return {table.role: table.fillers.tolist() for table in task.encoding.tables}


def test_classes_and_fillers():
    task = table_composition(str(FRUIT), FACTORS)
    assert {column.name: column.labels for column in task.grid.columns} == {
        "kind": ("apple", "lemon", "pear"),
        "weight": (),
        "taste": ("mild", "sharp", "sweet"),
    }
    assert task.grid.columns[1].values == (0.1, 0.2, 0.25)
    found = fillers(task)
    assert found["kind"] == torch.eye(3).tolist()
    scaled = [-1, 1 / 3, 1]
    expected = torch.tensor([[x, 1 - abs(x), 0] for x in scaled], dtype=torch.float64)
    torch.testing.assert_close(task.encoding.tables[1].fillers, expected)
    assert found["taste"] == [[0.5, 0.5, 0.0], [0.1, 0.9, 0.0], [1.0, 0.0, 0.0]]
    assert len(task.grid) == 27  # all combinations, though the table has five rows
    assert task.sizes == {"num_actions": 3, "num_roles": 3, "filler_dim": 3}


def test_all_columns_are_factors_unless_said():
    task = table_composition(str(FRUIT))
    assert task.encoding.role_names == tuple(ROWS.columns)
    assert task.grid.columns[-1].labels == ("false", "true")
    assert fillers(task)["sweet"][0] == [-1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("split", "held_out"),
    [
        (None, {"kind": "apple", "weight": 0.1}),
        ({"taste": "sweet", "kind": "pear"}, {"taste": "sweet", "kind": "pear"}),
        ({"weight": 0.25, "taste": "mild"}, {"weight": 0.25, "taste": "mild"}),
        (f"{__name__}:light_lemons", {"kind": "lemon", "weight": 0.1}),
    ],
)
def test_what_is_held_out(split, held_out):
    task = table_composition(str(FRUIT), FACTORS, split)
    batch = task.draw("ood_composition", 50, named_generator(0, "a"))
    target = task.encoding.decode(batch.target)
    assert all({**target.row(k), **held_out} == target.row(k) for k in range(50))
    assert task.pairing.held_out.share == pytest.approx(1 / 9)


def light_lemons(factors):
    return factors.has("kind", "lemon") & (factors.value("weight") < 0.15)


def test_the_order_of_rows_and_the_file_type_do_not_matter(tmp_path):
    ROWS.reverse().write_csv(tmp_path / "reversed.csv")
    ROWS.write_parquet(tmp_path / "fruit.parquet")
    paths = FRUIT, tmp_path / "reversed.csv", tmp_path / "fruit.parquet"
    drawn = [table_composition(str(path), FACTORS).draw("train", 50, named_generator(0, "a")) for path in paths]
    for batch in drawn[1:]:
        assert all(torch.equal(*pair) for pair in zip(batch.tensors(), drawn[0].tensors(), strict=True))


def test_an_interaction_of_columns():
    law = {"law": "tpr_attention.tasks.composition.laws:random_bilinear", "factors": ["kind", "taste"]}
    task = table_composition(str(FRUIT), FACTORS, {"kind": "pear", "taste": "mild"}, law, seed=3, scored="factors")
    assert task.encoding.role_names[-1] == "kind_taste"
    assert task.scored == (True, True, True, False)
    assert task.floors()["ood_composition"]["knowable"] == 0  # the interaction does not count
    other = table_composition(str(FRUIT), FACTORS, {"kind": "pear", "taste": "mild"}, law, seed=3)
    assert other.floors()["ood_composition"]["knowable"] > 0


def test_the_file_can_be_pinned():
    digest = hashlib.sha256(FRUIT.read_bytes()).hexdigest()
    table_composition(str(FRUIT), FACTORS, sha256=digest)
    with pytest.raises(ValueError, match=f"sha256: .*{digest}; the file has changed"):
        table_composition(str(FRUIT), FACTORS, sha256="0" * 64)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", r"path: expected a file that ends with one of \['.csv', '.parquet'\], got ''"),
        ("fruit.txt", "path: expected a file that ends with"),
        ("absent.csv", "path: no such file: 'absent.csv'"),
    ],
)
def test_a_path_that_names_no_table_is_refused(path, message):
    with pytest.raises(ValueError, match=message):
        table_composition(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b""), ("a.csv", b"a,b\n1,2\n3,4,5\n"), ("a.csv", b"\xff\xfe\n1\n"), ("a.parquet", b"a,b\n1,2\n")],
)
def test_a_file_that_cannot_be_read_is_refused(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"^(path|factors): "):
        table_composition(str(tmp_path / name))


@pytest.mark.parametrize(
    ("changes", "factors", "message"),
    [
        ({}, {"kind": "one-hot"}, r"factors: expected two or more of .* got \['kind'\]"),
        ({}, FACTORS | {"size": "one-hot"}, r"factors: expected columns of the table, \['kind', .* got 'size'"),
        ({}, FACTORS | {"taste": ["sweet", "salt"]}, "factors: expected columns of the table, .* got 'salt'"),
        ({}, FACTORS | {"taste": "two-hot"}, "factors: expected 'one-hot', .* for 'taste', got 'two-hot'"),
        ({}, FACTORS | {"taste": []}, r"factors: expected 'one-hot', .* for 'taste', got \[\]"),
        ({}, FACTORS | {"taste": [3]}, r"factors: expected 'one-hot', .* for 'taste', got \[3\]"),
        ({}, FACTORS | {"kind": "numeric"}, "factors: expected numbers in the column 'kind', got String"),
        ({}, FACTORS | {"taste": ["sweet", "kind"]}, "factors: expected numbers in the column 'kind'"),
        ({}, FACTORS | {"kind": ["sweet", "sour"]}, "factors: .*rows with kind = apple have different numbers"),
        ({"kind": ["apple"] * 5}, FACTORS, r"factors: expected two or more classes of 'kind', got \['apple'\]"),
        ({"kind": ["a", None, "b", "b", "b"]}, FACTORS, "path: .* column 'kind', row 2 has none"),
        ({"weight": [1.0, 2.0, float("nan"), 1.0, 2.0]}, FACTORS, "path: .* column 'weight', row 3 has none"),
        ({"sour": [1.0, 2.0, 1.0, 1.0, float("inf")]}, FACTORS, "path: .* column 'sour', row 5 has none"),
        ({"loss": [1, 2, 3, 4, 5]}, FACTORS | {"loss": "numeric"}, "factors: expected other names than 'loss'"),
    ],
)
def test_a_table_that_makes_no_task_is_refused(changes, factors, message, tmp_path):
    ROWS.with_columns(**{name: pl.Series(values) for name, values in changes.items()}).write_parquet(
        tmp_path / "a.parquet"
    )
    with pytest.raises(ValueError, match=message):
        table_composition(str(tmp_path / "a.parquet"), factors)


def test_too_many_classes_for_one_hot_fillers_are_refused(tmp_path):
    pl.DataFrame({"a": range(1100), "b": [k % 3 for k in range(1100)]}).write_csv(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="factors: expected at most 1024 classes of 'a' for one-hot fillers, got 1100"):
        table_composition(str(tmp_path / "a.csv"), {"a": "one-hot", "b": "one-hot"})
    assert table_composition(str(tmp_path / "a.csv")).filler_dim == 2


def test_all_rows_decide_what_a_column_is(tmp_path):
    pl.DataFrame({"a": ["1"] * 300 + ["2.5"], "b": ["3"] * 300 + ["x"]}).write_csv(tmp_path / "a.csv")
    columns = table_composition(str(tmp_path / "a.csv")).grid.columns
    assert (columns[0].values, columns[1].labels) == ((1.0, 2.5), ("3", "x"))


def test_an_interaction_needs_a_name_of_its_own(tmp_path):
    pl.DataFrame({name: [1, 2] for name in ("a", "b", "a_b")}).write_csv(tmp_path / "a.csv")
    law = {"law": "tpr_attention.tasks.composition.laws:direction_of_sum", "factors": ["a", "b"]}
    with pytest.raises(ValueError, match="interaction: expected factors whose names together are no other role's"):
        table_composition(str(tmp_path / "a.csv"), interaction=law)


def test_rows_without_values_are_refused(tmp_path):
    ROWS.clear().write_csv(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"path: expected one or more rows"):
        table_composition(str(tmp_path / "a.csv"))
