"""What a Ray cluster gives is what processes give, whoever dies on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import ray

from tests.experiments.slow import UNTIL
from tpr_attention.experiments import on_ray as module
from tpr_attention.experiments.checkpoints import Every
from tpr_attention.experiments.locks import locked
from tpr_attention.experiments.on_ray import on_ray
from tpr_attention.experiments.progress import Failure, Progress, Waiting
from tpr_attention.experiments.run import plan, run
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.store import Store, StoreError
from tpr_attention.experiments.work import Work

TINY = RunSpec(steps=4, train_pairs=100, eval_pairs=20, batch=50)
SPECS = [replace(TINY, model=model, seed=seed) for model in ("tpr", "resnet") for seed in (0, 1)]
SLOW = [
    replace(TINY, model="tests.experiments.slow:Slow", steps=300, train_pairs=pairs, seed=seed)
    for pairs in (100, 150)
    for seed in (0, 1)
]
OFTEN = Every(0.0)
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}


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
    told = []
    board = SimpleNamespace(put_nowait=SimpleNamespace(remote=told.append))
    event, folders = module._task(work.number, [spec.to_json() for spec in work.specs], None, Every(), board)
    assert event == Progress(work.number, 2, 4, 4, finished=True)
    assert told[-1] == Progress(work.number, 2, 4, 4)
    assert {folder.run for folder in folders} == {spec.digest for spec in SPECS[:2]}
    with pytest.raises(StoreError, match="changed on its way"):
        module._keep(folders[0]._replace(files=folders[0].files | {"spec.json": b"{}"}), store)
    for folder in [*folders, *folders]:
        module._keep(folder, store)
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

    with module._set(module.ALONE | slowly | {"https_proxy": "http://127.0.0.1:9"}):
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
    for event in run(SLOW, store, every=OFTEN, executor=executor):
        events.append(event)
        if left and is_midway(store):
            left.pop()()
    assert not left, "nothing happened"
    return events


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
    with module._set(slowly):
        cluster.add_node(**NODE)


DRIVER = """
import sys
from tests.experiments.test_on_ray import OFTEN, SLOW, Progress, Store, on_ray, run
store, *address = sys.argv[1:]
for event in run(SLOW, Store(store), every=OFTEN, executor=on_ray(*address, workers=2)):
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
def test_interrupted_tasks_save_what_they_do(cluster, store, hurry):
    begun = set()
    with closing(run(SLOW, store, every=Every(1000.0), executor=on_ray(cluster.address))) as events:
        while len(begun) < 2:
            event = next(events)
            begun |= {event.group} if event.step else set()
    assert is_midway(store)
    assert not list((store.path / ".locks").iterdir())


@pytest.mark.ray
def test_a_failure_elsewhere_is_noted_in_the_store(cluster, store):
    broken = replace(TINY, model="tests.experiments.slow:Broken")
    *_, failure = on_ray(cluster.address, shared=False)([Work(0, (broken,))], store, Every())
    assert "Broken" in failure.reason
    assert [note["why"] for note in store.failures()[0]] == [failure.reason]
