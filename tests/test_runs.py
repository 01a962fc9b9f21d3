"""`tpr-attention runs`: the stored runs as a table and as JSON."""

import json

import numpy as np
import pytest

from tpr_attention.cli import main
from tpr_attention.runner.store import Store
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.spec import Component, RunSpec, Training

METRICS = ["loss", "accuracy"]
NAMES = {"conditions": ["near", "far"], "metrics": METRICS, "groups": {"kind": ["a"]}, "axes": {}}


def save(store, spec, loss=0.5, provenance=None):
    """Add a run that ends with this loss, twice as much in the test `far`; of a group it is another."""
    points = [
        Point("", step, condition, group, (value * times, 1 - value * times))
        for step, value in ((0, 1.0), (10, loss))
        for condition, times in (("train", 3), ("near", 1), ("far", 2))
        for group in (None, "kind=a")
    ]
    origin = {"seconds": 2.5, "parameters": 1234} | (provenance or {})
    store.save(spec, curve(points, METRICS), {"w": np.zeros(1)}, origin, NAMES)


@pytest.fixture
def filled(tmp_path):
    """Models of a user's own with two sizes, a model of the package, and one that diverged."""
    store = Store(tmp_path / "runs", create=True)
    for size in (8, 16):
        for seed in (0, 1):
            options = {"size": size, "how": {"law": "sum", "of": ["a", "b"]}}
            save(store, RunSpec(Component("mine:T"), Component("mine:M", options), Training(), seed), (1 + seed) / size)
    save(store, RunSpec.of({"model": "linear", "steps": 10}), 0.001)
    lost = {"diverged": {"step": 7, "tensor": "loss"}}
    save(store, RunSpec.of({"model": "resnet", "steps": 10}), float("nan"), lost)
    return store


