"""The command `verify` tells of faults, and compares the bits of two stores."""

import os

import pytest

from tests.runner.specs import SPEC, WEIGHTS, save
from tpr_attention.cli import main
from tpr_attention.runner.store import Store


@pytest.fixture
def store(store):
    save(store, seconds=1.0)
    save(store, SPEC.with_seed(5))
    return store


def test_a_changed_file_is_told(store, capsys):
    assert main(["verify", str(store.path)]) == 0
    path = store.path / SPEC.digest / "curve.parquet"
    path.write_bytes(b"")
    store.note_failure(["abc"], "one")
    (store.path / "failures.jsonl").write_bytes((store.path / "failures.jsonl").read_bytes()[:-9])
    assert main(["verify", str(store.path)]) == 1
    out = capsys.readouterr().out
    assert f"{path}: empty" in out
    assert "1 fault" in out
    assert "1 torn lines" in out
    assert str(SPEC.with_seed(5).digest) not in out


def test_two_stores_are_compared_bit_by_bit(store, tmp_path, capsys):
    other = Store(tmp_path / "other", create=True)
    save(other, threads=1)
    assert main(["verify", str(store.path), "--against", str(other.path)]) == 0
    assert "1 runs in both: 1 with the same bits, 0 different" in capsys.readouterr().out
    changed = WEIGHTS | {"step": WEIGHTS["step"] + 1}
    for threads, code, said in ((2, 0, "1 not comparable: threads None and 2"), (None, 1, f"{SPEC.digest}: differs")):
        third = Store(tmp_path / f"third{threads}", create=True)
        save(third, weights=changed, threads=threads)
        assert main(["verify", str(store.path), "--against", str(third.path)]) == code
        assert said in capsys.readouterr().out


def test_a_read_only_store_is_refused_before_anything_is_trained(store, capsys):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    store.path.chmod(0o555)
    try:
        assert main(["run", "steps=4", "--store", str(store.path)]) == 1
    finally:
        store.path.chmod(0o755)
    assert f"error: {store.path}: cannot be written: Permission denied" in capsys.readouterr().err
