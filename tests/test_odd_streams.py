"""Output that cannot be written, names that are no text, folders that are read-only or full, and Ctrl-C in a report."""

import csv
import errno
import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from rich.table import Table as RichTable

from tpr_attention.cli import main
from tpr_attention.console import Terminal, follow, one_line, table, visible
from tpr_attention.report import write
from tpr_attention.report.document import Document, Section
from tpr_attention.report.tables import Column, Table, csv_text
from tpr_attention.report.write import write_report
from tpr_attention.runner.events import Progress, Waiting
from tpr_attention.runner.files import write_fault
from tpr_attention.runner.store import Store, StoreError

COMMAND = str(Path(sys.executable).parent / "tpr-attention")
GOLDEN = Path(__file__).parent / "golden" / "store"


def shell(line, cwd):
    """The code of a command in bash, and what it says on standard error."""
    done = subprocess.run(
        ["bash", "-c", line.replace("tpr-attention", COMMAND)], cwd=cwd, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("tpr-attention list >&-", 1, "error: standard output: it is closed\n"),
        ("tpr-attention list >/dev/full", 1, "error: standard output: No space left on device\n"),
        ("set -o pipefail; tpr-attention list | head -0", 141, ""),
        ("set -o pipefail; tpr-attention list | head -1 >/dev/null", 141, ""),
        ("tpr-attention floors x 2>&-", 2, ""),
        ("tpr-attention floors x 2>/dev/full", 2, ""),
        ("PYTHONIOENCODING=ascii tpr-attention list --store é >/dev/null", 0, ""),
        ("tpr-attention list --store $'\\xff' >/dev/null", 0, ""),
        ("tpr-attention report --store $'\\xff'", 1, "error: \\xff: no store here"),
    ],
)
def test_output_that_cannot_be_written(line, code, said, tmp_path):
    found = shell(line, tmp_path)
    assert found[0] == code, found
    assert found[1].startswith(said)
    assert len(found[1].splitlines()) <= 1


def test_control_characters_are_shown():
    assert visible("a\x1b[31m\r\x07\x9b\x7f\u202e\udcff\tb\n") == r"a\x1b[31m\x0d\x07\x9b\x7f\u202e\xff" + "\tb\n"
    stream = io.StringIO()
    console = Terminal(stream)
    console.print("plain \x1b[31m", markup=False)
    table("title \x1b]0;x\x07", ["column \r"], [["a cell as wide as the title \x1b[2J"]], console)
    other = RichTable("head \x07")
    other.add_row("cell \x08")
    console.print(other)
    for shown in (
        r"plain \x1b[31m",
        r"title \x1b]0;x\x07",
        r"column \x0d",
        r"the title \x1b[2J",
        r"head \x07",
        r"cell \x08",
    ):
        assert shown in stream.getvalue()
    assert not set(stream.getvalue()) & set("\x1b\r\x07\x08")


def test_errors_are_one_line():
    assert one_line("a\n  b\r\nc\rd") == "a b c\\x0dd"
    long = one_line("x" * 5000 + "end")
    assert len(long) <= 1000
    assert long.endswith("xend")


