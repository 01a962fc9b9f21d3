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
from tpr_attention.tasks.task import Batch
from tpr_attention.training.prepare import Prepared, prepare
from tpr_attention.training.spec import RunSpec, Training
from tpr_attention.training.stack import Stack

CASES = (("tpr", {"num_heads": 4}), ("tpr", {"num_heads": 8}), ("classical", {"num_heads": 4}))
CASES += (("classical", {"num_heads": 8}), ("resnet", {}))
WANTED = {"tpr": 30, "classical": 8, "resnet": 8}  # times as fast


def usual(run: Prepared, steps: int) -> Callable[[], None]:
    """So many steps of the usual loop."""
    assert isinstance(run.pool, Batch)
    data = TensorDataset(*(tensor.flatten(0, 1) for tensor in (*run.pool.inputs, run.pool.target)))
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(data, batch_size=run.spec.training.batch_size, shuffle=True, generator=generator)
    optimiser = torch.optim.Adam(run.model.parameters(), lr=run.spec.training.learning_rate)

    def call() -> None:
        for *inputs, target in islice(loader, steps):
            optimiser.zero_grad()
            loss = (run.model(*inputs) - target).square().mean()
            loss.backward()
            optimiser.step()

    return call


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--together", type=int, default=15, help="how many runs are stacked")
    arguments.add_argument("--steps", type=int, default=100, help="steps in one call")
    arguments.add_argument("--rounds", type=int, default=5, help="how often each takes its turn")
    arguments.add_argument("--examples", type=int, default=50_000, help="examples of a run")
    arguments.add_argument("--uncompiled", action="store_true", help="leave compilation out")
    arguments.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = arguments.parse_args()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()  # what was compiled before must not count
    torch.set_num_threads(options.threads)
    rows = []
    for model, fields in track(CASES, description="models", console=Console(stderr=True)):
        spec = RunSpec.of({"model": model, **fields, "steps": 10**6, "train_examples": options.examples})
        runs = [prepare(spec.with_seed(seed)) for seed in range(options.together)]
        stack, alone = Stack(runs, compiled=not options.uncompiled), usual(prepare(spec), options.steps)
        start = time.perf_counter()
        stack.advance(0, 1)
        compilation = time.perf_counter() - start
        calls = {"usual": alone, "stacked": lambda: stack.advance(1, 1 + options.steps)}  # noqa: B023
        seconds = shortest(calls, rounds=options.rounds, budget=30.0)
        usually = seconds["usual"] / options.steps * 1e6
        ours = seconds["stacked"] / options.steps / options.together * 1e6
        name = f"{model}, {fields['num_heads']} heads" if fields else model
        measured = f"{usually:,.0f}", f"{ours:,.0f}", f"{usually / ours:.0f}"
        rows.append([name, *measured, f"{WANTED[model]}", f"{compilation:.0f}"])
    page = write_table(
        options.out / f"training-threads{options.threads}.md",
        "Training",
        f"batches of {Training().batch_size} pairs, {options.together} runs stacked. Microseconds of a step of one "
        "model, how many times as long the usual loop takes, how many times were wanted, and the seconds that "
        "compilation took once.",
        ["model", "usual", "stacked", "usual / stacked", "wanted", "compilation (s)"],
        rows,
    )
    Console().print(page)


if __name__ == "__main__":
    main()
