"""Commands that are killed, stopped, started twice or run out of space go on as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tpr_attention.runner.store import Store

COMMAND = str(Path(sys.executable).parent / "tpr-attention")
RUNS = ["model=[tpr,resnet]", "seed=[0,1]", "steps=2500", "train_examples=500", "test_examples=50", "batch_size=50"]
LONG = [key.replace("2500", "6000") for key in RUNS]
OFTEN = ["--workers", "1", "--checkpoint-seconds", "0"]
RARELY = ["--checkpoint-steps", "100", "--checkpoint-seconds", "999"]


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


def hidden(folder):
    return [path for path in (folder / "runs").rglob(".*") if path.is_file()]


def faults(folder):
    """What `verify` would find in the store."""
    return list(Store(folder / "runs").faults())


def children(process):
    found = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def test_stopped_and_killed_in_turn_it_ends_with_the_same_bits(tmp_path):
    """Asked to stop it saves and says how to go on; killed it goes on from what it saved; a dead worker is replaced."""
    whole, folder = tmp_path / "undisturbed", tmp_path / "disturbed"
    whole.mkdir()
    folder.mkdir()
    code, _, err = run(whole, "run", *RUNS, "--workers", "1")
    assert code == 0, err

    def started():
        """The command, after the first step that it saved itself, and that step."""
        before = set(checkpoint_steps(folder))
        process = start(folder, "run", *RUNS, "--workers", "1", *RARELY)
        wait_for(lambda: set(checkpoint_steps(folder)) - before, process)
        return process, max(checkpoint_steps(folder))

    for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process, seen = started()
        process.send_signal(number)
        code, _, err = finish(process)
        assert code == expected, err
        assert "what was begun is saved; the same command goes on from there" in err
        assert "Traceback" not in err
        assert max(checkpoint_steps(folder)) >= seen
    draw = random.Random(0)
    for _ in range(2):
        process, _ = started()
        time.sleep(draw.random() * 0.3)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    stored = [path for path in (folder / "runs").iterdir() if path.is_dir() and path.name[0] != "."]
    assert len(stored) < 4, "it finished before it was killed often enough"
    process, _ = started()
    os.kill(children(process)[0], signal.SIGKILL)
    code, out, err = finish(process)
    assert code == 0, err
    assert "waiting: the process that trained it ended with code -9; it is started again" in out
    assert contents(folder) == contents(whole)
    assert faults(folder) == []


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
    assert (len(list(Store(tmp_path / "runs"))), faults(tmp_path)) == (4, [])


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
    assert faults(small_disk) == []
    subprocess.run(["mount", "-o", "remount,size=50m", small_disk], check=True)
    code, out, err = run(small_disk, "run", *many, "--workers", "1")
    assert code == 0, err
    assert "16 of 16 runs" in out
    assert faults(small_disk) == []
    assert not hidden(small_disk)
