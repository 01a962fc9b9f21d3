"""A stored file is what was written, or it is not read: every byte of every file."""

import pickle
import random
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.numpy import save as to_safetensors

from tests.runner.specs import SPEC, WEIGHTS, save
from tpr_attention.runner.checkpoints import Checkpoint, Checkpoints
from tpr_attention.runner.files import SUMS, sums
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.runner.tables import write_table
from tpr_attention.training.points import Point

READ = {
    "spec.json": Store.spec,
    "names.json": Store.names,
    "curve.parquet": Store.curve,
    "weights.safetensors": Store.weights,
    "provenance.json": Store.provenance,
}


@pytest.fixture
def store(store):
    save(store, seconds=1.0)
    save(store, SPEC.with_seed(5))
    write_table(store)
    return store


def forge(store, **changes):
    """Other contents of a run's files, with checksums that agree."""
    folder = store.path / SPEC.digest
    files = {name: (folder / name).read_bytes() for name in READ} | changes
    for name, data in {**files, SUMS: sums(files)}.items():
        (folder / name).write_bytes(data)


def test_a_sound_store_has_no_faults(store):
    assert list(store.faults()) == []
    for listed in [*store.path.rglob("*SUMS"), *store.path.glob("*.sha256")]:  # the usual tool agrees
        subprocess.run(["sha256sum", "--check", "--strict", listed.name], cwd=listed.parent, check=True)


def test_a_flipped_byte_anywhere_is_found(store):
    draw = random.Random(0)
    for path in sorted(path for path in store.path.rglob("*") if path.is_file()):
        data = path.read_bytes()
        few = {0, len(data) - 1, *(draw.randrange(len(data)) for _ in range(6))}
        for place in few if path.suffix != ".sha256" else range(len(data)):
            bit = 1 << draw.randrange(8)
            path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
            assert list(store.faults()), (path, place)
        path.write_bytes(data)
    assert list(store.faults()) == []


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("harm", ["flipped", "truncated", "longer", "empty", "missing"])
def test_what_was_changed_is_named_and_never_read(store, name, harm):
    path = store.path / SPEC.digest / name
    data = path.read_bytes()
    changed = {
        "flipped": data[:-3] + bytes([data[-3] ^ 4]) + data[-2:],
        "truncated": data[: len(data) // 2],
        "longer": data + b"\n",
        "empty": b"",
    }
    path.write_bytes(changed[harm]) if harm in changed else path.unlink()
    with pytest.raises(StoreError, match=f"{SPEC.digest}/{name}: cannot be read"):
        READ[name](store, SPEC.digest)
    assert list(store.faults()) == [(path, harm if harm in ("missing", "empty") else "changed or truncated")]


def test_files_that_no_checksum_vouches_for(store):
    folder = store.path / SPEC.digest
    (folder / "notes.txt").write_text("mine")
    lines = (folder / SUMS).read_bytes().splitlines(keepends=True)
    (folder / SUMS).write_bytes(b"".join(line for line in lines if b"curve" not in line))
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
    hostile = pickle.dumps(Hostile(tmp_path / "trace"))
    files = {name: (store.path / SPEC.digest / name).read_bytes() for name in READ}
    for name, read in READ.items():
        forge(store, **files | {name: hostile})
        with pytest.raises(StoreError, match=f"{name}: cannot be read"):
            read(store, SPEC.digest)
    checkpoints = Checkpoints(store)
    checkpoints.folder.mkdir()
    (checkpoints.folder / f"{SPEC.digest}-4-00.safetensors").write_bytes(hostile)
    with pytest.raises(StoreError, match="changed since it was written"):
        checkpoints.find({SPEC.digest})
    assert not (tmp_path / "trace").exists()


WHOLE = to_safetensors(WEIGHTS)


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff" * 8 + b"{}", to_safetensors({})[:-1], WHOLE[:-1], WHOLE + b"0"])
def test_weights_that_are_none(store, data):
    forge(store, **{"weights.safetensors": data})
    with pytest.raises(StoreError, match=r"weights\.safetensors: cannot be read"):
        store.weights(SPEC.digest)


def test_torn_lines_are_dropped_and_counted(store):
    for reason in ("one", "two"):
        store.note_failure(["abc"], reason)
    path = store.path / "failures.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    noted, torn = store.failures()
    assert ([one["why"] for one in noted], torn) == (["one"], 1)
    store.note_failure(["abc"], "three")  # on a line of its own
    noted, torn = store.failures()
    assert ([one["why"] for one in noted], torn) == (["one", "three"], 1)


def test_a_store_that_was_being_made(tmp_path):
    """Killed between its first file and its second."""
    (tmp_path / "store.json.sha256").write_bytes(sums({"store.json": b'{"schema": 3}'}))
    (tmp_path / ".store.json.123").write_bytes(b'{"sch')
    store = Store(tmp_path, create=True)
    assert list(store.faults()) == []


def test_checkpoints_know_their_group_and_their_bytes(store):
    checkpoints = Checkpoints(store)
    state = {"weights": torch.arange(6.0), "draws": torch.arange(3, dtype=torch.uint8)}
    points = (
        Point("a", 0, "test", None, (0.1, float("inf"))),
        Point("b", 4, "train", "kind=a", (1e-300,)),
    )
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
        assert path in dict(checkpoints.faults())
    path.write_bytes(data)
    checkpoints.delete(("a", "b"))
    assert not list(checkpoints.folder.glob("a*"))


def test_a_checkpoint_of_another_schema_is_refused(store, monkeypatch):
    checkpoints = Checkpoints(store)
    with monkeypatch.context() as patched:
        patched.setattr("tpr_attention.runner.checkpoints.SCHEMA", 1)
        checkpoints.write(Checkpoint(("a",), 4, {"weights": torch.zeros(1)}, ()))
    with pytest.raises(StoreError, match="written with schema 1, this version reads 2; delete it"):
        checkpoints.find({"a"})
