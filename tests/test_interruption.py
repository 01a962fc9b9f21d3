"""Commands that are killed, stopped, started twice or run out of space go on as if nothing had happened."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).parent / "tpr-attention")
RUNS = ["model=[tpr,resnet]", "seed=[0,1]", "steps=3000", "train_examples=500", "test_examples=50", "batch_size=50"]
SHORT, LONG = ([key.replace("3000", steps) for key in RUNS] for steps in ("2000", "6000"))
OFTEN = ["--workers", "1", "--checkpoint-seconds", "0"]


def start(folder, *arguments):
    """A command in a session of its own, so that all its processes can be killed at once."""
    return subprocess.Popen(
        [COMMAND, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(process, timeout=240):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def run(folder, *arguments):
    return finish(start(folder, *arguments))


def wait_for(condition, process, seconds=120):
    """Until something is so; the process must not have ended before."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def checkpoint_steps(folder):
    names = [path.name for path in (folder / "runs" / ".checkpoints").glob("[!.]*.safetensors")]
    return [int(name.split("-")[1]) for name in names]


def contents(folder):
    """All bytes but those that tell the time: how long a training took, and the checksum of that."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("provenance.json", "SHA256SUMS")
    }


def forget_times(folder):
    """Give all runs the same duration: the report shows it, and it is never the same twice."""
    for path in (folder / "runs").glob("*/provenance.json"):
        before = path.read_bytes()
        after = json.dumps({**json.loads(before), "seconds": 1.0}).encode()
        path.write_bytes(after)
        sums = path.with_name("SHA256SUMS")
        old, new = (hashlib.sha256(data).hexdigest() for data in (before, after))
        sums.write_text(sums.read_text().replace(old, new))


def hidden(folder):
    return [path for path in (folder / "runs").rglob(".*") if path.is_file()]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    code, _, err = run(folder, "run", *SHORT, "--workers", "1")
    assert code == 0, err
    return contents(folder)


def test_killed_five_times_it_ends_with_the_same_bits(tmp_path):
    """Store and report."""
    whole = tmp_path / "undisturbed"
    whole.mkdir()
    assert run(whole, "run", *RUNS, "--workers", "1")[0] == 0
    forget_times(whole)
    assert run(whole, "report")[0] == 0
    expected = contents(whole)
    tmp_path = tmp_path / "killed"
    tmp_path.mkdir()
    draw = random.Random(0)
    killed = 0
    while killed < 5:
        process = start(tmp_path, "run", *RUNS, *OFTEN)
        before = max(checkpoint_steps(tmp_path), default=0)
        wait_for(lambda: [s for s in checkpoint_steps(tmp_path) if s != before], process)  # noqa: B023
        time.sleep(draw.random() * 0.3)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        killed += 1
        left = [path for path in (tmp_path / "runs").iterdir() if path.is_dir() and path.name[0] != "."]
        assert len(left) < 4, "it finished before it was killed often enough"
    code, _, err = run(tmp_path, "run", *RUNS, *OFTEN)
    assert code == 0, err
    forget_times(tmp_path)
    assert run(tmp_path, "report")[0] == 0
    assert contents(tmp_path) == expected
    assert run(tmp_path, "verify", "runs")[:2] == (0, "4 runs: all files are as written\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_stop_it_saves_and_says_how_to_go_on(tmp_path, undisturbed, number, code):
    process = start(
        tmp_path, "run", *SHORT, "--workers", "1", "--checkpoint-steps", "100", "--checkpoint-seconds", "999"
    )
    wait_for(lambda: checkpoint_steps(tmp_path), process)
    seen = max(checkpoint_steps(tmp_path))
    process.send_signal(number)
    found, _, err = finish(process)
    assert found == code, err
    assert "what was begun is saved; the same command goes on from there" in err
    assert "Traceback" not in err
    assert max(checkpoint_steps(tmp_path)) >= seen
    assert run(tmp_path, "run", *SHORT, "--workers", "1")[0] == 0
    assert contents(tmp_path) == undisturbed


def children(process):
    found = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def test_a_killed_worker_is_replaced(tmp_path, undisturbed):
    process = start(tmp_path, "run", *SHORT, *OFTEN)
    wait_for(lambda: checkpoint_steps(tmp_path), process)
    os.kill(children(process)[0], signal.SIGKILL)
    code, out, err = finish(process)
    assert code == 0, err
    assert "waiting: the process that trained it ended with code -9; it is started again" in out
    assert contents(tmp_path) == undisturbed


def test_the_same_command_twice_at_once(tmp_path):
    """The second names the first, trains what that leaves, and ends when all is done; a dead one is taken over."""
    first = start(tmp_path, "run", *LONG, *OFTEN)
    wait_for(lambda: checkpoint_steps(tmp_path), first)
    second, third = (start(tmp_path, "run", *LONG, *OFTEN) for _ in range(2))
    time.sleep(4)
    os.killpg(third.pid, signal.SIGKILL)
    third.communicate()
    (code, _, err), (other, out, also) = finish(first), finish(second)
    assert (code, other) == (0, 0), err + also
    assert "is being trained by process" in out
    assert run(tmp_path, "verify", "runs")[:2] == (0, "4 runs: all files are as written\n")


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount; a write that fails is simulated elsewhere")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk(small_disk):
    many = ["model=classical", "seed=[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]", "steps=4", *RUNS[3:]]
    code, out, err = run(small_disk, "run", *many, "--workers", "1")
    assert code == 1, err
    assert f"{Path('runs')}/" in out
    assert "cannot be written: No space left on device" in out
    assert "kB are needed" in out
    assert run(small_disk, "verify", "runs")[0] == 0
    subprocess.run(["mount", "-o", "remount,size=50m", small_disk], check=True)
    code, out, err = run(small_disk, "run", *many, "--workers", "1")
    assert code == 0, err
    assert "16 of 16 runs" in out
    assert run(small_disk, "verify", "runs")[0] == 0
    assert not hidden(small_disk)
