"""What is stored is read back as it was, and what is not a store is refused."""

import json
import os
import stat
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tpr_attention.experiments.curves import curve
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store, StoreError

SPEC = RunSpec(model="resnet", options={"width": 3}, seed=4, interaction="shape_col", target_of_tests=True)
CURVE = curve(
    [
        Point("", 0, "train", (1.0, 2.0)),
        Point("", 5, "train", (0.5, float("nan"))),
        Point("", 5, "train", (0.1, 0.3), "shape"),
    ],
    {"shape": 0.25, "colour": 0.75},
)
WEIGHTS = {"layer.weight": np.arange(6, dtype=np.float32).reshape(2, 3).T, "step": np.array(3)}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", create=True)


def test_a_run_is_read_back(store):
    store.save(SPEC, CURVE, WEIGHTS, {"seconds": 1.5})
    again = Store(store.path)
    assert list(again) == [SPEC.digest]
    assert again.spec(SPEC.digest) == SPEC
    assert again.curve(SPEC.digest).equals(CURVE, null_equal=True)
    assert CURVE["loss"][0] == 1.75
    assert again.provenance(SPEC.digest) == {"seconds": 1.5}
    for name, array in again.weights(SPEC.digest).items():
        np.testing.assert_array_equal(array, WEIGHTS[name], strict=True)
    assert sorted(path.name for path in (store.path / SPEC.digest).iterdir()) == [
        "SHA256SUMS",
        "curve.parquet",
        "provenance.json",
        "spec.json",
        "weights.safetensors",
    ]


def test_a_stored_run_is_kept(store):
    store.save(SPEC, CURVE, WEIGHTS, {"seconds": 1.5})
    store.save(SPEC, CURVE.head(1), {}, {"seconds": 9})
    assert store.provenance(SPEC.digest) == {"seconds": 1.5}
    assert len(store.curve(SPEC.digest)) == 3


def test_the_table_has_all_runs_and_specs(store):
    other = replace(SPEC, interaction=None, target_of_tests=None, seed=7, position_range=(0.0, 1.0))
    store.save(SPEC, CURVE, WEIGHTS, {})
    store.save(other, curve([Point("", 0, "train", (1.0, 2.0))], {"shape": 0.5, "size": 0.5}), WEIGHTS, {})
    table = pl.read_parquet(store.write_table())
    assert len(table) == 4
    row = table.filter(pl.col("run") == other.digest).row(0, named=True)
    assert (row["seed"], row["interaction"], row["target_of_tests"], row["loss"]) == (7, None, None, 1.5)
    assert (row["role_size"], row["role_colour"], json.loads(row["options"])) == (2.0, None, {"width": 3})
    assert json.loads(row["position_range"]) == [0, 1]
    assert table.filter(pl.col("run") == SPEC.digest)["target_of_tests"].to_list() == [True] * 3


def test_the_same_run_has_the_same_bytes(store, tmp_path):
    other = Store(tmp_path / "other", create=True)
    for one in (store, other):
        one.save(SPEC, CURVE, WEIGHTS, {})
        one.write_table()
    for path in store.path.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (other.path / path.relative_to(store.path)).read_bytes()


def test_runs_are_found_by_the_first_digits(store):
    for seed in range(3):
        store.save(replace(SPEC, seed=seed), CURVE, WEIGHTS, {})
    digest = replace(SPEC, seed=1).digest
    assert store.find(digest[:6]) == digest
    with pytest.raises(StoreError, match="found 3 runs"):
        store.find("")
    with pytest.raises(StoreError, match="found no run"):
        store.find("xyz")


def test_half_a_run_is_none(store):
    (store.path / f".{SPEC.digest}.123").mkdir()
    (store.path / SPEC.digest).mkdir()
    assert list(store) == []
    assert SPEC.digest not in store


def test_a_write_that_fails_leaves_nothing(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=rf"{SPEC.digest}: cannot be written: No space left"):
        store.save(SPEC, CURVE, WEIGHTS, {})
    assert sorted(path.name for path in store.path.iterdir()) == ["store.json", "store.json.sha256"]
    monkeypatch.undo()
    store.save(SPEC, CURVE, WEIGHTS, {})
    assert SPEC.digest in store


def test_files_follow_the_umask(store):
    before = os.umask(0o002)
    try:
        store.save(SPEC, CURVE, WEIGHTS, {})
    finally:
        os.umask(before)
    for path in (store.path / SPEC.digest).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o664
    assert stat.S_IMODE((store.path / SPEC.digest).stat().st_mode) == 0o775


def test_what_is_not_a_store_is_refused(tmp_path):
    with pytest.raises(StoreError, match="no store here"):
        Store(tmp_path / "nothing")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="found something else"):
        Store(tmp_path, create=True)
    with pytest.raises(StoreError, match="found something else"):
        Store(tmp_path / "notes.txt", create=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_another_schema_is_refused(store):
    (store.path / "store.json").write_text('{"schema": 99}')
    with pytest.raises(StoreError, match="schema 99"):
        Store(store.path)


@pytest.mark.parametrize(
    ("file", "read"),
    [("spec.json", Store.spec), ("curve.parquet", Store.curve), ("weights.safetensors", Store.weights)],
)
@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"[1"])
def test_files_that_are_none_are_named(store, file, read, content):
    store.save(SPEC, CURVE, WEIGHTS, {})
    (store.path / SPEC.digest / file).write_bytes(content)
    with pytest.raises(StoreError, match=file):
        read(store, SPEC.digest)
