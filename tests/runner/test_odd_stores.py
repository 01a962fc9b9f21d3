"""Stores that were edited, copied or made by someone else: each fault is named, and other runs are read."""

import json
import shutil

import polars as pl
import pytest

from tests.runner.specs import SPEC, save, tiny
from tpr_attention.cli import main
from tpr_attention.runner.checkpoints import Checkpoints
from tpr_attention.runner.files import sums
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.runner.tables import write_table

OTHER = SPEC.with_seed(5)
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.fixture
def store(store):
    save(store)
    save(store, OTHER)
    return store


def rewrite(store, name, data):
    """Change a file of a run, and renew the checksums."""
    folder = store.path / SPEC.digest
    (folder / name).write_bytes(data)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "SHA256SUMS"}
    (folder / "SHA256SUMS").write_bytes(sums(files))


def parquet(table, path):
    table.write_parquet(path)
    return path.read_bytes()


def verified(store, capsys):
    """What `verify` says; the exit code is that of a fault."""
    assert main(["verify", str(store.path)]) == 1
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "data", "fault"),
    [
        ("spec.json", DEEP, "spec.json: cannot be read"),
        ("spec.json", b'{"task": ' + DEEP + b"}", "spec.json: cannot be read"),
        ("spec.json", SPEC.with_seed(9).to_json().encode(), f"its spec.json is that of run {SPEC.with_seed(9).digest}"),
        ("names.json", DEEP, "names.json: cannot be read"),
        ("names.json", b'{"conditions": ["test"], "metrics": []}', "names.json: cannot be read"),
        ("names.json", b'{"conditions": "test"}', "names.json: cannot be read"),
        ("provenance.json", DEEP, "provenance.json: cannot be read"),
        ("provenance.json", b"[]", "provenance.json: cannot be read"),
        ("provenance.json", b'{"diverged": {"step": "x"}}', "provenance.json: expected a step and a tensor"),
        ("curve.parquet", b"PAR1 no more", "curve.parquet: cannot be read"),
        ("curve.parquet", pl.DataFrame({"loss": [1.0]}), "curve.parquet: cannot be read: expected the columns step"),
        (
            "names.json",
            b'{"conditions": ["test", "other"], "metrics": ["loss"]}',
            "curve.parquet: has no 'loss' under 'other'",
        ),
        ("curve.parquet", None, "curve.parquet: has no 'loss' under 'test'"),
    ],
)
def test_a_file_of_another_form_is_named_and_other_runs_are_read(store, tmp_path, capsys, name, data, fault):
    """Its checksum is right, as if a program had written it."""
    if data is None:
        data = store.curve(SPEC.digest).clear()
    if isinstance(data, pl.DataFrame):
        data = parquet(data, tmp_path / "some.parquet")
    rewrite(store, name, data)
    runs, left_out = store.readable()
    assert list(runs) == [OTHER.digest]
    assert len(left_out) == 1
    assert SPEC.digest in left_out[0]
    assert fault in left_out[0]
    said = verified(store, capsys)
    assert fault.partition(": ")[0] in said
    assert SPEC.digest in said
    assert main(["show", SPEC.digest, "--store", str(store.path)]) == 1
    assert fault in capsys.readouterr().err
    table = pl.read_parquet(write_table(store))
    assert set(table["run"]) == {OTHER.digest}


def test_the_report_shows_all_other_runs_and_says_what_it_left_out(store, tmp_path, capsys):
    rewrite(store, "spec.json", DEEP)
    assert main(["report", "--store", str(store.path), "--report", str(tmp_path / "report")]) == 0
    assert capsys.readouterr().err.startswith(f"left out: {store.path / SPEC.digest / 'spec.json'}: cannot be read")
    page = (tmp_path / "report" / "report.md").read_text()
    assert SPEC.digest in page.partition("Left out")[2]
    assert OTHER.digest in page.partition("Left out")[0]


def test_a_copied_folder_is_found_by_every_command(tmp_path, capsys):
    """As after `cp -r` of a run, or a rename: its name is not the digest of its spec."""
    spec = tiny(seed=1)
    store = Store(tmp_path / "store", create=True)
    save(store, spec)
    copy = "0123456789ab"
    shutil.copytree(store.path / spec.digest, store.path / copy)
    fault = f"{store.path / copy}: its spec.json is that of run {spec.digest}"
    assert fault in verified(store, capsys)
    assert main(["show", copy, "--store", str(store.path)]) == 1
    assert fault in capsys.readouterr().err
    (store.path / spec.digest).rename(store.path / tiny(seed=2).digest)
    keys = ["steps=4", "train_examples=100", "test_examples=20", "batch_size=50"]
    assert main(["run", *keys, "seed=2", "--store", str(store.path)]) == 1
    assert f"{store.path / tiny(seed=2).digest}: its spec.json is that of run {spec.digest}" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["../..", "../../../../etc/passwd", "", "a/b", "."])
def test_checksums_of_files_elsewhere_are_not_followed(store, capsys, line):
    path = store.path / SPEC.digest / "SHA256SUMS"
    path.write_text(path.read_text() + f"{'0' * 64}  {line}\n")
    said = verified(store, capsys)
    fault = f"{path}: names {line!r}, which is no file of its folder"
    assert (fault if line else f"{path.parent / ('0' * 64)}: missing") in said
    assert "1 fault" in said


def test_symbolic_links_are_not_followed_out_of_a_store(store, tmp_path, capsys):
    outside = tmp_path / "outside"
    shutil.copytree(store.path / SPEC.digest, outside)
    path = store.path / SPEC.digest / "curve.parquet"
    path.unlink()
    path.symlink_to(outside / "curve.parquet")
    with pytest.raises(StoreError, match=r"curve\.parquet: cannot be read: a symbolic link, which is not followed"):
        store.curve(SPEC.digest)
    assert f"{path}: a symbolic link" in verified(store, capsys)
    shutil.rmtree(path.parent)
    path.parent.symlink_to(outside)
    assert list(store) == [OTHER.digest]
    assert SPEC.digest not in store
    fault = f"{path.parent}: a symbolic link, which is not followed"
    assert store.readable() == ({OTHER.digest: OTHER}, [fault])
    assert fault in verified(store, capsys)


@pytest.mark.parametrize("data", [DEEP, b"\xff\xfe", b"{", b"[]", b'{"schema": "three"}'])
def test_the_label_of_a_store_is_read_with_care(store, capsys, data):
    (store.path / "store.json").write_bytes(data)
    for command in (["verify", str(store.path)], ["report", "--store", str(store.path)]):
        assert main(command) == 1
        assert f"error: {store.path / 'store.json'}: " in capsys.readouterr().err


def test_lines_of_failures_that_cannot_be_read_are_counted(store, capsys):
    store.note_failure(["abc"], "one")
    with (store.path / "failures.jsonl").open("ab") as file:
        file.write(DEEP + b"\n" + b"\xff\n" + b"7\n")
    assert len(store.failures()[0]) == 1
    assert store.failures()[1] == 3
    assert main(["verify", str(store.path)]) == 0
    assert "3 torn lines" in capsys.readouterr().out


def test_a_checkpoint_that_is_a_link_is_refused(store, tmp_path):
    folder = store.path / ".checkpoints"
    folder.mkdir()
    (tmp_path / "elsewhere").write_bytes(json.dumps({}).encode())
    link = folder / f"{SPEC.digest}-4-{'0' * 64}.safetensors"
    link.symlink_to(tmp_path / "elsewhere")
    ((path, fault),) = Checkpoints(store).faults()
    assert path == link
    assert fault.startswith("a symbolic link")
