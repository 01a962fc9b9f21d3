"""Clock, time zone, language, home, git and network change nothing in a result."""

import itertools
import os
import socket
import subprocess
import sys
import time

from tests.runner.specs import SPECS
from tpr_attention.runner.executors.local import in_this_process
from tpr_attention.runner.run import run
from tpr_attention.runner.store import Store

KEYS = ["steps=4", "train_examples=100", "test_examples=20", "batch_size=50", "model=[tpr,resnet]"]


def test_a_clock_that_goes_back_and_no_network(store, trained, monkeypatch):
    def refuse(*_):
        raise OSError("no network")

    backwards = itertools.count(time.time(), -3600)
    monkeypatch.setattr(time, "time", lambda: next(backwards))
    for name in ("connect", "connect_ex", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    list(run(SPECS, store, in_this_process))
    alone, _ = trained
    assert results(store) == results(alone)


def test_another_language_and_zone_and_neither_home_nor_git(tmp_path):
    stores = []
    for name, changes in {
        "usual": {},
        "other": {"TZ": "Pacific/Kiritimati", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "PATH": str(tmp_path)},
        "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PATH": str(tmp_path)},
    }.items():
        kept = {key: value for key, value in os.environ.items() if key != "HOME" or not changes}
        command = [sys.executable, "-m", "tpr_attention", "run", *KEYS, "--workers", "1", "--store", name]
        subprocess.run(command, cwd=tmp_path, env=kept | changes, capture_output=True, check=True)
        stores.append(Store(tmp_path / name))
    usual, *others = stores
    for other in others:
        assert results(other) == results(usual)
        assert {other.provenance(run)["commit"] for run in other} == {"unknown"}


def results(store):
    """The bytes of all that a training computes."""
    return {
        (run, name): (store.path / run / name).read_bytes()
        for run in store
        for name in ("spec.json", "names.json", "curve.parquet", "weights.safetensors")
    }
