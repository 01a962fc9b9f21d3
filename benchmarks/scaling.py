"""How the time of a training step and the parameters grow with the world: factors and the size of fillers.

    python benchmarks/scaling.py [--threads 1] [--out benchmarks/results]

The three models of the study `scaling` take turns on the smallest and on every larger world, in one process. Steps are
not compiled. Writes a table of ratios.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

from measure import shortest, write_table
from tpr_attention.models.contract import parameter_count
from tpr_attention.studies.contestants import PAPER
from tpr_attention.studies.scaling import GROWTHS, OPTIONS
from tpr_attention.training.prepare import prepare
from tpr_attention.training.spec import RunSpec, Training
from tpr_attention.training.stack import Stack

STEPS = 20
GROWN = ("factors", "filler_dim")
WORLD = {"task": "random-composition", "train_examples": 1_000, "test_examples": 10}


def step(spec: RunSpec) -> tuple[Callable[[], object], int]:
    """A few steps of a run, and how many parameters it has."""
    run = prepare(spec)
    stack = Stack([run], compiled=False)
    return lambda: stack.advance(0, STEPS), parameter_count(run.model)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=5, help="how often each takes its turn")
    arguments.add_argument("--worlds", type=int, default=None, help="only the first few")
    arguments.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    worlds = [(option, size) for option in GROWN for size in GROWTHS[option].sizes]
    for option, size in track(worlds[: options.worlds], description="worlds", console=Console(stderr=True)):
        row = [GROWTHS[option].words, f"{size:g}"]
        for name in PAPER:
            small = RunSpec.of({**WORLD, "model": name, **OPTIONS[name]})
            (first, before), (second, after) = step(small), step(small.changed({f"task.{option}": size}))
            seconds = shortest({"small": first, "large": second}, rounds=options.rounds, budget=10.0)
            row += [f"{seconds['large'] / seconds['small']:.1f}", f"{after / before:.1f}"]
        rows.append(row)
    page = write_table(
        options.out / f"scaling-threads{options.threads}.md",
        "Larger worlds",
        f"batches of {Training().batch_size} pairs. Times as long as a step in the smallest world (5 factors, fillers "
        "of 3 numbers), and times as many parameters.",
        ["what grows", "size", *(f"{name}: {word}" for name in PAPER for word in ("time", "parameters"))],
        rows,
    )
    Console().print(page)


if __name__ == "__main__":
    main()
