"""Time of a training step: many runs stacked, against the loop that a research repository usually has.

    python benchmarks/training.py [--threads 1] [--out benchmarks/results]

The usual loop has one model, a `DataLoader` over a `TensorDataset`, and `torch.optim.Adam`. Both take turns in one
process, on the same pairs; compilation is counted apart. Writes a table.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from torch.utils.data import DataLoader, TensorDataset

from measure import shortest, write_table
from tpr_attention.experiments.prepare import Prepared, prepare
from tpr_attention.experiments.program import Program
from tpr_attention.experiments.spec import RunSpec

TOGETHER = 15
CASES = (("tpr", {"num_heads": 4}), ("tpr", {"num_heads": 8}), ("classical", {"num_heads": 4}))
CASES += (("classical", {"num_heads": 8}), ("resnet", {}))
WANTED = {"tpr": 30, "classical": 8, "resnet": 8}  # times as fast


def usual(run: Prepared, steps: int) -> Callable[[], None]:
    """So many steps of the usual loop."""
    data = TensorDataset(*(tensor.flatten(0, 1) for tensor in run.pool))
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(data, batch_size=run.spec.batch, shuffle=True, generator=generator)
    optimiser = torch.optim.Adam(run.model.parameters(), lr=run.spec.learning_rate)

    def call() -> None:
        for reference, transform, action, target in islice(loader, steps):
            optimiser.zero_grad()
            loss = (run.model(reference, transform, action) - target).square().mean()
            loss.backward()
            optimiser.step()

    return call


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--steps", type=int, default=100, help="steps in one call")
    arguments.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = arguments.parse_args()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()  # what was compiled before must not count
    torch.set_num_threads(options.threads)
    rows = []
    for model, fields in track(CASES, description="models", console=Console(stderr=True)):
        specs = [RunSpec(model=model, options=fields, seed=seed, steps=10**6) for seed in range(TOGETHER)]
        runs = [prepare(spec) for spec in specs]
        program, alone = Program(runs, compiled=True), usual(prepare(specs[0]), options.steps)
        start = time.perf_counter()
        program.advance(0, 1)
        compilation = time.perf_counter() - start
        calls = {"usual": alone, "stacked": lambda: program.advance(1, 1 + options.steps)}  # noqa: B023
        seconds = shortest(calls, rounds=5, budget=30.0)
        usually = seconds["usual"] / options.steps * 1e6
        ours = seconds["stacked"] / options.steps / TOGETHER * 1e6
        name = f"{model}, {fields['num_heads']} heads" if fields else model
        measured = f"{usually:,.0f}", f"{ours:,.0f}", f"{usually / ours:.0f}"
        rows.append([name, *measured, f"{WANTED[model]}", f"{compilation:.0f}"])
    page = write_table(
        options.out / f"training-threads{options.threads}.md",
        "Training",
        f"batches of {RunSpec().batch} pairs, {TOGETHER} runs stacked. Microseconds of a step of one model, how many "
        "times as long the usual loop takes, how many times were wanted, and the seconds that compilation took once.",
        ["model", "usual", "stacked", "usual / stacked", "wanted", "compilation (s)"],
        rows,
    )
    Console().print(page)


if __name__ == "__main__":
    main()
