"""Runs are trained once, together, by several processes, and what fails is said."""

from dataclasses import replace

import pytest

from tpr_attention.experiments import work as working
from tpr_attention.experiments.checkpoints import Every
from tpr_attention.experiments.curves import curve
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.progress import Failure, Progress, Waiting
from tpr_attention.experiments.run import missing, plan, run
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.train import Finished, train

TINY = RunSpec(steps=4, train_pairs=100, eval_pairs=20, batch=50)
SPECS = [
    replace(TINY, model=model, seed=seed, interaction=interaction)
    for model in ("tpr", "resnet", "oracle")
    for interaction in (None, "shape_col")
    for seed in (0, 1)
]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", create=True)


def test_all_runs_are_stored_with_the_points_of_train(store):
    events = list(run(SPECS, store, workers=0))
    assert sorted(store) == sorted(spec.digest for spec in SPECS)
    assert sum(event.runs for event in events if event.finished) == len(SPECS)
    group = [spec for spec in SPECS if (spec.model, spec.interaction) == ("tpr", "shape_col")]
    points, ends = {}, {}
    for event in train(group):
        if isinstance(event, Finished):
            ends[event.run] = event
        elif isinstance(event, Point):
            points.setdefault(event.run, []).append(event)
    for spec in group:
        end = ends[spec.digest]
        assert store.spec(spec.digest) == spec
        assert store.curve(spec.digest).equals(curve(points[spec.digest], end.role_weights))
        assert store.provenance(spec.digest)["parameters"] == end.parameters == 284
        for name, array in store.weights(spec.digest).items():
            assert (array == end.weights[name].numpy()).all()


def test_what_is_stored_is_skipped(store):
    assert len(list(run(SPECS[:2], store, workers=0))) > 0
    before = {path: path.stat().st_mtime_ns for path in store.path.rglob("*") if path.is_file()}
    assert missing(SPECS[:3], store) == [SPECS[2]]
    assert list(run(SPECS[:2], store, workers=0)) == []
    assert before == {path: path.stat().st_mtime_ns for path in store.path.rglob("*") if path.is_file()}


def test_processes_give_what_one_gives(store, tmp_path):
    alone = Store(tmp_path / "alone", create=True)
    list(run(SPECS, alone, workers=0))
    events = list(run(SPECS, store, workers=2))
    assert not [event for event in events if isinstance(event, Failure)]
    assert sorted(store) == sorted(alone)
    for digest in store:
        found, expected = store.curve(digest), alone.curve(digest)
        assert found.drop("loss", *[name for name in found.columns if name.startswith("role_")]).equals(
            expected.drop("loss", *[name for name in expected.columns if name.startswith("role_")])
        )
        assert found["loss"].to_list() == pytest.approx(expected["loss"].to_list(), rel=1e-4, abs=1e-12)


def test_a_group_that_fails_does_not_stop_the_others(store, monkeypatch):
    def broken(specs, **fields):
        if specs[0].model == "resnet":
            raise RuntimeError("broken on purpose")
        return train(specs, **fields)

    monkeypatch.setattr(working, "train", broken)
    events = list(run(SPECS, store, workers=0))
    failures = [event for event in events if isinstance(event, Failure)]
    lost = {spec.digest for spec in SPECS if spec.model == "resnet"}
    assert {digest for failure in failures for digest in failure.runs} == lost
    assert all(failure.reason == "RuntimeError: broken on purpose" for failure in failures)
    assert set(store) == {spec.digest for spec in SPECS} - lost


def test_a_process_that_dies_is_a_failure(store):
    deadly = [replace(TINY, model="tests.experiments.deadly:Deadly", seed=seed) for seed in (0, 1)]
    events = list(run([*deadly, *SPECS[:2]], store, workers=1))
    failures = [event for event in events if isinstance(event, Failure)]
    assert [set(failure.runs) for failure in failures] == [{spec.digest for spec in deadly}]
    assert failures[0].reason == "the process that trained it ended with code 7, 3 times"
    assert [event.group for event in events if isinstance(event, Waiting)] == [failures[0].group] * 2
    noted, torn = store.failures()
    assert [set(one["runs"]) for one in noted] == [{spec.digest for spec in deadly}]
    assert torn == 0
    assert set(store) == {spec.digest for spec in SPECS[:2]}


