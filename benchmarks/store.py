"""Time and memory of `list`, `verify`, resuming, `report` and the table for a store of many runs.

    python benchmarks/store.py [--runs 1000 10000]

Each is measured in a process of its own, as a user would start it. The runs are saved by the store itself, with a curve
of the usual length; they are not trained.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from measure import write_table
from tpr_attention.runner.store import Store
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.spec import RunSpec

CALLS = {
    "list": "from tpr_attention.cli import main; main(['list', '--store', {store!r}])",
    "verify": "from tpr_attention.cli import main; main(['verify', {store!r}])",
    "resume (nothing to do)": (
        "from tpr_attention.cli import main; seeds = 'seed=' + str(list(range({runs})));"
        "main(['run', 'model=linear', 'steps=8', seeds, '--store', {store!r}, '--dry-run'])"
    ),
    "runs.parquet": (
        "from tpr_attention.runner.store import Store; from tpr_attention.runner.tables import write_table;"
        " write_table(Store({store!r}))"
    ),
    "report": "from tpr_attention.cli import main; main(['report', '--store', {store!r}, '--report', {report!r}])",
}
METRICS = ("loss", "shape", "scale", "orientation", "position", "colour")
CONDITIONS = ("train", "in_distribution", "ood_reference", "ood_transform", "ood_composition")
NAMES = {"conditions": CONDITIONS, "metrics": METRICS, "groups": {}, "axes": {}}


def fill(path: Path, runs: int) -> None:
    """Save made-up runs."""
    store, rng = Store(path, create=True), np.random.default_rng(0)
    weights = {"weight": rng.normal(size=(20, 15)).astype(np.float32)}
    steps = [0, *(2**k for k in range(14)), *range(500, 10_001, 500)]
    for seed in track(range(runs), description=f"{runs:,} runs", console=Console(stderr=True)):
        points = [
            Point("", step, condition, None, tuple(rng.random(1 if condition == "train" else len(METRICS)).tolist()))
            for step in sorted(steps)
            for condition in CONDITIONS
        ]
        spec = RunSpec.of({"model": "linear", "steps": 8, "seed": seed})
        store.save(spec, curve(points, METRICS), weights, {"seconds": 1.0, "parameters": 300}, NAMES)


def measured(code: str) -> tuple[float, float]:
    """Seconds and peak megabytes of a program, which writes its memory at its end (Linux only)."""
    start = time.perf_counter()
    code += "\nimport sys; sys.stderr.write('\\n' + open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    (peak,) = re.findall(r"^VmHWM:\s*(\d+) kB$", done.stderr, re.MULTILINE)
    return seconds, int(peak) / 1e3


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=int, nargs=2, default=[1_000, 10_000], help="a small and a large store")
    arguments.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    arguments.add_argument("--folder", type=Path, help="where stores are made and kept, to measure them again")
    options = arguments.parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in CALLS}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        stores = {runs: folder / str(runs) for runs in options.runs}
        for runs, store in stores.items():
            if not store.exists():
                fill(store, runs)
        for runs, store in stores.items():
            for name, code in CALLS.items():
                names = {"store": str(store), "report": str(store) + "-report", "runs": runs}
                found[name].append(measured(code.format(**names)))
    few, many = options.runs
    rows = [
        [name, f"{a[0]:.1f}", f"{b[0]:.1f}", f"{b[0] / a[0]:.1f}", f"{a[1]:.0f}", f"{b[1]:.0f}", f"{b[1] / a[1]:.1f}"]
        for name, (a, b) in found.items()
    ]
    columns = ["what", f"s, {few:,}", f"s, {many:,}", "ratio", f"MB, {few:,}", f"MB, {many:,}", "ratio"]
    page = write_table(
        options.out / "store.md",
        "A store of many runs",
        f"{few:,} and {many:,} stored runs of {len(CONDITIONS) * 35} points. Seconds and peak megabytes of each, with "
        "the start of Python, one after the other; the ratios tell how both grow.",
        columns,
        rows,
    )
    Console().print(page)


if __name__ == "__main__":
    main()