@pytest.fixture
def runs(filled, capsys):
    """Call the command; its exit code, what it said, and its complaints."""

    def call(*arguments):
        code = main(["runs", *arguments, "--store", str(filled.path)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def listed(runs):
    """What JSON has of the runs."""

    def call(*arguments):
        code, said, _ = runs(*arguments, "--json")
        assert code == 0
        return json.loads(said, parse_constant=pytest.fail)

    return call


def cells(said):
    """The rows of the table as lists of texts."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]


def test_every_run_has_a_row_with_its_last_values(runs):
    code, said, complaints = runs("task=mine:T")
    assert (code, complaints) == (0, "")
    assert said.startswith("4 runs in ")
    assert ", loss at the end" in " ".join(said.split("┏")[0].split())
    header = next(line for line in said.splitlines() if "run" in line and "┃" in line)
    assert [cell.strip() for cell in header.split("┃")[1:-1]] == [
        *("run", "task", "model", "model.size", "seed", "near", "far", "parameters", "seconds")
    ]
    assert [row[1:] for row in cells(said)] == [
        ["mine:T", "mine:M", "8", "0", "0.12", "0.25", "1,234", "2.5"],
        ["mine:T", "mine:M", "8", "1", "0.25", "0.50", "1,234", "2.5"],
        ["mine:T", "mine:M", "16", "0", "0.062", "0.12", "1,234", "2.5"],
        ["mine:T", "mine:M", "16", "1", "0.12", "0.25", "1,234", "2.5"],
    ]


def test_what_diverged_has_no_last_value(runs, listed):
    (row,) = cells(runs("model=resnet")[1])
    assert row[-1].startswith("diverged at step 7")
    assert row[-5:-3] == ["-", "-"]
    (found,) = listed("model=resnet")
    assert found["diverged_at"] == 7
    assert found["final"] == {"loss": {}, "accuracy": {}}


def test_json_has_all_that_a_script_needs(filled, listed):
    found = listed()
    assert {one["run"] for one in found} == set(filled)
    (one,) = listed("model=linear")
    assert one["final"] == {"loss": {"near": 0.001, "far": 0.002}, "accuracy": {"near": 0.999, "far": 0.998}}
    assert (one["task"], one["model"], one["seed"], one["metric"]) == ("composition", "linear", 0, "loss")
    assert (one["parameters"], one["seconds"], one["diverged_at"], one["sources"]) == (1234, 2.5, None, {})
    assert one["keys"]["training.steps"] == 10
    assert "training.device" not in one["keys"]


def test_numbers_that_are_none_are_null(filled, listed):
    save(filled, RunSpec.of({"model": "linear", "steps": 11}), float("inf"))
    (one,) = listed("steps=11")
    assert one["final"]["loss"] == {"near": None, "far": None}


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ([], 6),
        (["size=8"], 2),
        (["model.size=[8,16]", "seed=1"], 2),
        (["size=[8,99]"], 2),
        (["model=[linear,resnet]"], 2),
        (["training.steps=1e1"], 2),
        (["how.law=sum"], 4),
        (["how.of=[a,b]"], 4),
        (["interaction=null"], 2),
        (["learn_ids=true", "model=tpr"], None),
    ],
)
def test_runs_are_chosen_by_their_keys(runs, listed, asked, count):
    if count is None:
        assert runs(*asked)[0] == 2
    else:
        assert len(listed(*asked)) == count


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["szie=8"], "szie: no stored run has this key; did you mean 'size'?"),
        (["size=99"], "size: no stored run has 99; stored: 8, 16"),
        (["size=8", "model=linear"], "size, model: no stored run has all of these values together"),
        (["size=true"], "size: no stored run has True; stored: 8, 16"),
        (["size"], "size: expected key=value"),
        (["--sort", "nera"], "--sort: expected one of near, far, run, parameters, seconds, task, "),
        (["--metric", "acuracy"], "--metric: expected one of loss, accuracy; got 'acuracy'; did you mean 'accuracy'?"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(runs, asked, said):
    code, shown, complaint = runs(*asked)
    assert (code, shown) == (2, "")
    assert complaint.startswith(f"error: {said}")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("sort", "sizes"),
    [
        (["--sort", "size"], [8, 8, 16, 16, None, None]),
        (["--sort", "size", "--descending"], [16, 16, 8, 8, None, None]),
        (["--sort", "near"], [None, 16, 8, 16, 8, None]),  # the last one diverged
        (["--sort", "near", "--descending", "--limit", "1"], [8]),
        (["--sort", "near", "--metric", "accuracy", "--limit", "2"], [8, 8]),
    ],
)
def test_runs_are_sorted(listed, sort, sizes):
    found = listed(*sort)
    assert [one["keys"].get("model.size") for one in found] == sizes


def test_another_metric(runs):
    (row,) = cells(runs("model=linear", "--metric", "accuracy")[1])
    assert row[4:6] == ["1.00", "1.00"]


def test_a_limit_is_told(runs):
    code, said, _ = runs("--limit", "2")
    assert code == 0
    assert said.startswith("2 of 6 runs in ")
    assert len(cells(said)) == 2


def test_runs_that_cannot_be_read_are_named(filled, runs):
    linear = RunSpec.of({"model": "linear", "steps": 10}).digest
    resnet = RunSpec.of({"model": "resnet", "steps": 10}).digest
    (filled.path / linear / "curve.parquet").write_bytes(b"torn")
    (filled.path / resnet / "spec.json").write_text("{}")
    code, said, complaints = runs()
    assert code == 0
    assert len(cells(said)) == 4
    assert complaints.count("left out: ") == 2
    assert linear in complaints
    assert resnet in complaints


def test_equal_keys_of_other_code_are_told_apart(filled, runs):
    from msgspec.structs import replace

    spec = filled.spec(next(digest for digest in filled if filled.spec(digest).task.name == "mine:T"))
    for version in ("1a2b3c4d5e6f", "aaaaaabbbbbb"):
        save(filled, replace(spec, seed=5, sources={"mine:M": version}))
    notes = {row[-1] for row in cells(runs("seed=5")[1])}
    assert notes == {"source 1a2b3c", "source aaaaaa"}


def test_an_empty_store_has_no_rows(tmp_path, capsys):
    Store(tmp_path / "empty", create=True)
    assert main(["runs", "model=tpr", "--store", str(tmp_path / "empty")]) == 0
    assert "0 runs in" in capsys.readouterr().out
    assert main(["runs", "--json", "--store", str(tmp_path / "empty")]) == 0
    assert json.loads(capsys.readouterr().out) == []
