"""The commands that tell of a task without training, as a user types them."""

import numpy as np
import pytest
from PIL import Image

from tests.studies.stored import plans_of, save
from tpr_attention.cli import main
from tpr_attention.commands.reproduce import QUICK
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.training.curves import curve
from tpr_attention.training.spec import RunSpec

CONDITIONS = ("train", "in_distribution", "ood_reference", "ood_transform", "ood_composition")


def cells(said):
    """The rows of printed tables."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]


def floors(capsys, *keys):
    assert main(["floors", *keys]) == 0
    return cells(capsys.readouterr().out)


def test_floors_of_the_tasks_asked_for(capsys):
    rows = floors(capsys, "split=square_red", "interaction=[null,shape_col]", "seed=[0,1]")
    assert [row[:4] for row in rows] == [
        [name, "square_red", seed, condition]
        for name in ("none", "shape_col")
        for seed in ("0", "1")
        for condition in CONDITIONS
    ]
    assert {tuple(row[4:]) for row in rows if row[0] == "none"} == {("0", "0", "yes")}
    for row in (row for row in rows if row[0] == "shape_col"):
        linear, knowable = map(float, row[4:6])
        assert linear > 0
        assert (knowable > 0) == (row[3] == "ood_composition") == (row[6] == "no")
    assert rows[10][4:] != rows[15][4:]  # another seed, another tensor


def test_floors_of_worlds_of_random_factors(capsys):
    rows = floors(capsys, "task=random-composition", "factors=[3,4]", "task.noise=0.1")
    assert [row[:3] for row in rows] == [[size, "0.1", name] for size in ("3", "4") for name in CONDITIONS]
    assert all(0 < float(row[3]) < 0.1**2 and row[4:] == ["0", "yes"] for row in rows)  # better than to copy the noise


def test_floors_of_a_split_and_a_law_by_path(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_world.py").write_text(
        "def hearts(factors):\n    return factors.has('shape', 'heart') & factors.has('colour', 'blue')\n"
        "def mean(first, second):\n    return (first + second) / 2\n"
    )
    keys = ["split=my_world:hearts", "interaction.law=my_world:mean", "interaction.factors=[scale, position]"]
    rows = floors(capsys, *keys)
    assert [row[-4] for row in rows if row[-4]] == [*CONDITIONS]
    assert "my_world:mean" in rows[0][0]
    assert {tuple(row[-2:]) for row in rows} == {("0", "yes")}  # what a law without a generator gives can be known


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            ["spilt=square_red"],
            "spilt: no such key for task 'composition' and model 'oracle'; did you mean 'task.split'?",
        ),
        (["split=square_rd"], "did you mean 'square_red'?"),
        (["steps=100"], "steps: floors depend on the task alone; expected keys of task 'composition'"),
        (["model.num_heads=3"], "model.num_heads: floors depend on the task alone"),
        (["seed"], "seed: expected key=value"),
        (["scale_angles=[0, 1]"], "scale_angles: expected 6"),
        (["task=[composition, random-composition]"], "task: expected one name"),
    ],
)
def test_floors_of_no_task_are_refused(keys, message, capsys):
    assert main(["floors", *keys]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_examples_in_words_and_as_a_picture(tmp_path, capsys):
    path = tmp_path / "examples.png"
    assert main(["examples", "interaction=shape_col", "seed=3", "--count", "2", "--figure", str(path)]) == 0
    said = capsys.readouterr().out
    assert [line.strip() for line in said.splitlines() if line.strip() in CONDITIONS] == [*CONDITIONS]
    assert [row[0] for row in cells(said) if row[0]] == ["1", "2"] * 5
    assert "shape square" in said
    assert str(path) in said
    with Image.open(path) as image:
        assert image.height > 2 * image.width  # ten rows of three images
        assert len(image.convert("RGB").getcolors(1 << 20)) > 3  # the colours of sprites
    before = path.read_bytes()
    assert main(["examples", "interaction=shape_col", "seed=3", "--count", "2", "--figure", str(path)]) == 0
    assert capsys.readouterr().out == said
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["task=nothing"], "task: expected one of"),
        (["seed=[0,1]"], "examples: expected one task, got several"),
        (["--figure", "examples.jpg"], "figure: expected a file that ends in .png, .svg or .pdf, got 'examples.jpg'"),
        (["task=random-composition", "--figure", "x.png"], "figure: task 'random-composition' has no pictures"),
    ],
)
def test_examples_that_cannot_be_are_refused_before_anything_is_shown(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert main(["examples", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err
    assert list(tmp_path.iterdir()) == []


def test_examples_where_they_cannot_be_written(tmp_path, capsys):
    assert main(["examples", "--count", "1", "--figure", str(tmp_path / "nowhere" / "x.png")]) == 1
    assert "nowhere/x.png: cannot be written: No such file or directory" in capsys.readouterr().err


def test_answers_of_stored_runs_as_a_picture(tmp_path, capsys):
    store, figure = tmp_path / "runs", tmp_path / "compared.png"
    keys = ["model=[linear,interpolate]", "steps=2", "train_examples=100", "test_examples=10"]
    assert main(["run", *keys, "--store", str(store)]) == 0
    digests = sorted(Store(store))
    capsys.readouterr()
    assert main(["compare", *digests, "--store", str(store), "--count", "2", "--figure", str(figure)]) == 0
    said = capsys.readouterr().out
    assert "ood_composition: means over 2 examples" in said
    assert {"linear", "interpolate"} <= set(said.split())
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert main(["compare", digests[0], "--store", str(store), "--test", "ood_refrence"]) == 2
    assert "did you mean 'ood_reference'?" in capsys.readouterr().err


def test_answers_of_a_run_of_another_version(tmp_path, capsys):
    store = Store(tmp_path / "runs", create=True)
    spec, names = RunSpec.of({"steps": 2}), {"conditions": [], "metrics": ["loss"]}
    store.save(spec, curve([], ["loss"]), {"w": np.zeros(1)}, {}, names)
    assert main(["compare", spec.digest, "--store", str(store.path), "--count", "1"]) == 1
    said = capsys.readouterr()
    assert f"the weights of {spec.digest} are not those of the model" in said.err
    assert said.out == ""


def test_a_quick_version_of_a_study(tmp_path, capsys):
    quick = ["reproduce", "--quick", "--store", str(tmp_path / "runs"), "--dry-run", "--studies"]
    assert main([*quick, "images"]) == 0
    assert "2 runs" in capsys.readouterr().out
    assert main([*quick, "beyond"]) == 2
    assert "--quick: expected no study or one of recall, images, got beyond" in capsys.readouterr().err


def test_a_quick_report_says_that_more_is_stored(tmp_path, capsys, monkeypatch):
    """It replaces a report of all that is stored, which another command writes again."""
    monkeypatch.setattr("tpr_attention.commands.report.write", lambda *_: None)
    store, names = Store(tmp_path / "runs", create=True), ["main-noninteracting", "main-interacting"]
    save(store, plans_of(names, QUICK))
    quick = ["reproduce", "--quick", "--store", str(store.path)]
    assert main(quick) == 0
    assert "of all that is stored" not in capsys.readouterr().out
    save(store, plans_of(names, Setup(seeds=3)))
    assert main(quick) == 0
    assert "it is about the quick runs; of all that is stored: tpr-attention report" in capsys.readouterr().out
