"""The commands as a user types them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import yaml

from tpr_attention.cli import main

TINY = ["steps=4", "train_pairs=100", "eval_pairs=20", "batch=50"]


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


def test_reproduce_again_trains_nothing(filled):
    folder, _ = filled
    before = (folder / "report" / "report.md").read_bytes()
    code, out, _ = run("reproduce", "--seeds", 2, "--steps", 3, "--studies", "main-interacting", cwd=folder)
    assert code == 0
    assert "20 runs, 20 of them stored" in out
    assert "trained" not in out
    assert (folder / "report" / "report.md").read_bytes() == before


def test_report_finds_out_how_the_store_was_filled(filled):
    folder, _ = filled
    before = (folder / "report" / "report.md").read_bytes()
    assert run("report", "--report", "again", cwd=folder)[0] == 0
    assert (folder / "again" / "report.md").read_bytes() == before


def test_report_needs_no_torch(filled):
    folder, _ = filled
    code = (
        "import sys; from tpr_attention.cli import main; main(['report', '--report', 'third']);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, timeout=120)


def test_show_tells_of_one_run(filled, capsys):
    folder, _ = filled
    digest = next(path.name for path in (folder / "runs").iterdir() if path.is_dir())
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
    for name in ("main-noninteracting", "readings", "classical-roles", "square_pos", "shape_col", "random-start"):
        assert name in said
    assert "2 seeds and 3 steps" in said


def test_run_takes_keys_lists_and_files(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, num_roles, filler_dim, scale=1.0):\n"
        "        super().__init__()\n"
        "        self.bias = torch.nn.Parameter(torch.full((num_roles, filler_dim), scale))\n"
        "    def forward(self, reference, transform, action):\n"
        "        return reference + self.bias\n"
    )
    sweep = {"steps": 4, "train_pairs": 100, "eval_pairs": 20, "batch": 50, "seed": [0, 1]}
    sweep["runs"] = [{"model": "resnet"}, {"model": "mine:Net", "options": {"scale": [0.5, 2.0]}}]
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    code, out, err = run("run", "--sweep", "sweep.yaml", "eval_pairs=30", "--workers", "1", cwd=tmp_path)
    assert code == 0, err
    assert "6 of 6 runs in runs" in out
    specs = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/spec.json")]
    assert sorted((spec["model"], spec["seed"], spec["options"].get("scale", 0)) for spec in specs) == [
        ("mine:Net", 0, 0.5),
        ("mine:Net", 0, 2.0),
        ("mine:Net", 1, 0.5),
        ("mine:Net", 1, 2.0),
        ("resnet", 0, 0),
        ("resnet", 1, 0),
    ]
    assert {spec["eval_pairs"] for spec in specs} == {30}
    assert run("report", cwd=tmp_path)[0] == 0
    report = (tmp_path / "report" / "report.md").read_text()
    assert "mine:Net, scale=2.0" in report
    assert (tmp_path / "report" / "figures" / "own-runs.png").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["modle=tpr"], "modle: no such key; did you mean 'model'?"),
        (["seed=-1"], "seed: expected a whole number from 0"),
        (["steps=many"], "steps: expected a whole number, got 'many'"),
        (["options.num_heads=0"], "num_heads: expected"),
        (["split=square_rd"], "did you mean 'square_red'?"),
        (["model=nowhere:Net"], "nowhere"),
        (["seed"], "seed: expected key=value"),
        (["seed=[0"], "seed=[0: not a value"),
        (["seed=[]"], "seed: expected at least one value"),
        (["--sweep", "missing.yaml"], "missing.yaml: cannot be read"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(tmp_path, monkeypatch, capsys, changes, message):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *TINY, *changes]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_command_goes_on(tmp_path):
    """What was stored stays, nothing half is left, and the same command trains the rest."""
    assert run("run", "model=linear", *TINY, cwd=tmp_path)[0] == 0
    command = [str(Path(sys.executable).parent / "tpr-attention"), "run", "model=[linear,resnet]", *TINY]
    slow = [*command[:-4], "steps=[4,4000000]", *TINY[1:]]
    started = subprocess.Popen(slow, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout.readline() == "4 runs, 1 of them stored in runs\n"
    time.sleep(5)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 130, err
    assert "the same command goes on" in err
    code, out, _ = run(*command[1:], cwd=tmp_path)
    assert code == 0
    assert "2 runs, 1 of them stored in runs" in out
    assert "2 of 2 runs in runs" in out


@pytest.mark.parametrize("name", ["s[/a]*?[red]b", "with space é🎈"])
def test_odd_paths(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "model=linear", *TINY, "--store", name, "--workers", "1"]) == 0
    assert f"stored in {name}" in capsys.readouterr().out
    assert main(["report", "--store", name, "--report", f"{name} report"]) == 0
    assert (tmp_path / f"{name} report" / "index.html").exists()


@pytest.mark.parametrize("name", ["x" * 300, "file/store"])
def test_paths_that_cannot_be(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    for command in (["run", *TINY], ["report"], ["list"]):
        assert main([*command, "--store", name]) in ((0, 1) if command == ["list"] else (1,))
    assert "error: " in capsys.readouterr().err


def test_numbers_may_have_exponents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "model=linear", *TINY, "learning_rate=1e-3", "--workers", "1"]) == 0
    (spec,) = (json.loads(path.read_text()) for path in Path("runs").glob("*/spec.json"))
    assert spec["learning_rate"] == 0.001


def test_a_missing_compiler_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tpr_attention.commands.training.can_compile", lambda: False)
    for worth, said in ((True, True), (False, False)):
        monkeypatch.setattr("tpr_attention.commands.training.is_worth_compiling", lambda specs, worth=worth: worth)
        assert main(["run", "model=linear", *TINY, f"seed={int(worth)}", "--workers", "1"]) == 0
        assert ("no C++ compiler" in capsys.readouterr().out) == said


def test_floors_of_the_tasks_asked_for(capsys):
    assert main(["floors", "split=square_red", "interaction=[null,shape_col]", "seed=[0,1]"]) == 0
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if "square_red" in line]
    assert [row[:3] for row in rows] == [
        [name, "square_red", seed] for name in ("none", "shape_col") for seed in ("0", "1")
    ]
    assert all(row[3:] == ["0"] * 8 + ["-"] for row in rows[:2])
    for row in rows[2:]:
        numbers = [float(cell) for cell in row[3:-1]]
        assert min(numbers[::2]) > 0  # linear
        assert numbers[1:-1:2] == [0, 0, 0]
        assert numbers[-1] > 0
        assert row[-1] == "Test 3"
    assert rows[2][3:] != rows[3][3:]  # another seed, another tensor


def test_floors_of_worlds_of_random_factors(capsys):
    assert main(["floors", "factors=[3,4]", "noise=0.1"]) == 0
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if "0.1 " in line]
    assert [row[:2] for row in rows] == [["3", "0.1"], ["4", "0.1"]]
    assert all(0 < float(row[2]) < 0.1**2 and row[-1] == "-" for row in rows)  # better than to copy the noise


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("spilt=square_red", "spilt: no such key; did you mean 'split'?"),
        ("split=square_rd", "did you mean 'square_red'?"),
        ("steps=100", "steps: floors depend on the task alone; expected one of split, interaction"),
        ("seed", "seed: expected key=value"),
        ("scale_angles=[0, 1]", "scale_angles: expected 6"),
    ],
)
def test_floors_of_no_task_are_refused(change, message, capsys):
    assert main(["floors", change]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_wrong_arguments_are_refused(capsys):
    for arguments in (["reproduce", "--seeds", "0"], ["reproduce", "--studies", "nothing"], ["fly"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
    assert "main-noninteracting" in capsys.readouterr().err


def test_no_store_is_said(tmp_path, capsys):
    assert main(["report", "--store", str(tmp_path / "none"), "--report", str(tmp_path / "r")]) == 1
    assert "no store here" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("command", ["reproduce", "list", "run", "report", "show"])
def test_help_explains_every_option(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "--store DIR" in capsys.readouterr().out
