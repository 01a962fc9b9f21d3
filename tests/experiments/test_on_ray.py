"""What a Ray cluster gives is what processes give, whoever dies on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from tpr_attention.experiments import on_ray as module
from tpr_attention.experiments.checkpoints import Every
from tpr_attention.experiments.locks import locked
from tpr_attention.experiments.on_ray import on_ray
from tpr_attention.experiments.progress import Failure, Progress, Waiting
from tpr_attention.experiments.run import plan, run
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.store import Store, StoreError

TINY = RunSpec(steps=4, train_pairs=100, eval_pairs=20, batch=50)
SPECS = [replace(TINY, model=model, seed=seed) for model in ("tpr", "resnet") for seed in (0, 1)]
SLOW = [
    replace(TINY, model="tests.experiments.slow:Slow", steps=100, train_pairs=pairs, seed=seed)
    for pairs in (100, 150)
    for seed in (0, 1)
]
OFTEN = Every(0.0)
SLOWLY = {"SECONDS_OF_A_STEP": "0.03"}


def files(store):
    names = ("curve.parquet", "weights.safetensors", "spec.json")
    return {run: {name: (store.path / run / name).read_bytes() for name in names} for run in store}


def hidden(store):
    """What is left in a store besides runs."""
    return [path for name in (".locks", ".checkpoints") for path in (store.path / name).glob("*")]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", create=True)


def test_a_cluster_on_this_machine_gives_what_processes_give(store, tmp_path):
    alone, apart = Store(tmp_path / "alone", create=True), Store(tmp_path / "apart", create=True)
    list(run(SPECS, alone, workers=1))
    with module._connected(None, 2):
        assert [node["NodeManagerAddress"] for node in ray.nodes()] == ["127.0.0.1"]
        events = list(run(SPECS, store, executor=on_ray()))
        list(run(SPECS, apart, executor=on_ray(shared=False)))
    assert files(store) == files(apart) == files(alone)
    assert len(files(store)) == len(SPECS)
    assert not [*hidden(store), *hidden(apart), *store.faults(), *apart.faults()]
    assert sorted((event.runs, event.step) for event in events if event.finished) == [(2, 4), (2, 4)]


def test_a_task_that_does_not_see_the_store_sends_what_it_trained(store):
    (work,) = plan(SPECS[:2], store)
    sent = list(module._task(work.number, [spec.to_json() for spec in work.specs], None, Every()))
    folders = [item for item in sent if isinstance(item, module._Folder)]
    assert {folder.run for folder in folders} == {spec.digest for spec in SPECS[:2]}
    assert isinstance(sent[-1], Progress)
    assert sent[-1].finished
    tasks = module._Tasks([work], store, None, Every(), 1)
    with pytest.raises(StoreError, match="changed on its way"):
        tasks._keep(folders[0]._replace(files=folders[0].files | {"spec.json": b"{}"}))
    for folder in [*folders, *folders]:
        tasks._keep(folder)
    assert sorted(store) == sorted(folder.run for folder in folders)
    assert not list(store.faults())


@pytest.mark.parametrize(
    ("address", "message"),
    [("127.0.0.1:1", "no cluster at 127.0.0.1:1: .*refused"), ("somewhere", "expected an address such as")],
)
def test_a_cluster_that_is_not_there_is_said_at_once(store, address, message):
    begin = time.monotonic()
    with pytest.raises(SpecError, match=message):
        list(run(SPECS, store, executor=on_ray(address)))
    assert time.monotonic() - begin < 10


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("undisturbed") / "store", create=True)
    list(run(SLOW, store, workers=1))
    return files(store)


def add_node(cluster, **options):
    """One core, where a step takes a while."""
    with module._told(module.ALONE | SLOWLY | {"https_proxy": "http://127.0.0.1:9"}):
        cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1", **options)


@pytest.fixture(scope="module")
def cluster(undisturbed):
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    add_node(cluster, include_dashboard=False)
    add_node(cluster)
    yield cluster
    cluster.shutdown()


def follow(executor, store, disturb, specs=SLOW):
    """All events; when every group has come to its middle, something happens."""
    events, middle = [], set()
    for event in run(specs, store, every=OFTEN, executor=executor):
        events.append(event)
        if isinstance(event, Progress) and event.step >= 20 and not event.finished:
            middle.add(event.group)
            if disturb is not None and len(middle) == len(plan(specs, store)):
                disturb()
                disturb = None
    assert disturb is None, "nothing happened"
    return events


def holder(store, spec):
    """The process that trains a run."""
    return json.loads((store.path / ".locks" / spec.digest).read_text())["pid"]


def went_on(events):
    """The groups that were begun again, each from where it was saved."""
    again = [event.group for event in events if isinstance(event, Waiting) and "begun again" in event.reason]
    for group in again:
        last = next(k for k, event in enumerate(events) if isinstance(event, Waiting) and event.group == group)
        assert next(event for event in events[last:] if isinstance(event, Progress) and event.group == group).step > 0
    return again


def is_complete(store, undisturbed):
    return files(store) == undisturbed and not [*hidden(store), *store.faults()] and store.failures() == ([], 0)


@pytest.mark.ray
def test_a_killed_process_is_replaced(cluster, store, undisturbed):
    events = follow(on_ray(cluster.address), store, lambda: os.kill(holder(store, SLOW[0]), signal.SIGKILL))
    assert len(went_on(events)) == 1
    assert is_complete(store, undisturbed)


@pytest.mark.ray
def test_the_work_of_a_killed_node_goes_elsewhere(cluster, store, undisturbed):
    (node,) = cluster.worker_nodes
    events = follow(on_ray(cluster.address), store, lambda: cluster.remove_node(node, allow_graceful=False))
    add_node(cluster)
    assert len(went_on(events)) == 1
    assert is_complete(store, undisturbed)


@pytest.mark.ray
@pytest.mark.parametrize("here", [False, True])
def test_after_its_driver_is_killed_the_same_command_does_the_rest(cluster, store, undisturbed, here):
    address = None if here else cluster.address
    code = f"""