def test_names_that_users_give_are_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--store", "a\x1b[31mb"]) == 1
    assert capsys.readouterr().err.startswith(r"error: a\x1b[31mb: no store here")


def test_spreadsheets_run_no_cell(tmp_path):
    texts = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "fine", "a=b"]
    rows = [[text, -1.5] for text in texts]
    made = Table("cells", "", [Column("=title"), Column("loss", "number")], rows)
    read = list(csv.reader(io.StringIO(csv_text(made), newline="")))
    assert read[0] == ["'=title", "loss"]
    assert [row[0] for row in read[1:]] == [*(f"'{text}" for text in texts[:5]), "'\nx", "'\nx", "fine", "a=b"]
    assert {row[1] for row in read[1:]} == {"-1.5"}
    losses = pl.DataFrame({"model": ["=cmd()", None, "tpr"], "value": [-1.0, 2.0, 3.0]})
    write_report(Document("Report", [Section("All", [made])]), tmp_path / "report", losses=losses)
    written = pl.read_csv(tmp_path / "report" / "tables" / "losses.csv")
    assert written["model"].to_list() == ["'=cmd()", None, "tpr"]
    assert written["value"].to_list() == [-1.0, 2.0, 3.0]


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def document(title):
    return Document(title, [Section("All", [Table(title, "", [Column("model")], [[title]])])])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_a_report_is_complete_leaves_the_old_one(number, tmp_path, monkeypatch):
    folder = tmp_path / "report"
    write_report(document("old"), folder)
    (folder / "mine.txt").write_text("stays")
    before = files(folder)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(write, "page", stop)
    with pytest.raises(KeyboardInterrupt):
        write_report(document("new"), folder)
    assert files(folder) == before
    assert sorted(path.name for path in folder.iterdir()) == [
        "figures",
        "index.html",
        "mine.txt",
        "report.md",
        "tables",
    ]
    with pytest.raises(KeyboardInterrupt):
        write_report(document("new"), tmp_path / "first")
    assert not (tmp_path / "first").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_report_takes_its_place_is_put_off(number, tmp_path, monkeypatch):
    folder = tmp_path / "report"
    write_report(document("old"), folder)
    (folder / "mine.txt").write_text("stays")
    rename, moved = Path.rename, []

    def signalled(self, target):
        moved.append(target)
        if len(moved) == 3:
            os.kill(os.getpid(), number)
        return rename(self, target)

    def received(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", signalled)
    handler = signal.signal(number, received)
    try:
        with pytest.raises(KeyboardInterrupt):
            write_report(document("new"), folder)
    finally:
        signal.signal(number, handler)
    monkeypatch.undo()
    assert set(files(folder)) == {"index.html", "report.md", "mine.txt", "tables/new.csv"}
    assert b"new" in (folder / "report.md").read_bytes()


def test_a_report_that_cannot_take_its_place_leaves_the_old_one(tmp_path, monkeypatch):
    folder = tmp_path / "report"
    write_report(document("old"), folder)
    before, rename, moved = files(folder), Path.rename, []

    def failing(self, target):
        moved.append(target)
        if len(moved) == 4:
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(StoreError, match="cannot be written: Input/output error"):
        write_report(document("new"), folder)
    assert files(folder) == before


def test_what_a_full_disk_would_need():
    full, read_only = OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EROFS, "Read-only file system")
    assert write_fault(full, 7) == "No space left on device; 7 bytes are needed"
    assert write_fault(full, 1234) == "No space left on device; 1.2 kB are needed"
    assert write_fault(full, 5_000_000) == "No space left on device; 5.0 MB are needed"
    assert write_fault(read_only, 1234) == "Read-only file system"


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """A store in which nothing can be made or changed, also by root."""
    folder = tmp_path / "store"
    shutil.copytree(GOLDEN, folder)
    before = files(folder)
    opened, made = io.open, os.mkdir

    def inside(path):
        return isinstance(path, str | os.PathLike) and Path(path).is_relative_to(folder)

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    def guarded(path, mode="r", *rest, **named):
        return refuse() if inside(path) and set(mode) & set("wax+") else opened(path, mode, *rest, **named)

    monkeypatch.setattr(io, "open", guarded)
    monkeypatch.setattr("builtins.open", guarded)
    monkeypatch.setattr(
        os, "mkdir", lambda path, *mode, **where: refuse() if inside(path) else made(path, *mode, **where)
    )
    monkeypatch.setattr(Path, "touch", lambda path, **how: refuse() if inside(path) else opened(path, "w").close())
    yield folder
    monkeypatch.undo()
    assert files(folder) == before


def test_a_read_only_store_can_be_read(read_only, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tpr_attention.commands.report.os.cpu_count", lambda: 0)
    store = ["--store", str(read_only)]
    digest = next(iter(Store(read_only)))
    assert main(["list", *store]) == 0
    assert main(["show", digest, *store]) in (0, 3)
    assert main(["report", *store, "--report", str(tmp_path / "report")]) == 0
    assert main(["verify", str(read_only)]) == 0
    assert "all files are as written" in capsys.readouterr().out
    assert (tmp_path / "report" / "index.html").exists()


def test_a_read_only_store_cannot_be_trained_into(read_only, capsys):
    keys = ["model=linear", "steps=4", "train_examples=100", "test_examples=20", "batch_size=50"]
    assert main(["run", *keys, "--store", str(read_only), "--workers", "1"]) == 1
    assert capsys.readouterr().err == f"error: {read_only}: cannot be written: Read-only file system\n"


def test_only_what_was_trained_here_is_counted():
    console = Terminal(io.StringIO())
    events = [
        Waiting(0, ("a", "b"), "a is being trained by process 7"),
        Progress(0, 2, 4, 4, finished=True, trained=0),
        Progress(1, 3, 0, 4),
        Progress(1, 3, 4, 4, finished=True, trained=3),
    ]
    assert follow(events, 5, 1, console) == ([], {0: 0, 1: 3})


def test_a_command_that_only_waited_does_not_claim_to_have_trained(tmp_path, monkeypatch, capsys):
    """Another process stores the runs before this one can begin."""
    monkeypatch.chdir(tmp_path)
    keys = ["model=linear", "seed=[0,1]", "steps=4", "train_examples=100", "test_examples=20", "batch_size=50"]
    assert main(["run", *keys, "--store", "done", "--workers", "1"]) == 0
    assert "2 runs trained\n" in capsys.readouterr().out

    def other(work, store, every):
        for digest in Store("done"):
            shutil.copytree(Path("done") / digest, store.path / digest)
        for piece in work:
            yield Progress(piece.number, len(piece.specs), piece.steps, piece.steps, finished=True, trained=0)

    monkeypatch.setattr("tpr_attention.commands.training.make_executor", lambda *_: other)
    assert main(["run", *keys]) == 0
    assert "0 runs trained, 2 by other processes\n" in capsys.readouterr().out
