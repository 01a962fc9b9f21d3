"""Speed of executors: the same sweep in one process, in several, in shards and on Ray; and a layer under DDP.

    python benchmarks/executors.py [--out benchmarks/results]

The sweep runs through the command line, each time into a new store; starting and ending Ray is included. DDP splits one
batch between two processes of one thread. All figures are ratios within one run of this script.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track

from measure import write_table

COMMAND = str(Path(sys.executable).parent / "tpr-attention")
SWEEP = ["model=[tpr,resnet]", "seed=[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]", "steps=3000"]
WAYS = {
    "one process": [["--workers", "1"]],
    "two processes": [["--workers", "2"]],
    "two shards of one process, at once": [["--workers", "1", "--shard", f"{part}/2"] for part in (1, 2)],
    "Ray on this machine, two workers": [["--workers", "2", "--executor", "ray"]],
}
STEP = """
import time, torch
from torch.nn.parallel import DistributedDataParallel
from tpr_attention.nn import TPRAttention
torch.distributed.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)
size, share = {batch}, torch.distributed.get_world_size()
layer = DistributedDataParallel(TPRAttention(num_roles=8, filler_dim=16, num_heads=4))
optimiser = torch.optim.Adam(layer.parameters())
objects = torch.randn(size // share, 64, 8, 16)
for step in range(25):
    if step == 5:
        start = time.perf_counter()
    loss = layer(objects).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
if torch.distributed.get_rank() == 0:
    print((time.perf_counter() - start) / 20)
torch.distributed.destroy_process_group()
"""


def sweep(ways: list[list[str]]) -> float:
    """Seconds for all runs."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        calls = [
            subprocess.Popen([COMMAND, "run", *SWEEP, "--store", folder + "/runs", *way], stdout=subprocess.DEVNULL)
            for way in ways
        ]
        if any(call.wait() for call in calls):
            raise RuntimeError(f"failed: {ways}")
        return time.perf_counter() - start


def distributed(batch: int, processes: int) -> float:
    """Seconds of a step."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "step.py"
        script.write_text(STEP.replace("{batch}", str(batch)))
        call = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", script]
        return float(subprocess.run(call, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = arguments.parse_args()
    console = Console(stderr=True)
    seconds = {name: sweep(ways) for name, ways in track(WAYS.items(), description="sweeps", console=console)}
    one = seconds["one process"]
    rows = [[f"40 runs of 3,000 steps: {name}", f"{one / time:.2f}"] for name, time in seconds.items()]
    for batch in track((4, 32, 256), description="DDP", console=console):
        alone, both = (min(distributed(batch, processes) for _ in range(3)) for processes in (1, 2))
        rows.append(
            [f"DDP, a step of {batch} sequences of 64 objects, 8 x 16, 4 heads: two processes", f"{alone / both:.2f}"]
        )
    page = write_table(
        options.out / "executors.md",
        "Leaving one process",
        "times as fast as one process; two cores.",
        ["what", "times as fast"],
        rows,
    )
    Console().print(page)


if __name__ == "__main__":
    main()
