"""A Ray cluster gives what processes give, whichever process or node dies."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.runner.faulty_models import UNTIL
from tests.runner.specs import SPECS as MANY
from tests.runner.specs import tiny
from tpr_attention.runner.checkpoints import CheckpointInterval
from tpr_attention.runner.events import Failure, Progress, Waiting
from tpr_attention.runner.executors import ExecutorSettings, make_executor
from tpr_attention.runner.executors import ray as module
from tpr_attention.runner.executors.ray import ray_executor
from tpr_attention.runner.locks import locked
from tpr_attention.runner.run import plan, run
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.runner.work import Work
from tpr_attention.training.spec import Component, RunSpec, SpecError

SPECS = [MANY[0], MANY[1], MANY[4], MANY[5]]  # two groups
SLOW = [
    tiny(model="tests.runner.faulty_models:Slow", steps=300, train_examples=examples, seed=seed)
    for examples in (100, 150)
    for seed in (0, 1)
]
ALONE = make_executor("local", ExecutorSettings(workers=1))
OFTEN = CheckpointInterval(0.0)
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}


def on_ray(address=None, *, shared=True, **settings):
    return ray_executor(ExecutorSettings(address=address, **settings), shared=shared)


def files(store):
    names = ("curve.parquet", "weights.safetensors", "spec.json")
    return {run: {name: (store.path / run / name).read_bytes() for name in names} for run in store}


def hidden(store):
    """What is left in a store besides runs and files that a killed process had not finished."""
    return [path for name in (".locks", ".checkpoints") for path in (store.path / name).glob("[!.]*")]


@pytest.fixture(autouse=True)
def bounded():
    """No test may wait for ever."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("took too long"))
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.ray
def test_a_cluster_on_this_machine_gives_what_processes_give(store, tmp_path):
    alone, apart = Store(tmp_path / "alone", create=True), Store(tmp_path / "apart", create=True)
    list(run(SPECS, alone, ALONE))
    with module._connected(ExecutorSettings(workers=2)):
        assert [node["NodeManagerAddress"] for node in module.ray.nodes()] == ["127.0.0.1"]
        events = list(run(SPECS, store, on_ray()))
        list(run(SPECS, apart, on_ray(shared=False)))
    assert files(store) == files(apart) == files(alone)
    assert len(files(store)) == len(SPECS)
    assert not [*hidden(store), *hidden(apart), *store.faults(), *apart.faults()]
    assert sorted((event.runs, event.step) for event in events if event.finished) == [(2, 4), (2, 4)]


def test_a_cluster_that_others_could_reach_is_not_started(store, monkeypatch):
    monkeypatch.setattr(module.ray.util, "get_node_ip_address", lambda: "192.0.2.2")  # imported with other settings
    with pytest.raises(SpecError, match="no cluster on this machine: other machines could reach it"):
        list(run(SPECS, store, on_ray()))


def test_a_task_that_does_not_see_the_store_sends_what_it_trained(store):
    (work,) = plan(SPECS[:2], store)
    told = []
    board = SimpleNamespace(put_nowait=SimpleNamespace(remote=told.append))
    event, folders = module._task(work, None, CheckpointInterval(), board)
    assert event == Progress(work.number, 2, 4, 4, finished=True, trained=2)
    assert told[-1] == Progress(work.number, 2, 4, 4)
    assert set(folders) == set(work.runs)
    digest = work.runs[0]
    with pytest.raises(StoreError, match="changed on its way"):
        module._store(digest, folders[digest] | {"spec.json": b"{}"}, store)
    for digest, sent in [*folders.items(), *folders.items()]:
        module._store(digest, sent, store)
    assert set(store) == set(work.runs)
    assert not list(store.faults())


@pytest.mark.parametrize(
    ("address", "message"),
    [("127.0.0.1:1", "no cluster at 127.0.0.1:1: .*refused"), ("somewhere", "expected an address such as")],
)
def test_a_cluster_that_is_not_there_is_said_at_once(store, address, message):
    begin = time.monotonic()
    with pytest.raises(SpecError, match=message):
        list(run(SPECS, store, on_ray(address)))
    assert time.monotonic() - begin < 10


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("undisturbed") / "store", create=True)
    list(run(SLOW, store, ALONE))
    return files(store)


@pytest.fixture(scope="module")
def slowly(tmp_path_factory):
    """The environment of processes that train slowly until there is a file."""
    return {UNTIL: str(tmp_path_factory.mktemp("slow") / "until")}


@pytest.fixture
def hurry(slowly):
    path = Path(slowly[UNTIL])
    path.unlink(missing_ok=True)
    return path.touch


@pytest.fixture(scope="module")
def cluster(slowly):
    """Two nodes of one core each, which listen to this machine only."""
    from ray.cluster_utils import Cluster

    with module._environment(module.OFFLINE | slowly | {"https_proxy": "http://127.0.0.1:9"}):
        cluster = Cluster()
        cluster.add_node(**NODE, include_dashboard=False)
        cluster.add_node(**NODE)
    yield cluster
    cluster.shutdown()


