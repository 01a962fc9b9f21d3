"""Code and data that a user brings are part of a run: edited files make new runs, and nothing is mixed."""

import sys
from textwrap import dedent

import pytest

from tests.runner.specs import tiny
from tpr_attention.cli import main
from tpr_attention.commands.training import changed_sources
from tpr_attention.runner.checkpoints import CheckpointInterval, Checkpoints
from tpr_attention.runner.executors.local import in_this_process
from tpr_attention.runner.run import missing, run
from tpr_attention.runner.store import Store
from tpr_attention.training.prepare import check
from tpr_attention.training.spec import RunSpec, SpecError

MODEL = """
    import torch

    class Scaled(torch.nn.Module):
        def __init__(self, num_roles: int) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(num_roles))

        def forward(self, reference, transform, action):
            return reference + {factor} * self.weight[:, None] * transform

    def held_out(factors):
        return factors.has("colour", "red") & factors.has("shape", "square")

    def law(values):
        return values
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Write a module of a user's own, and forget the one that was imported."""

    def write(factor):
        (tmp_path / "mine_of_tests.py").write_text(dedent(MODEL.format(factor=factor)))
        sys.modules.pop("mine_of_tests", None)
        monkeypatch.setattr("tpr_attention.imports._HASHES", {})

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits within a second have the same time stamp
    write(0.5)
    yield write
    sys.modules.pop("mine_of_tests", None)


def test_edited_code_is_a_new_run(mine, store):
    before = tiny(model="mine_of_tests:Scaled")
    list(run([before], store, in_this_process))
    assert list(before.sources) == ["mine_of_tests:Scaled"]
    assert missing([tiny(model="mine_of_tests:Scaled")], store) == []
    mine(0.25)
    after = tiny(model="mine_of_tests:Scaled")
    assert after != before
    assert missing([after], store) == [after]
    assert changed_sources([after], store) == ["mine_of_tests:Scaled"]
    list(run([after], store, in_this_process))
    assert set(store) == {before.digest, after.digest}
    assert not store.curve(before.digest).equals(store.curve(after.digest))
    assert store.spec(before.digest).sources == before.sources


@pytest.mark.parametrize(
    "keys",
    [
        {"split": "mine_of_tests:held_out"},
        {"interaction": {"law": "mine_of_tests:law", "factors": ["scale", "position"]}},
    ],
    ids=["split", "law"],
)
def test_splits_and_laws_are_code_too(mine, keys):
    before = RunSpec.of(keys)
    mine(0.25)
    assert RunSpec.of(keys) != before
    assert RunSpec.of(keys).without_sources() == before.without_sources()


def test_a_data_file_is_part_of_a_run(tmp_path):
    path = tmp_path / "fruit.csv"
    path.write_text("kind,colour\napple,red\n")
    before = RunSpec.of({"task": "table-composition", "path": str(path)})
    path.write_text("kind,colour\napple,green\n")
    assert RunSpec.of({"task": "table-composition", "path": str(path)}) != before


def test_names_of_this_package_have_no_hash():
    """So that runs are found again after an update; the version is stored with each."""
    assert RunSpec.of({}).sources == {}
    assert "sources" not in RunSpec.of({}).to_json()
    assert RunSpec.of({"model": "tpr_attention.models.composition.resnet:ResNet"}).sources == {}


def test_a_run_is_never_trained_with_other_code_than_it_was_requested_with(mine):
    spec = tiny(model="mine_of_tests:Scaled")
    check(spec)
    mine(0.25)
    for requested in (spec, spec.changed({"seed": 3})):
        with pytest.raises(SpecError, match="mine_of_tests:Scaled: its file has changed"):
            check(requested)


def test_code_that_was_edited_after_its_import_is_not_taken_for_the_file(mine, tmp_path):
    """As in a notebook that goes on after an edit: what would be trained is not what the file says."""
    check(tiny(model="mine_of_tests:Scaled"))
    path = tmp_path / "mine_of_tests.py"
    path.write_text(path.read_text() + "\n# edited\n")
    with pytest.raises(SpecError, match="has changed since it was imported"):
        check(tiny(model="mine_of_tests:Scaled"))


def test_a_checkpoint_is_not_continued_with_other_code(mine, store):
    before = tiny(model="mine_of_tests:Scaled", steps=64)
    events = run([before], store, in_this_process, every=CheckpointInterval(seconds=0))
    for event in events:
        if 0 < event.step < 64 and Checkpoints(store).find([before.digest]):
            break
    events.close()
    assert Checkpoints(store).find([before.digest]) is not None
    mine(0.25)
    after = tiny(model="mine_of_tests:Scaled", steps=64)
    assert Checkpoints(store).find([after.digest]) is None
    list(run([after], store, in_this_process))
    assert list(store) == [after.digest]


def test_the_command_says_so_in_one_line_and_trains_anew_on_demand(mine, tmp_path, capsys):
    path = str(tmp_path / "runs")
    request = ["run", "model=mine_of_tests:Scaled", "steps=2", "train_examples=100", "test_examples=20", "--workers=1"]
    request += ["--store", path]
    assert main(request) == 0
    assert "changed" not in capsys.readouterr().out
    mine(0.25)
    assert main(request) == 0
    said = capsys.readouterr().out
    assert said.count("mine_of_tests:Scaled has changed since runs that are stored; training anew") == 1
    (digest,) = (digest for digest in Store(path) if digest in said)
    written = (tmp_path / "runs" / digest / "provenance.json").stat().st_mtime_ns  # its seconds may be the same again
    assert main([*request, "--again"]) == 0
    assert "1 stored runs deleted, to be trained again" in capsys.readouterr().out
    assert len(list(Store(path))) == 2
    assert (tmp_path / "runs" / digest / "provenance.json").stat().st_mtime_ns > written
    assert main([*request, "--again", "--dry-run"]) == 2
    assert "--again: expected neither --shard nor --dry-run" in capsys.readouterr().err
    assert main(["show", digest, "--store", path]) == 0
    assert "source of mine_of_tests:Scaled" in capsys.readouterr().out
