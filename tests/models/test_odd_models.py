"""Models and tasks of a user that try to end the process, have no numbers, or are no models at all."""

import json
import sys
import time

import pytest
import torch

from tpr_attention.cli import main
from tpr_attention.models.build import build
from tpr_attention.models.contract import ContractError, foreign
from tpr_attention.runner.checkpoints import CheckpointInterval
from tpr_attention.runner.events import Failure, Progress
from tpr_attention.runner.executors import ExecutorSettings, make_executor
from tpr_attention.runner.run import plan
from tpr_attention.runner.store import Store
from tpr_attention.training.prepare import check
from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.train import train

HERE = "tests.models.odd_models"
TINY = {"steps": 60, "train_examples": 50, "test_examples": 20, "batch_size": 25}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Lazy", "expected shapes when the model is made, but 'map.weight' of a lazy module has none"),
        ("Meta", "expected numbers, but 'weight' is on the meta device, which has none"),
        ("MetaBuffer", "expected numbers, but 'shift' is on the meta device, which has none"),
        ("NoConstructor", "parameters: expected at least one that asks for gradients, got none"),
        ("NoSuper", "to call super().__init__() first"),
        ("NoModule", "to make a torch.nn.Module, got NoModule"),
        ("Exits", "forward: raised EndedError: sys.exit(0) was called"),
        ("RaisesOwn", "forward: raised EndedError: Own('in forward')"),
        ("RaisesGeneratorExit", "forward: raised EndedError: GeneratorExit()"),
        ("ExitsWhenMade", "cannot be made: EndedError: sys.exit(3) was called"),
        ("RaisesOwnWhenMade", "cannot be made: EndedError: Own('when made')"),
        ("Endless", "forward: raised RecursionError"),
        ("NoCopy", "expected one that can be copied: EndedError: sys.exit(1) was called"),
    ],
)
def test_models_that_are_refused_before_anything_is_written(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match="model") as refused:
        check(RunSpec.of({"model": f"{HERE}:{name}", **TINY}))
    assert message in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("task_that_exits", "cannot be made: EndedError: sys.exit(0) was called"),
        ("ExitsWhenDrawn", "cannot draw examples: EndedError: sys.exit(4) was called"),
        ("RaisesInProperty", "cannot be made: ValueError: no sizes"),
        ("no_task", "got one without sizes, conditions, group_names, draw, measure"),
    ],
)
def test_tasks_that_are_refused(name, message):
    with pytest.raises(SpecError, match="task: ") as refused:
        check(RunSpec.of({"task": f"{HERE}:{name}", "model": f"{HERE}:NoConstructor", **TINY}))
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["Interrupts", "InterruptsWhenMade"])
def test_an_interrupt_that_no_signal_caused_is_told_as_such(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", f"model={HERE}:{name}"]) == 1
    assert capsys.readouterr().err == ("error: KeyboardInterrupt, without a signal: a model or a task has raised it\n")
    assert list(tmp_path.iterdir()) == []


def test_an_end_that_nobody_expects_is_told(monkeypatch, capsys):
    def end(**_):
        sys.exit(0)

    monkeypatch.setattr("tpr_attention.commands.listing.command", end)
    assert main(["list"]) == 1
    assert capsys.readouterr().err == "error: list: a model or a task has called sys.exit(0)\n"


def test_a_model_without_a_constructor_takes_no_sizes():
    sizes = type("Sizes", (), {"sizes": {"num_roles": 3}})()
    assert isinstance(build(f"{HERE}:NoConstructor", sizes), torch.nn.Module)
    with pytest.raises(ContractError, match=r"model.width: expected one of the options of"):
        build(f"{HERE}:NoConstructor", sizes, width=3)


def test_a_model_may_print(capsys):
    spec = RunSpec.of({"model": f"{HERE}:Prints", **TINY, "steps": 2})
    assert check(spec) == 5
    assert len(list(train([spec]))) > 0
    assert "called" in capsys.readouterr().out


def test_what_ends_the_process_is_an_error():
    with pytest.raises(RuntimeError, match=r"sys\.exit\('why'\) was called"), foreign():
        sys.exit("why")
    for error in (KeyboardInterrupt, ValueError):  # the first may be Ctrl-C
        with pytest.raises(error), foreign():
            raise error


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ExitsLate", "a model or a task has called sys.exit(0)"),
        ("RaisesOwnLate", "Own: late"),
        ("InterruptsLate", "a model or a task has raised KeyboardInterrupt()"),
    ],
)
def test_what_a_worker_meets_later_is_on_record(name, reason, tmp_path, capfd, monkeypatch):
    """Once: the process lives on, the group is not tried again, and the process ends when it is asked to."""
    grace = 10.0
    monkeypatch.setattr("tpr_attention.runner.executors.local.GRACE_SECONDS", grace)
    store = Store(tmp_path / "store", create=True)
    work = plan([RunSpec.of({"model": f"{HERE}:{name}", **TINY})], store)
    events, failed_at = [], 0.0
    for event in make_executor("local", ExecutorSettings(1))(work, store, CheckpointInterval()):
        events.append(event)
        if isinstance(event, Failure):
            time.sleep(0.3)  # until the process waits for work again
            failed_at = time.monotonic()
    assert time.monotonic() - failed_at < grace / 2
    assert max(event.step for event in events if isinstance(event, Progress)) > 0  # it had steps to save
    (failure,) = (event for event in events if isinstance(event, Failure))
    assert failure.reason == reason
    (line,) = filter(None, (store.path / "failures.jsonl").read_text().splitlines())
    assert json.loads(line)["why"] == reason
    assert "Traceback" not in capfd.readouterr().err
