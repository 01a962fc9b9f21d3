"""The commands that train and report, as a user types them."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

from tpr_attention.cli import main

TINY = ["steps=4", "train_examples=100", "test_examples=20", "batch_size=50"]
MINE = """
import torch

class Net(torch.nn.Module):
    def __init__(self, num_roles: int, filler_dim: int, scale: float = 1.0, noise: float = 0.0):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.full((num_roles, filler_dim), scale))

    def forward(self, reference, transform, action):
        return reference + self.bias

def hearts(factors):
    return factors.has("shape", "heart") & factors.has("colour", "blue")

def mean(first, second):
    return (first + second) / 2
"""


def run(*arguments, cwd=None):
    """In a process of its own, as installed."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "tpr-attention"), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


def specs(folder):
    return [json.loads(path.read_text()) for path in Path(folder).glob("runs/*/spec.json")]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder with a store and the report of a tiny reproduction, and what was said."""
    folder = tmp_path_factory.mktemp("filled")
    code, out, err = run("reproduce", "--seeds", 2, "--steps", 3, "--studies", "main-interacting", cwd=folder)
    assert code == 0, err
    return folder, out


def test_reproduce_trains_stores_and_reports(filled):
    folder, out = filled
    assert "20 runs, 0 of them stored in runs" in out
    assert "report: report/index.html" in out
    assert "\x1b" not in out  # not a terminal: no colours, no bar
    assert len(out.splitlines()) < 8
    names = {str(path.relative_to(folder / "report")) for path in (folder / "report").rglob("*") if path.is_file()}
    assert {"index.html", "report.md", "figures/main-interacting.png", "tables/cells.csv", "tables/cells.tex"} <= names
    assert {"figures/main-interacting.svg", "figures/main-interacting.pdf", "tables/losses.parquet"} <= names
    assert len(set(pl.read_parquet(folder / "runs" / "runs.parquet")["run"])) == 20


def test_what_is_stored_is_not_trained_again(filled, monkeypatch, capsys):
    """The report is written all the same; here it would only take time."""
    monkeypatch.chdir(filled[0])
    monkeypatch.setattr("tpr_attention.commands.report.write_report", lambda document, folder, **_: folder)
    assert main(["reproduce", "--seeds", "2", "--steps", "3", "--studies", "main-interacting"]) == 0
    out = capsys.readouterr().out
    assert out == "20 runs, 20 of them stored in runs\nreport: report\n"


def test_report_finds_out_how_the_store_was_filled_and_needs_no_torch(filled):
    folder, _ = filled
    code = (
        "import sys; from tpr_attention.cli import main; main(['report', '--report', 'again']);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, timeout=120)
    assert (folder / "again" / "report.md").read_bytes() == (folder / "report" / "report.md").read_bytes()


def test_show_tells_of_one_run(filled, capsys):
    folder, _ = filled
    digest = next(path.name for path in (folder / "runs").iterdir() if path.is_dir() and path.name[0] != ".")
    assert main(["show", digest[:8], "--store", str(folder / "runs")]) == 0
    said = capsys.readouterr().out
    assert digest in said
    assert "ood_composition" in said
    assert "square_red" in said
    assert "version_torch" in said


def test_list_names_everything(filled, capsys):
    folder, _ = filled
    assert main(["list", "--store", str(folder / "runs")]) == 0
    said = capsys.readouterr().out
    names = ("main-noninteracting", "readings", "random-start", "classical-roles", "square_pos", "shape_col")
    names += ("held out", "largest_scale_position", "smallest_orientation_position")
    for name in (*names, "random-composition", "beyond", "batch_size", "num_heads=4"):
        assert name in said
    assert "2 seeds and 3 steps" in said


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A folder with a user's module, the store of a sweep over it, and what was said."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine.py").write_text(MINE)
    sweep = {"training": {"steps": 4, "train_examples": 100, "batch_size": 50}, "test_examples": 20, "seed": [0, 1]}
    sweep["runs"] = [{"model": "resnet"}, {"model": {"name": "mine:Net", "scale": [0.5, 2.0]}}]
    (folder / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    return folder, *run("run", "--sweep", "sweep.yaml", "training.test_examples=30", "--workers", "1", cwd=folder)


def test_run_takes_keys_lists_and_files(own):
    """Prefixes may be dropped or not; what is typed overrules the file."""
    folder, code, out, err = own
    assert code == 0, err
    assert "6 of 6 runs in runs" in out
    found = specs(folder)
    assert sorted((one["model"]["name"], one["seed"], one["model"]["options"].get("scale", 0)) for one in found) == [
        ("mine:Net", 0, 0.5),
        ("mine:Net", 0, 2.0),
        ("mine:Net", 1, 0.5),
        ("mine:Net", 1, 2.0),
        ("resnet", 0, 0),
        ("resnet", 1, 0),
    ]
    assert {(one["training"]["test_examples"], one["training"]["steps"]) for one in found} == {(30, 4)}


def test_runs_of_users_have_a_report(own):
    folder, *_ = own
    assert run("report", cwd=folder)[0] == 0
    assert "mine:Net, noise=0.0, scale=2.0, steps=4" in (folder / "report" / "report.md").read_text()
    assert (folder / "report" / "figures" / "user-runs.png").exists()


def test_a_split_and_a_law_by_path(own):
    folder, *_ = own
    law = ["interaction.law=mine:mean", "interaction.factors=[scale, position]"]
    keys = ["model=linear", "split=mine:hearts", *law, *TINY, "--store", "others", "--workers", "1"]
    code, _, err = run("run", *keys, cwd=folder)
    assert code == 0, err
    (spec,) = (json.loads(path.read_text()) for path in folder.glob("others/*/spec.json"))
    assert spec["task"]["options"]["split"] == "mine:hearts"
    assert spec["task"]["options"]["interaction"] == {"law": "mine:mean", "factors": ["scale", "position"]}


def test_a_key_that_could_be_several_is_told_with_full_names(own, monkeypatch, capsys):
    monkeypatch.chdir(own[0])
    assert main(["run", "model=mine:Net", "noise=0.5", "--dry-run"]) == 2
    assert "noise: could be task.noise or model.noise; write its full name" in capsys.readouterr().err
    assert main(["run", "model=mine:Net", "model.noise=0.5", "task.noise=0.1", "--dry-run"]) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["modle=tpr"], "modle: no such key for task 'composition' and model 'tpr'; did you mean 'model'?"),
        (["num_haeds=2"], "did you mean 'model.num_heads'?"),
        (["training.stesp=2"], "training.stesp: no such key; did you mean 'training.steps'?"),
        (["seed=-1"], "seed: expected a whole number of at least 0, got -1"),
        (["steps=5"], "steps: given twice; a list such as steps=[1,2] means each of its values"),
        (["num_heads=many"], "model.num_heads: expected a whole number, got 'many'"),
        (["num_heads=0"], "model.num_heads: expected at least 1, got 0"),
        (["split=square_rd"], "did you mean 'square_red'?"),
        (["model=nowhere:Net"], "model: 'nowhere:Net': cannot import 'nowhere'"),
        (["seed"], "seed: expected key=value"),
        (["seed=[0"], "seed=[0: not a value"),
        (["seed=[]"], "seed: expected at least one value"),
        (["--sweep", "missing.yaml"], "missing.yaml: cannot be read"),
        (["--executor", "nothing"], "executor: expected one of ['local', 'ray'], got 'nothing'"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(tmp_path, monkeypatch, capsys, changes, message):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *TINY, *changes]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_odd_paths(tmp_path, monkeypatch, capsys):
    """What rich, glob and shells take for their own."""
    name = "s[/a]*?[red]b with space é🎈"
    monkeypatch.chdir(tmp_path)
    assert main(["run", "model=linear", *TINY, "learning_rate=1e-3", "--store", name, "--workers", "1"]) == 0
    assert f"stored in {name}" in capsys.readouterr().out
    (spec,) = (json.loads(path.read_text()) for path in (tmp_path / name).rglob("spec.json"))
    assert spec["training"]["learning_rate"] == 0.001  # numbers may have exponents
    assert main(["report", "--store", name, "--report", f"{name} report"]) == 0
    assert (tmp_path / f"{name} report" / "index.html").exists()


@pytest.mark.parametrize("name", ["x" * 300, "file/store"])
def test_paths_that_cannot_be(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    for command in (["run", *TINY], ["report"], ["list"]):
        assert main([*command, "--store", name]) in ((0, 1) if command == ["list"] else (1,))
    assert "error: " in capsys.readouterr().err


def test_a_missing_compiler_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    training = "tpr_attention.commands.training"
    monkeypatch.setattr(f"{training}.can_compile", lambda: False)
    monkeypatch.setattr(f"{training}.make_executor", lambda *_: lambda *_: (event for event in ()))
    for worth in (True, False):
        monkeypatch.setattr(f"{training}.is_worth_compiling", lambda specs, worth=worth: worth)
        assert main(["run", "model=linear", *TINY]) == 0
        assert ("no C++ compiler" in capsys.readouterr().out) == worth


@pytest.mark.parametrize("arguments", [["reproduce", "--seeds", "0"], ["fly"], ["report", "--stroe", "x"]])
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_studies_that_there_are_not(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "--studies", "beyon"]) == 2
    said = capsys.readouterr().err
    assert "main-noninteracting" in said
    assert "got 'beyon'; did you mean 'beyond'?" in said
    assert list(tmp_path.iterdir()) == []


def test_no_store_is_said(tmp_path, capsys):
    assert main(["report", "--store", str(tmp_path / "none"), "--report", str(tmp_path / "r")]) == 1
    assert "no store here" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("command", ["reproduce", "list", "run", "report", "show", "verify", "floors", "examples"])
def test_help_explains_every_option(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert "<function" not in said
    assert {"verify": "DIR", "floors": "key=value", "examples": "--figure FILE"}.get(command, "--store DIR") in said
