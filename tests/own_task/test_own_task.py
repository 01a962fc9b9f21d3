"""The test of the design: a task and a model of a user's own are trained, killed, resumed, stored, verified, swept and
reported by the machine as it is."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import torch

from tests.tasks.conformance import CHECKS, Case
from tpr_attention.cli import main
from tpr_attention.training.points import Point
from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.train import Finished, groups, train

PATH = "tests.own_task.parity"
OWN = {"task": f"{PATH}:Parity", "model": f"{PATH}:Recurrent"}
SMALL = {"steps": 60, "train_examples": 400, "test_examples": 100, "batch_size": 50}


def right_output(batch):
    """Logits with a loss of zero."""
    return 1000 * torch.nn.functional.one_hot(batch.target, 2).to(batch.inputs[1].dtype)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_task_keeps_the_contract(check):
    options = {"length": 4, "longer": 7}
    check(Case(OWN["task"], options, right_output=right_output, wrong_output=lambda batch: 0 * right_output(batch)))


def test_runs_are_stacked_and_measured_by_the_tasks_own_metrics_conditions_and_groups():
    specs = [RunSpec.of({**OWN, **SMALL, "seed": seed, "learning_rate": 0.03}) for seed in range(2)]
    assert len(groups(specs)) == 1
    events = list(train(specs))
    alone = list(train(specs[1:]))
    points = [event for event in events if isinstance(event, Point) and event.run == specs[1].digest]
    assert {point.condition for point in points} == {"train", "same_length", "longer"}
    assert {len(point.values) for point in points if point.condition != "train"} == {2}
    assert any(point.group == "ones=3 ones" for point in points)
    for point, other in zip(points, (event for event in alone if isinstance(event, Point)), strict=True):
        assert point[:4] == other[:4]
        assert point.values == pytest.approx(other.values, rel=1e-3, abs=1e-4)
    first, last = ([p.values[0] for p in points if p[1:4] == (step, "same_length", None)] for step in (0, 60))
    assert last[0] < first[0]
    names = next(event.names for event in events if isinstance(event, Finished))
    assert names["metrics"] == ["cross_entropy", "accuracy"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"longer": 3}, "task.longer: expected more than 3, got 3"),
        ({"length": "x"}, "task.length: expected a whole number, got 'x'"),
        ({"hidden": 2.5}, "model.hidden: expected a whole number, got 2.5"),
        ({"task.lenght": 3}, "task.lenght: .* has no such option; .* did you mean 'length'"),
        ({"model": "tpr"}, "model: 'tpr' cannot be made"),
    ],
)
def test_wrong_options_are_refused_by_their_keys(keys, message):
    from tpr_attention.training.prepare import check

    with pytest.raises(SpecError, match=message):
        check(RunSpec.of({**OWN, **SMALL, **keys}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the user's module, as the user has it."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copy(Path(__file__).parent / "parity.py", folder / "parity.py")
    return folder


def command(folder, *arguments):
    return subprocess.run(
        [str(Path(sys.executable).parent / "tpr-attention"), *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


RUN = ["run", "task=parity:Parity", "model=parity:Recurrent", "hidden=[4,8]", "seed=[0,1]", "steps=400"]
RUN += ["train_examples=400", "test_examples=100", "batch_size=50", "--checkpoint-steps", "8", "--workers", "1"]


@pytest.fixture(scope="module")
def swept(folder):
    """A sweep that was killed once and went on, and the same sweep in one piece."""
    path = str(Path(sys.executable).parent / "tpr-attention")
    with subprocess.Popen([path, *RUN], cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True) as killed:
        deadline = time.monotonic() + 120
        while not list(folder.glob("runs/.checkpoints/*.safetensors")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(killed.pid, signal.SIGKILL)
    assert list(folder.glob("runs/.checkpoints/*.safetensors"))
    resumed = command(folder, *RUN)
    assert resumed.returncode == 0, resumed.stderr
    whole = command(folder, *RUN, "--store", "whole")
    assert whole.returncode == 0, whole.stderr
    return folder, resumed.stdout


def test_a_killed_sweep_goes_on_with_the_same_bits(swept, capsys):
    folder, said = swept
    assert "4 of 4 runs in runs" in said
    assert "longer" in said
    assert main(["verify", str(folder / "runs"), "--against", str(folder / "whole")]) == 0
    assert "4 with the same bits, 0 different" in capsys.readouterr().out


def test_the_report_shows_its_curves_and_tables(swept):
    folder, _ = swept
    (folder / "parity.py").rename(folder / "parity.py.away")  # reading a stored run imports nothing
    try:
        made = command(folder, "report")
    finally:
        (folder / "parity.py.away").rename(folder / "parity.py")
    assert made.returncode == 0, made.stderr
    text = (folder / "report" / "report.md").read_text()
    assert "parity:Recurrent, hidden=4" in text
    assert (folder / "report" / "figures" / "user-runs.png").exists()
    losses = pl.read_csv(folder / "report" / "tables" / "user-runs.csv")
    assert set(losses["metric"]) == {"cross_entropy"}
    others = pl.read_csv(folder / "report" / "tables" / "user-metrics.csv")
    assert set(others["metric"]) == {"accuracy"}
    assert {"same_length", "longer"} <= set(others.columns)


def test_show_tells_of_a_run_without_its_code(swept):
    folder, _ = swept
    digest = next(path.name for path in (folder / "runs").iterdir() if (path / "spec.json").exists())
    assert json.loads((folder / "runs" / digest / "spec.json").read_text())["task"]["name"] == "parity:Parity"
    (folder / "parity.py").rename(folder / "parity.py.away")
    try:
        shown = command(folder, "show", digest)
    finally:
        (folder / "parity.py.away").rename(folder / "parity.py")
    assert shown.returncode == 0, shown.stderr
    assert "accuracy" in shown.stdout
    assert "ones=2 ones" in shown.stdout