def is_midway(store):
    """Whether both groups are being trained, and saved."""
    saved = [int(path.name.split("-")[1]) for path in (store.path / ".checkpoints").glob("[!.]*.safetensors")]
    return len(saved) == 2 and min(saved) > 0


def follow(executor, store, disturb):
    """All events of trainings that something happens to when they are midway."""
    events, left = [], [disturb]
    for event in run(SLOW, store, executor, every=OFTEN):
        events.append(event)
        if left and is_midway(store):
            left.pop()()
    assert not left, "nothing happened"
    return events


def went_on(events):
    """The groups that were started again, each from where it was saved."""
    again = [event.group for event in events if isinstance(event, Waiting) and "started again" in event.reason]
    for group in again:
        last = next(k for k, event in enumerate(events) if isinstance(event, Waiting) and event.group == group)
        assert next(event for event in events[last:] if isinstance(event, Progress) and event.group == group).step > 0
    return again


def is_complete(store, undisturbed):
    return files(store) == undisturbed and not [*hidden(store), *store.faults()] and store.failures() == ([], 0)


@pytest.mark.ray
def test_a_killed_process_is_replaced(cluster, store, undisturbed, hurry):
    def kill():
        lock = store.path / ".locks" / SLOW[0].digest
        os.kill(json.loads(lock.read_text())["pid"], signal.SIGKILL)
        hurry()

    assert len(went_on(follow(on_ray(cluster.address), store, kill))) == 1
    assert is_complete(store, undisturbed)


@pytest.mark.ray
def test_the_work_of_a_killed_node_goes_elsewhere(cluster, store, undisturbed, hurry, slowly):
    def kill():
        (node,) = cluster.worker_nodes
        cluster.remove_node(node, allow_graceful=False)
        hurry()

    assert len(went_on(follow(on_ray(cluster.address), store, kill))) == 1
    assert is_complete(store, undisturbed)
    with module._environment(slowly):
        cluster.add_node(**NODE)


DRIVER = """
import sys
from tests.runner.test_ray import OFTEN, SLOW, Progress, Store, on_ray, run
store, *address = sys.argv[1:]
for event in run(SLOW, Store(store), on_ray(*address, workers=2), every=OFTEN):
    if isinstance(event, Progress):
        print(event.group, event.step)
"""


@pytest.mark.ray
@pytest.mark.parametrize("here", [False, True])
def test_after_its_driver_is_killed_the_same_command_does_the_rest(cluster, store, undisturbed, hurry, slowly, here):
    command = [sys.executable, "-c", DRIVER, str(store.path), *([] if here else [cluster.address])]
    root = Path(__file__).parents[2]
    driver = subprocess.Popen(command, cwd=root, env=os.environ | slowly)
    while driver.poll() is None and not is_midway(store):
        time.sleep(0.1)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    assert not list(store)
    hurry()
    told = subprocess.run(command, cwd=root, env=os.environ | slowly, stdout=subprocess.PIPE, text=True, check=True)
    first = {group: int(step) for group, step in map(str.split, reversed(told.stdout.splitlines()))}
    assert 0 not in first.values()  # a cluster that loses its driver may finish the work before it ends
    assert is_complete(store, undisturbed)


@pytest.mark.ray
def test_what_always_kills_its_process_fails_and_the_rest_is_done(cluster, store, undisturbed, hurry):
    hurry()
    deadly = [spec.changed({"model": "tests.runner.faulty_models:Killed"}) for spec in SLOW[:2]]
    events = list(run([*deadly, *SLOW], store, on_ray(cluster.address, attempts=2)))
    (failure,) = [event for event in events if isinstance(event, Failure)]
    assert set(failure.runs) == {spec.digest for spec in deadly}
    assert "2 times" in failure.reason
    assert len(store.failures()[0]) == 1
    assert files(store) == undisturbed


@pytest.mark.ray
def test_what_another_process_trains_is_waited_for(cluster, store):
    with locked(store.path / ".locks", [SPECS[0].digest]):
        events = run(SPECS[:2], store, on_ray(cluster.address))
        assert f"being trained by process {os.getpid()}" in next(events).reason
    assert list(events)[-1].finished
    assert len(list(store)) == 2


@pytest.mark.ray
def test_interrupted_tasks_save_what_they_do(cluster, store, hurry):
    begun = set()
    with closing(run(SLOW, store, on_ray(cluster.address), every=CheckpointInterval(1000.0))) as events:
        while len(begun) < 2:
            event = next(events)
            begun |= {event.group} if event.step else set()
    assert is_midway(store)
    assert not list((store.path / ".locks").iterdir())


@pytest.mark.ray
def test_a_failure_elsewhere_is_noted_in_the_store(cluster, store):
    broken = RunSpec(SLOW[0].task, Component("tests.runner.faulty_models:Broken"), SLOW[0].training)
    *_, failure = on_ray(cluster.address, shared=False)([Work(0, (broken,))], store, CheckpointInterval())
    assert "Broken" in failure.reason
    assert [note["why"] for note in store.failures()[0]] == [failure.reason]