from tests.experiments.test_on_ray import *
list(run(SLOW, Store({str(store.path)!r}), every=OFTEN, executor=on_ray({address!r}, workers=2)))
"""
    driver = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2], env=os.environ | SLOWLY)
    deadline = time.monotonic() + 90
    while driver.poll() is None and time.monotonic() < deadline:
        saved = [int(path.name.split("-")[1]) for path in (store.path / ".checkpoints").glob("[!.]*.safetensors")]
        if len(saved) == 2 and min(saved) >= 20:
            break
        time.sleep(0.1)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL, "it should have been killed in the middle"
    assert not list(store)
    events = list(run(SLOW, store, every=OFTEN, executor=on_ray(address, workers=2)))
    first = {event.group: event.step for event in reversed(events) if isinstance(event, Progress)}
    assert len(first) == 2
    assert min(first.values()) >= 20
    assert is_complete(store, undisturbed)


@pytest.mark.ray
def test_what_always_kills_its_process_fails_and_the_rest_is_done(cluster, store, undisturbed):
    deadly = [replace(spec, model="tests.experiments.slow:Deadly") for spec in SLOW[:2]]
    events = list(run([*deadly, *SLOW], store, executor=on_ray(cluster.address, tries=2)))
    (failure,) = [event for event in events if isinstance(event, Failure)]
    assert set(failure.runs) == {spec.digest for spec in deadly}
    assert "the last of 2 times" in failure.reason
    assert len(store.failures()[0]) == 1
    assert files(store) == undisturbed


@pytest.mark.ray
def test_what_another_process_trains_is_waited_for(cluster, store):
    with locked(store.path / ".locks", [SPECS[0].digest]):
        events = run(SPECS[:2], store, executor=on_ray(cluster.address))
        assert f"being trained by process {os.getpid()}" in next(events).reason
    assert list(events)[-1].finished
    assert len(list(store)) == 2


@pytest.mark.ray
def test_interrupted_tasks_save_what_they_do(cluster, store):
    events = run(SLOW, store, every=Every(1000.0), executor=on_ray(cluster.address))
    seen = set()
    for event in events:
        seen |= {event.group} if event.step > 0 else set()
        if len(seen) == 2:
            break
    events.close()
    assert len(list((store.path / ".checkpoints").glob("[!.]*.safetensors"))) == 2
    assert not list((store.path / ".locks").iterdir())


@pytest.mark.ray
def test_a_failure_elsewhere_is_noted_in_the_store(cluster, store):
    broken = replace(TINY, model="tests.experiments.slow:Broken")
    work = [module.Work(0, (broken,))]
    (*_, failure) = on_ray(cluster.address, shared=False)(work, store, Every())
    assert "Broken" in failure.reason
    assert [note["why"] for note in store.failures()[0]] == [failure.reason]
