"""A stored run is read back as it was, and a folder that is not a store is refused."""

import json
import os
import stat
import subprocess
import sys

import msgspec
import numpy as np
import polars as pl
import pytest

from tests.runner.specs import CURVE, NAMES, SPEC, WEIGHTS, save
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.runner.tables import table_of, write_table
from tpr_attention.training.spec import Component


def test_a_run_is_read_back(store):
    save(store, seconds=1.5)
    again = Store(store.path)
    assert list(again) == [SPEC.digest]
    assert again.spec(SPEC.digest) == SPEC
    assert again.names(SPEC.digest) == NAMES
    assert again.curve(SPEC.digest).equals(CURVE, null_equal=True)
    assert again.provenance(SPEC.digest) == {"seconds": 1.5}
    for name, array in again.weights(SPEC.digest).items():
        np.testing.assert_array_equal(array, WEIGHTS[name], strict=True)
    assert sorted(path.name for path in (store.path / SPEC.digest).iterdir()) == [
        "SHA256SUMS",
        "curve.parquet",
        "names.json",
        "provenance.json",
        "spec.json",
        "weights.safetensors",
    ]


def test_a_stored_run_is_kept(store):
    save(store, seconds=1.5)
    store.save(SPEC, CURVE.head(1), {}, {"seconds": 9}, {})
    assert store.provenance(SPEC.digest) == {"seconds": 1.5}
    assert len(store.curve(SPEC.digest)) == len(CURVE)


def test_the_table_has_all_runs_and_options(store):
    model = Component("resnet", {"width": 3.5, "bias": "none", "depth": 2})
    other = msgspec.structs.replace(SPEC, model=model, seed=7)
    save(store)
    save(store, other, diverged={"step": 5, "tensor": "loss"})
    table = pl.read_parquet(write_table(store))
    assert len(table) == 2 * len(CURVE)
    rows = {row["run"]: row for row in table.iter_rows(named=True)}
    first, second = rows[SPEC.digest], rows[other.digest]
    assert (first["task"], first["model"], first["seed"]) == ("somewhere.task:Task", "somewhere.model:Model", 4)
    assert (second["seed"], second["model.depth"], first["model.depth"]) == (7, 2, None)
    assert (first["model.width"], second["model.width"]) == (3.0, 3.5)
    assert (first["model.bias"], second["model.bias"]) == ("true", '"none"')  # of two types
    assert (json.loads(first["model.law"]), second["model.law"]) == ({"of": "x"}, None)
    assert json.loads(first["task.sizes"]) == [3, 4]
    assert (first["training.steps"], first["training.schedule"]) == (8, "cosine")
    assert (first["diverged_at"], second["diverged_at"]) == (None, 5)
    assert table.columns == [
        "run",
        "task",
        "model",
        "seed",
        *("task.noise", "task.sizes"),
        *(column for column in table.columns if column.startswith("model.")),
        *(f"training.{name}" for name in ("steps", "batch_size", "train_examples", "test_examples")),
        *(f"training.{name}" for name in ("learning_rate", "schedule", "optimiser")),
        "sources",
        "diverged_at",
        *CURVE.columns,
    ]


def test_the_table_of_many_parts_is_the_table(store, monkeypatch):
    for seed in range(5):
        save(store, msgspec.structs.replace(SPEC, model=Component("m", {"x": seed if seed % 2 else "a"}), seed=seed))
    monkeypatch.setattr("tpr_attention.runner.tables.PART", 2)
    assert pl.read_parquet(write_table(store)).equals(table_of(store, store), null_equal=True)


def test_the_table_of_no_run(store):
    assert pl.read_parquet(write_table(store)).is_empty()


def test_the_same_run_has_the_same_bytes(store, tmp_path):
    other = Store(tmp_path / "other", create=True)
    for one in (store, other):
        save(one)
        write_table(one)
    for path in store.path.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (other.path / path.relative_to(store.path)).read_bytes()


def test_runs_are_found_by_the_first_digits(store):
    for seed in range(3):
        save(store, SPEC.with_seed(seed))
    digest = SPEC.with_seed(1).digest
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
    with pytest.raises(StoreError, match=rf"{SPEC.digest}: cannot be written: No space left.* kB are needed"):
        save(store)
    assert sorted(path.name for path in store.path.iterdir()) == ["store.json", "store.json.sha256"]
    monkeypatch.undo()
    save(store)
    assert SPEC.digest in store


def test_files_follow_the_umask(store):
    before = os.umask(0o002)
    try:
        save(store)
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


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    ("label", "message"),
    [
        ('{"schema": 2}', "written with schema 2 by an earlier version; train anew into another folder"),
        ('{"schema": 99}', "written with schema 99, this version reads 3"),
        ("[3]", "cannot be read: expected a JSON object"),
    ],
)
def test_another_schema_is_refused(store, label, message, create):
    (store.path / "store.json").write_text(label)
    with pytest.raises(StoreError, match=message):
        Store(store.path, create=create)


def test_a_store_is_read_without_torch(store):
    save(store)
    code = (
        "import sys; from tpr_attention.runner import events, files, locks, provenance; "
        "from tpr_attention.runner.store import Store; from tpr_attention.runner.tables import write_table; "
        "write_table(Store(sys.argv[1])); "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(store.path)], check=True)
