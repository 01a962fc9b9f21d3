"""What `tpr-attention show` tells of the heads of a run, and of runs that have none."""

import numpy as np
import pytest
from PIL import Image

from tests.report.made_up import head_weights
from tests.studies.stored import save
from tpr_attention.cli import main
from tpr_attention.runner.store import Store
from tpr_attention.training.spec import RunSpec

SPEC = RunSpec.of({"steps": 10})
ROLES = np.stack([np.eye(5, 6)] * 2)
SOLUTION = {
    "attention.query_map": ROLES,
    "attention.role_map": ROLES,
    "attention.id_query": np.eye(2),
    "attention.filler_map": np.stack([-np.eye(3), np.eye(3)]),
}
"""The two heads of appendix D."""


@pytest.fixture
def stored(tmp_path):
    """Show the one run of a store, which has these weights."""

    def show(weights, *arguments, spec=SPEC):
        store = Store(tmp_path / "runs", create=True)
        save(store, [spec], weights=lambda _: weights)
        return main(["show", spec.digest, "--store", str(store.path), *arguments])

    return show


def test_the_algorithm_is_read_off_the_table(stored, capsys):
    assert stored(SOLUTION) == 0
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    names = ("shape", "scale", "orientation", "position", "colour")
    expected = []
    for name in names:
        expected += [[name, "reference", name, name, "-1.00", "0.00"], ["", "transform", name, name, "+1.00", "0.00"]]
    assert rows[-10:] == expected
    assert "--figure heads.png" in said


def test_keys_metrics_and_provenance(stored, capsys):
    """Every key with its full name, the defaults where they differ, and the last value of every metric."""
    spec = RunSpec.of({"model": "resnet", "steps": 10, "interaction": "shape_col", "device": "cpu"})
    assert stored({"w": np.zeros(1)}, spec=spec) == 0
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert ["training.steps", "10", "10000"] in rows
    assert ["task.interaction", "shape_col", "None"] in rows
    assert ["task.split", "square_red", ""] in rows
    assert not [row for row in rows if row[0] == "training.device"]
    (whole,) = (row for row in rows if row[:2] == ["ood_transform", "all"])
    assert whole[2:5] == ["2.0e-04", "1.0e-04", "2.0e-04"]  # the loss, and the errors of two roles
    assert ["ood_transform", "action=shape", "3.0e-04", "1.5e-04"] in [row[:4] for row in rows]
    assert ["commit", "abc"] in rows


def test_of_many_transfers_the_strongest_are_shown(stored, capsys):
    assert stored(head_weights()) == 0
    said = capsys.readouterr().out
    assert "weaker" in said
    assert len(said.splitlines()) < 120


def test_heads_that_multiply_are_named(stored, tmp_path, capsys):
    weights = head_weights(2, prefix="stack.blocks.0.heads.1.")
    assert stored(weights, "--figure", str(tmp_path / "heads.svg")) == 0
    assert "stack.blocks.0.heads.1: 3 heads that multiply what they read" in capsys.readouterr().out
    assert "to filler 3" in (tmp_path / "heads.svg").read_text()


@pytest.mark.parametrize("name", ["heads.png", "heads.SVG", "with.dots.pdf"])
def test_a_figure_is_written_in_the_form_that_its_name_asks_for(stored, tmp_path, name, capsys):
    path = tmp_path / name
    assert stored(SOLUTION, "--figure", str(path)) == 0
    assert str(path) in capsys.readouterr().out
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(begins[name[-3:].lower()])
    if name.endswith("png"):
        with Image.open(path) as image:
            assert image.width > 1000


@pytest.mark.parametrize("name", ["heads.jpg", "heads", ".png", ""])
def test_another_ending_is_refused_before_anything_is_shown(stored, name, capsys):
    assert stored(SOLUTION, "--figure", name) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "figure: expected a file that ends in .png, .svg or .pdf" in told.err


def test_a_figure_that_cannot_be_written_is_told(stored, tmp_path, capsys):
    assert stored(SOLUTION, "--figure", str(tmp_path / "nowhere" / "heads.png")) == 1
    assert "nowhere/heads.png: cannot be written: No such file or directory" in capsys.readouterr().err


def test_a_model_without_heads_says_so(stored, tmp_path, capsys):
    spec, weights = RunSpec.of({"model": "resnet", "steps": 10}), {"update.weight": np.eye(3)}
    assert stored(weights, spec=spec) == 0
    assert "model 'resnet' has no heads to show" in capsys.readouterr().out
    assert stored(weights, "--figure", str(tmp_path / "heads.png"), spec=spec) == 2
    assert "figure: model 'resnet' has no heads to show" in capsys.readouterr().err
    assert not (tmp_path / "heads.png").exists()


def test_no_such_run(stored, tmp_path, capsys):
    assert stored(SOLUTION) == 0
    assert main(["show", "fff", "--store", str(tmp_path / "runs")]) == 1
    assert "expected one run that begins with 'fff', found no run" in capsys.readouterr().err