def test_bad_specs_are_refused_before_anything_is_written(store):
    with pytest.raises(ValueError, match="did you mean 'square_red'"):
        list(run([*SPECS, replace(TINY, split="square_rd")], store, workers=0))
    assert list(store) == []


def test_progress_tells_how_far_a_group_is(store):
    events = list(run(SPECS[:2], store, workers=0))
    assert all(isinstance(event, Progress) for event in events)
    assert [event.step for event in events] == [0, 0, 1, 2, 4, 4]
    assert [event.finished for event in events] == [False] * 5 + [True]
    assert {(event.runs, event.steps) for event in events} == {(2, 4)}


def test_a_run_that_diverges_is_stored_as_such(store):
    specs = [replace(TINY, seed=seed, steps=40, learning_rate=1e30 if seed == 1 else 0.01) for seed in range(3)]
    events = list(run(specs, store, workers=0))
    assert not [event for event in events if isinstance(event, Failure)]
    assert [store.diverged_at(spec.digest) is not None for spec in specs] == [False, True, False]
    divergence = store.provenance(specs[1].digest)["diverged"]
    assert divergence["tensor"].split()[0] in ("output", "loss", "norm", "gradient")
    assert store.curve(specs[1].digest)["step"].max() < divergence["step"]
    table = store.table(store)
    assert set(table.filter(table["diverged_at"].is_not_null())["run"]) == {specs[1].digest}
    assert list(run(specs, store, workers=0)) == []


def test_parts_make_the_whole(store, tmp_path):
    """Whatever is stored when a part begins: numbers belong to groups for good."""
    whole = [work.number for work in plan(SPECS, store)]
    parts = [[work.number for work in plan(SPECS, store, (part, 4))] for part in (1, 2, 3, 4)]
    assert sorted(number for part in parts for number in part) == sorted(whole) == list(range(6))
    for part in (4, 2, 1, 3):
        assert [work.number for work in plan(SPECS, store, (part, 4))] == parts[part - 1]
        list(run(SPECS, store, workers=0, shard=(part, 4)))
    alone = Store(tmp_path / "alone", create=True)
    list(run(SPECS, alone, workers=0))
    assert sorted(store) == sorted(spec.digest for spec in SPECS)
    assert store.table(store).equals(alone.table(alone))


SEEDS = [replace(TINY, steps=40, seed=seed) for seed in (0, 1, 2)]


def left_midway(specs, store):
    """A group that was asked to stop after its first steps."""
    (work,) = plan(specs, store)
    asked = iter([False, False])
    events = list(working.do(work, store, Every(), lambda: next(asked, True)))
    assert "saved at step" in events[-1].reason


def weights(store):
    return {run: store.weights(run)["attention.role_map"].tobytes() for run in store}


def test_a_group_goes_on_whatever_the_order_it_is_asked_for_in(store, tmp_path):
    """Each run with its own weights."""
    undisturbed = Store(tmp_path / "undisturbed", create=True)
    list(run(SEEDS[:2], undisturbed, workers=0))
    left_midway(SEEDS[:2], store)
    list(run(SEEDS[1::-1], store, workers=0))
    assert weights(store) == weights(undisturbed)


def test_a_checkpoint_of_others_is_left_alone(store, tmp_path):
    """Of three runs that were left, one is finished alone, then the other two are asked for."""
    left_midway(SEEDS, store)
    list(run(SEEDS[1:2], store, workers=0))
    events = list(run([SEEDS[0], SEEDS[2]], store, workers=0))
    assert not [event for event in events if isinstance(event, Failure)]
    assert sorted(store) == sorted(spec.digest for spec in SEEDS)
