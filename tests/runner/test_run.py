"""Runs are trained once, together, by several processes, and failures are reported."""

import multiprocessing
import os
import sys

import pytest

from tests.runner.specs import SPECS, tiny
from tpr_attention.runner import work as working
from tpr_attention.runner.checkpoints import CheckpointInterval
from tpr_attention.runner.estimate import estimate
from tpr_attention.runner.events import Failure, Progress, Waiting
from tpr_attention.runner.executors import ExecutorSettings, make_executor
from tpr_attention.runner.executors.local import in_this_process
from tpr_attention.runner.locks import locked
from tpr_attention.runner.run import missing, plan, run
from tpr_attention.runner.store import Store
from tpr_attention.runner.tables import table_of
from tpr_attention.runner.work import Work, train_group
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.spec import SpecError
from tpr_attention.training.train import Finished, train


def failures(events):
    return [event for event in events if isinstance(event, Failure)]


def test_all_runs_are_stored_with_the_points_of_train(trained):
    store, events = trained
    assert sorted(store) == sorted(spec.digest for spec in SPECS)
    assert sum(event.runs for event in events if event.finished) == len(SPECS)
    group = SPECS[2:4]
    points, ends = {}, {}
    for event in train(group):
        if isinstance(event, Finished):
            ends[event.run] = event
        elif isinstance(event, Point):
            points.setdefault(event.run, []).append(event)
    for spec in group:
        end = ends[spec.digest]
        assert store.spec(spec.digest) == spec
        assert store.names(spec.digest) == end.names
        assert store.curve(spec.digest).equals(curve(points[spec.digest], end.names["metrics"]))
        provenance = store.provenance(spec.digest)
        assert (provenance["parameters"], provenance["device"]) == (end.parameters, "cpu")
        for name, array in store.weights(spec.digest).items():
            assert (array == end.weights[name].numpy()).all()
    assert not list(store.faults())


def test_what_is_stored_is_skipped(trained):
    store, _ = trained
    before = {path: path.stat().st_mtime_ns for path in store.path.rglob("*") if path.is_file()}
    other = SPECS[0].with_seed(9)
    assert missing([*SPECS[:3], other, other], store) == [other]
    assert list(run(SPECS, store, in_this_process)) == list(run(SPECS, store)) == []
    assert before == {path: path.stat().st_mtime_ns for path in store.path.rglob("*") if path.is_file()}


def test_processes_give_what_one_gives(store, trained):
    """Also when one of them dies in every attempt, and a group cannot be trained on the device that it asks for."""
    alone, _ = trained
    deadly = [tiny(model="tests.runner.faulty_models:Exits", seed=seed) for seed in (0, 1)]
    elsewhere = [SPECS[0].with_seed(9).with_device("meta")]
    work = [*plan([*deadly, *SPECS], store), Work(99, tuple(elsewhere))]
    events = list(make_executor("local", ExecutorSettings(workers=2, attempts=2))(work, store, CheckpointInterval()))
    died, refused = sorted(failures(events))
    assert set(died.runs) == {spec.digest for spec in deadly}
    assert died.reason == "the process that trained it ended with code 7, 2 times"
    assert [event.group for event in events if isinstance(event, Waiting)] == [died.group]
    assert set(refused.runs) == {spec.digest for spec in elsewhere}
    assert "meta" in refused.reason
    noted, torn = store.failures()
    assert (sorted(one["runs"] for one in noted), torn) == (sorted(map(list, (died.runs, refused.runs))), 0)
    assert sorted(store) == sorted(alone)
    for digest in store:
        found, expected = store.curve(digest), alone.curve(digest)
        assert found.drop("value").equals(expected.drop("value"))
        assert found["value"].to_list() == pytest.approx(expected["value"].to_list(), rel=1e-4, abs=1e-12)


def test_a_group_that_fails_does_not_stop_the_others(store, monkeypatch):
    def broken(specs, **fields):
        if specs[0].model.name == "resnet":
            raise RuntimeError("broken on purpose")
        return train(specs, **fields)

    monkeypatch.setattr(working, "train", broken)
    found = failures(run(SPECS, store, in_this_process))
    lost = {spec.digest for spec in SPECS if spec.model.name == "resnet"}
    assert {digest for failure in found for digest in failure.runs} == lost
    assert {failure.reason for failure in found} == {"RuntimeError: broken on purpose"}
    assert set(store) == {spec.digest for spec in SPECS} - lost


def test_bad_specs_are_refused_before_anything_is_written(store):
    with pytest.raises(SpecError, match="square_rd"):
        list(run([*SPECS, tiny(split="square_rd")], store, in_this_process))
    assert list(store) == []


def test_progress_tells_how_far_a_group_is(store):
    events = list(run(SPECS[:2], store, in_this_process))
    assert all(isinstance(event, Progress) for event in events)
    assert [event.step for event in events] == [0, 0, 1, 2, 4, 4]
    assert [event.finished for event in events] == [False] * 5 + [True]
    assert {(event.runs, event.steps) for event in events} == {(2, 4)}


