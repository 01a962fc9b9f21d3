"""What is stored is what was written, or it is not read: every byte of every file."""

import os
import pickle
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from tpr_attention.cli import main
from tpr_attention.experiments.checkpoints import Checkpoint, Checkpoints
from tpr_attention.experiments.curves import curve
from tpr_attention.experiments.files import SUMS, sums
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store, StoreError

SPEC = RunSpec(model="linear", seed=3)
CURVE = curve([Point("", 0, "train", (1.0, 2.0)), Point("", 8, "train", (0.5, 0.25))], {"shape": 0.5, "colour": 0.5})
WEIGHTS = {"a": np.arange(6.0).reshape(2, 3)}
READ = {
    "spec.json": Store.spec,
    "curve.parquet": Store.curve,
    "weights.safetensors": Store.weights,
    "provenance.json": Store.provenance,
}


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "store", create=True)
    made.save(SPEC, CURVE, WEIGHTS, {"seconds": 1.0})
    made.save(replace(SPEC, seed=4), CURVE, WEIGHTS, {})
    made.write_table()
    return made


def written(store):
    return sorted(path for path in store.path.rglob("*") if path.is_file())


def test_a_sound_store_has_no_faults(store):
    assert list(store.faults()) == []
    assert main(["verify", str(store.path)]) == 0
    for sums_file in store.path.rglob("*SUMS"):  # and the usual tool agrees
        subprocess.run(["sha256sum", "--check", "--strict", sums_file.name], cwd=sums_file.parent, check=True)
    for sums_file in store.path.glob("*.sha256"):
        subprocess.run(["sha256sum", "--check", "--strict", sums_file.name], cwd=sums_file.parent, check=True)


def test_a_flipped_byte_anywhere_is_found(store):
    draw = random.Random(0)
    for path in written(store):
        data = path.read_bytes()
        for place in {0, len(data) - 1, *(draw.randrange(len(data)) for _ in range(6))}:
            bit = 1 << draw.randrange(7)
            path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
            assert list(store.faults()), (path, place)
        path.write_bytes(data)
    assert list(store.faults()) == []


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("harm", ["flipped", "torn", "longer", "empty", "gone"])
def test_what_was_changed_is_named_and_never_read(store, name, harm, capsys):
    path = store.path / SPEC.digest / name
    data = path.read_bytes()
    changed = {
        "flipped": data[:-3] + bytes([data[-3] ^ 4]) + data[-2:],
        "torn": data[: len(data) // 2],
        "longer": data + b"\n",
        "empty": b"",
        "gone": None,
    }[harm]
    path.unlink() if changed is None else path.write_bytes(changed)
    with pytest.raises(StoreError, match=f"{SPEC.digest}/{name}: cannot be read"):
        READ[name](store, SPEC.digest)
    assert main(["verify", str(store.path)]) == 1
    out = capsys.readouterr().out
    assert f"{path}: {'missing' if changed is None else 'empty' if harm == 'empty' else 'changed, or torn'}" in out
    assert "1 faults" in out
    assert str(replace(SPEC, seed=4).digest) not in out


def test_files_that_no_checksum_vouches_for(store):
    folder = store.path / SPEC.digest
    (folder / "notes.txt").write_text("mine")
    (folder / SUMS).write_bytes(b"".join((folder / SUMS).read_bytes().splitlines(keepends=True)[1:]))
    found = {path.name: fault for path, fault in store.faults()}
    assert found == {"notes.txt": "does not belong here", "curve.parquet": "not among the checksums"}
    (folder / SUMS).unlink()
    assert (folder / SUMS, "cannot be read: No such file or directory") in list(store.faults())


class Hostile:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


def test_a_pickle_is_refused_and_not_run(store, tmp_path):
    """Even with a checksum that vouches for it."""
    folder = store.path / SPEC.digest
    files = {name: (folder / name).read_bytes() for name in READ}
    for name, read in READ.items():
        forged = {**files, name: pickle.dumps(Hostile(tmp_path / "trace"))}
        for one, data in {**forged, SUMS: sums(forged)}.items():
            (folder / one).write_bytes(data)
        with pytest.raises(StoreError, match=f"{name}: cannot be read"):
            read(store, SPEC.digest)
    assert not (tmp_path / "trace").exists()
    checkpoints = Checkpoints(store)
    checkpoints.folder.mkdir()
    (checkpoints.folder / f"{SPEC.digest}-4-00.safetensors").write_bytes(pickle.dumps(Hostile(tmp_path / "trace")))
    with pytest.raises(StoreError, match="changed since it was written"):
        checkpoints.find({SPEC.digest})
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"\xff" * 8 + b"{}", save({})[:-1], save(WEIGHTS)[:-1], save(WEIGHTS) + b"0"]
)
def test_weights_that_are_none(store, data):
    folder = store.path / SPEC.digest
    files = {name: (folder / name).read_bytes() for name in READ} | {"weights.safetensors": data}
    for name, content in {**files, SUMS: sums(files)}.items():
        (folder / name).write_bytes(content)
    with pytest.raises(StoreError, match=r"weights\.safetensors: cannot be read"):
        store.weights(SPEC.digest)


