"""What `tpr-attention show` tells of the heads of a run, and of runs that have none."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from tests.report.test_heads import MAIN, save
from tests.report.test_inside import weights
from tpr_attention.cli import main
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs", create=True)


def show(store, spec, *arguments):
    return main(["show", spec.digest, "--store", str(store.path), *arguments])


def solved(monkeypatch):
    """From now on, what is stored has the two heads of appendix D."""
    roles = np.stack([np.eye(5, 6)] * 2)
    stored = {
        "attention.query_map": roles,
        "attention.role_map": roles,
        "attention.id_query": np.eye(2),
        "attention.filler_map": np.stack([-np.eye(3), np.eye(3)]),
    }
    monkeypatch.setattr("tests.report.test_heads.weights", lambda **_: stored)


def test_the_algorithm_is_read_off_the_table(store, capsys, monkeypatch):
    solved(monkeypatch)
    save(store, MAIN[0])
    assert show(store, MAIN[0]) == 0
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    names = ("shape", "scale", "orientation", "position", "colour")
    expected = []
    for name in names:
        expected += [[name, "reference", name, name, "-1.00", "0.00"], ["", "transform", name, name, "+1.00", "0.00"]]
    assert rows[-10:] == expected
    assert "--figure heads.png" in said


def test_of_many_transfers_the_strongest_are_shown(store, capsys):
    save(store, MAIN[0])
    assert show(store, MAIN[0]) == 0
    said = capsys.readouterr().out
    assert "weaker" in said
    assert len(said.splitlines()) < 120


def test_heads_that_multiply_are_named(store, capsys, monkeypatch):
    monkeypatch.setattr("tests.report.test_heads.weights", lambda **_: weights(2, prefix="stack.blocks.0.heads.1."))
    save(store, MAIN[0])
    assert show(store, MAIN[0], "--figure", str(store.path.parent / "heads.svg")) == 0
    assert "stack.blocks.0.heads.1: 3 heads that multiply what they read" in capsys.readouterr().out
    assert "to filler 3" in (store.path.parent / "heads.svg").read_text()


@pytest.mark.parametrize("name", ["heads.png", "heads.SVG", "with.dots.pdf"])
def test_a_figure_is_written_in_the_form_that_its_name_asks_for(store, name, capsys):
    save(store, MAIN[0])
    path = store.path.parent / name
    assert show(store, MAIN[0], "--figure", str(path)) == 0
    assert str(path) in capsys.readouterr().out
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(begins[name[-3:].lower()])
    if name.endswith("png"):
        with Image.open(path) as image:
            assert image.width > 1000


@pytest.mark.parametrize("name", ["heads.jpg", "heads", ".png", ""])
def test_another_ending_is_refused_before_anything_is_shown(store, name, capsys):
    save(store, MAIN[0])
    assert show(store, MAIN[0], "--figure", name) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "figure: expected a file that ends in .png, .svg or .pdf" in told.err


def test_a_figure_that_cannot_be_written_is_told(store, capsys):
    save(store, MAIN[0])
    assert show(store, MAIN[0], "--figure", str(store.path / "nowhere" / "heads.png")) == 1
    assert "nowhere/heads.png: cannot be written: No such file or directory" in capsys.readouterr().err


def test_a_model_without_heads_says_so(store, capsys):
    spec = RunSpec(model="resnet", steps=10)
    save(store, spec)
    assert show(store, spec) == 0
    assert "model 'resnet' has no heads to show" in capsys.readouterr().out
    assert show(store, spec, "--figure", str(store.path.parent / "heads.png")) == 2
    assert "figure: model 'resnet' has no heads to show" in capsys.readouterr().err
    assert not (store.path.parent / "heads.png").exists()


def test_showing_needs_no_torch_and_without_a_figure_no_matplotlib(store):
    save(store, MAIN[0])
    code = (
        "import sys; from tpr_attention.cli import main; main(sys.argv[1:]);"
        "assert not {'torch', 'matplotlib'} & set(sys.modules)"
    )
    arguments = ["show", MAIN[0].digest, "--store", str(store.path)]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, timeout=120)