def test_a_run_that_diverges_is_stored_as_such(store):
    specs = [tiny(seed=seed, steps=40, learning_rate=1e30 if seed == 1 else 0.01) for seed in range(3)]
    assert not failures(run(specs, store, in_this_process))
    assert [store.divergence(spec.digest) is not None for spec in specs] == [False, True, False]
    divergence = store.provenance(specs[1].digest)["diverged"]
    assert divergence["tensor"].split()[0] in ("output", "loss", "norm", "gradient")
    assert store.curve(specs[1].digest)["step"].max() < divergence["step"]
    table = table_of(store, store)
    assert set(table.filter(table["diverged_at"].is_not_null())["run"]) == {specs[1].digest}
    assert list(run(specs, store, in_this_process)) == []


def test_shards_make_the_whole(store, trained):
    """Whatever is stored when a shard begins: numbers belong to groups for good."""
    whole = [work.number for work in plan(SPECS, store)]
    parts = [[work.number for work in plan(SPECS, store, (part, 3))] for part in (1, 2, 3)]
    assert sorted(number for part in parts for number in part) == sorted(whole) == list(range(4))
    for part in (3, 1, 2):
        assert [work.number for work in plan(SPECS, store, (part, 3))] == parts[part - 1]
        list(run(SPECS, store, in_this_process, shard=(part, 3)))
    assert table_of(store, store).equals(table_of(trained[0], trained[0]))


def test_a_held_group_is_waited_for(store):
    with locked(store.path / ".locks", [SPECS[1].digest]):
        events = run(SPECS[:2], store, in_this_process)
        assert f"being trained by process {os.getpid()}" in next(events).reason
    assert list(events)[-1].finished
    assert len(list(store)) == 2


SEEDS = [tiny(steps=40, seed=seed) for seed in (0, 1, 2)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("undisturbed") / "store", create=True)
    list(run(SEEDS[:2], store, in_this_process))
    return files(store)


def files(store):
    names = ("curve.parquet", "weights.safetensors", "names.json")
    return {run: [(store.path / run / name).read_bytes() for name in names] for run in store}


def stop_midway(specs, store):
    """Stop a group after its first steps."""
    (work,) = plan(specs, store)
    answers = iter([False, False])
    events = list(train_group(work, store, CheckpointInterval(), lambda: next(answers, True)))
    assert "saved at step" in events[-1].reason


def test_a_group_resumes_in_any_order(store, undisturbed):
    """Each run with its own weights, and with the same bits."""
    stop_midway(SEEDS[:2], store)
    list(run(SEEDS[1::-1], store, in_this_process))
    assert files(store) == undisturbed
    assert not list((store.path / ".checkpoints").iterdir())


def test_a_checkpoint_of_another_group_is_not_used(store):
    """Of three runs that were stopped, one is finished alone, then the other two are asked for."""
    stop_midway(SEEDS, store)
    list(run(SEEDS[1:2], store, in_this_process))
    assert not failures(run([SEEDS[0], SEEDS[2]], store, in_this_process))
    assert sorted(store) == sorted(spec.digest for spec in SEEDS)


def test_the_checkpoint_of_stored_runs_is_deleted(store):
    """Left by a process that was killed after it had stored its last run."""
    stop_midway(SEEDS[:2], store)
    (path,) = (store.path / ".checkpoints").iterdir()
    data = path.read_bytes()
    list(run(SEEDS[:2], store, in_this_process))
    stop_midway(SEEDS[2:], store)
    (other,) = (store.path / ".checkpoints").iterdir()
    path.write_bytes(data)
    assert list(run(SEEDS[:2], store, in_this_process)) == []
    assert list((store.path / ".checkpoints").iterdir()) == [other]


def test_a_worker_that_dies_while_idle_is_replaced(store):
    """It waits for the lock of one group after it has trained the other."""
    with locked(store.path / ".locks", [SPECS[0].digest]):
        events = run(SPECS[:4], store, make_executor("local", ExecutorSettings(workers=1)))
        while not getattr(next(events), "finished", False):
            pass
        (worker,) = multiprocessing.active_children()
        worker.kill()
        worker.join()
    *rest, last = events
    assert [event.reason for event in rest if isinstance(event, Waiting)][-1].endswith("-9; it is started again")
    assert last.finished
    assert len(list(store)) == 4


def test_estimates_are_of_the_right_size(trained, store):
    stored, _ = trained
    new = [spec.with_seed(seed) for spec in SPECS for seed in (7, 8)]
    for one in (stored, store):  # from stored runs, and from a few steps
        work = plan(new, one)
        assert 0 < estimate(work, one, workers=1) < 30
        assert estimate(work, one, workers=2) < estimate(work, one, workers=1)
    assert estimate(plan(SPECS, stored), stored, workers=1) == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rya", "expected one of .*'local', 'ray'.*did you mean 'ray'"),
        ("somewhere:executor", "cannot import 'somewhere'"),
    ],
)
def test_an_unknown_executor_is_refused(name, message):
    with pytest.raises(SpecError, match=f"executor: .*{message}"):
        make_executor(name)


def test_the_advice_for_a_missing_dependency(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "tpr_attention.runner.executors.ray", raising=False)
    with pytest.raises(SpecError, match=r'executor ray: ray is not installed; pip install "tpr-attention\[ray\]"'):
        make_executor("ray")