def test_two_stores_are_compared_bit_by_bit(store, tmp_path, capsys):
    other = Store(tmp_path / "other", create=True)
    other.save(SPEC, CURVE, WEIGHTS, {"threads": 1})
    assert main(["verify", str(store.path), "--against", str(other.path)]) == 0
    assert "1 runs in both: 1 with the same bits, 0 different" in capsys.readouterr().out
    changed = {"a": WEIGHTS["a"] + 1e-7}
    for threads, code, said in ((2, 0, "1 not comparable: threads None and 2"), (None, 1, f"{SPEC.digest}: differs")):
        third = Store(tmp_path / f"third{threads}", create=True)
        third.save(SPEC, CURVE, changed, {"threads": threads})
        assert main(["verify", str(store.path), "--against", str(third.path)]) == code
        assert said in capsys.readouterr().out


def test_torn_lines_are_dropped_and_counted(store, capsys):
    for reason in ("one", "two"):
        store.note_failure(["abc"], reason)
    path = store.path / "failures.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    noted, torn = store.failures()
    assert ([one["why"] for one in noted], torn) == (["one"], 1)
    store.note_failure(["abc"], "three")  # on a line of its own
    noted, torn = store.failures()
    assert ([one["why"] for one in noted], torn) == (["one", "three"], 1)
    assert main(["verify", str(store.path)]) == 0
    assert "1 torn lines" in capsys.readouterr().out


def test_a_store_that_was_being_made(tmp_path):
    """Killed between its first file and its second."""
    (tmp_path / "store.json.sha256").write_bytes(sums({"store.json": b'{"schema": 2}'}))
    (tmp_path / ".store.json.123").write_bytes(b'{"sch')
    store = Store(tmp_path, create=True)
    assert list(store.faults()) == []


def test_a_read_only_store_is_refused_before_anything_is_trained(store, capsys):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    store.path.chmod(0o555)
    try:
        assert main(["run", "steps=4", "--store", str(store.path)]) == 1
    finally:
        store.path.chmod(0o755)
    assert f"error: {store.path}: cannot be a store: Permission denied" in capsys.readouterr().err


def test_checkpoints_know_their_group_and_their_bytes(store):
    import torch

    checkpoints = Checkpoints(store)
    state = {"weights": torch.arange(6.0), "draws": torch.arange(3, dtype=torch.uint8)}
    points = (Point("a", 0, "train", (0.1, float("inf")), None), Point("b", 4, "train", (1e-300, 0.2), "shape"))
    checkpoints.write(Checkpoint(("a", "b"), 4, state, points, 1.5))
    checkpoints.write(Checkpoint(("a", "b"), 8, state, points, 2.5))
    (path,) = checkpoints.folder.iterdir()
    unfinished = [checkpoints.folder / f".{run}-9-00.safetensors.123" for run in ("a", "other")]
    for one in (*unfinished, checkpoints.folder / "other-9-00.safetensors"):
        one.write_bytes(b"torn")
    assert checkpoints.find({"a"}) is None
    found = checkpoints.find({"a", "b"})
    assert (found.runs, found.step, found.points, found.seconds) == (("a", "b"), 8, points, 2.5)
    assert [one.exists() for one in unfinished] == [False, True]  # the other may be being written
    assert all(torch.equal(found.state[name], tensor) for name, tensor in state.items())
    data = path.read_bytes()
    for place in (0, 20, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(StoreError, match=f"{path}: changed since it was written.*delete it"):
            checkpoints.find({"a", "b"})
        assert main(["verify", str(store.path)]) == 1
    path.write_bytes(data)
    checkpoints.drop(("a", "b"))
    assert not list(checkpoints.folder.glob("a*"))
