"""The layers under torchrun."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch

from tests.nn.distributed_training import WAYS
from tests.nn.test_torch_citizens import LAYERS

OLD = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7)


def test_two_processes_with_half_the_batch_learn_what_one_learns_with_all_of_it():
    ways = [way for way in WAYS if not (OLD and way == "sharded")]  # FSDP2 on CPUs fails in torch 2.6
    loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
    run = subprocess.run(
        [*torchrun, "--nproc-per-node=2", "-m", "tests.nn.distributed_training", *ways],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": loopback},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines() == [f"{name} {way}" for way in ways for name in LAYERS]
