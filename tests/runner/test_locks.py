"""A lock has one holder, which is named; that of a dead process is free."""

import os
import re
import socket
import subprocess
import sys

import pytest

from tpr_attention.runner.locks import HeldError, locked

HOLD = """
import pathlib, sys, time
from tpr_attention.runner.locks import locked
with locked(pathlib.Path(sys.argv[1]), sys.argv[2:]):
    print("held", flush=True)
    time.sleep(60)
"""
COUNT = """
import pathlib, sys
from tpr_attention.runner.locks import HeldError, locked
folder, done = pathlib.Path(sys.argv[1]), 0
counter = folder.with_name("counter")
while done < 200:
    try:
        with locked(folder, ["a", "b"]):
            counter.write_text(str(int(counter.read_text()) + 1))
            done += 1
    except HeldError:
        pass
"""


def test_a_lock_has_one_holder_who_is_named(tmp_path):
    folder = tmp_path / "locks"
    message = re.escape(f"b is being trained by process {os.getpid()} on {socket.gethostname()}")
    with locked(folder, ["b"]):
        with pytest.raises(HeldError, match=message), locked(folder, ["a", "b"]):
            pytest.fail("taken twice")
        with locked(folder, ["a", "c"]):  # those before it were given back
            pass
    assert not list(folder.iterdir())


def test_a_holder_that_is_not_named_yet(tmp_path):
    with locked(tmp_path, ["a"]):
        (tmp_path / "a").write_text("")
        with pytest.raises(HeldError, match="a is being trained by another process"), locked(tmp_path, ["a"]):
            pass


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path), "a", "b"], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(HeldError, match=f"process {holder.pid} on"), locked(tmp_path, ["b"]):
            pass
        holder.kill()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    with locked(tmp_path, ["a", "b"]):
        assert f'"pid": {os.getpid()},' in (tmp_path / "a").read_text()
    assert not list(tmp_path.iterdir())


def test_processes_exclude_each_other(tmp_path):
    """Also while locks are deleted by one and opened by others."""
    (tmp_path / "counter").write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path / "locks")]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert (tmp_path / "counter").read_text() == "600"
    assert not list((tmp_path / "locks").iterdir())
