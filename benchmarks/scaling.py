"""How the time of a training step and the parameters grow with the world: factors and the size of fillers.

    python benchmarks/scaling.py [--threads 1] [--out benchmarks/results]

The three models of the study `scaling` take turns on the smallest and on every larger world, in one process. Steps are
not compiled. Writes a table of ratios.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

from measure import shortest, write_table
from tpr_attention.experiments.growth import GROWN, SIZES, SMALL
from tpr_attention.experiments.prepare import prepare
from tpr_attention.experiments.program import Program
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.models import parameter_count

STEPS = 20


def step(spec: RunSpec) -> tuple[Callable[[], object], int]:
    """A few steps of a run, and how many parameters it has."""
    run = prepare(replace(spec, train_pairs=1_000, eval_pairs=10))
    program = Program([run], compiled=False)
    return lambda: program.advance(0, STEPS), parameter_count(run.model)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    worlds = [(field, size) for field in ("factors", "filler_dim") for size in SIZES[field][1]]
    for field, size in track(worlds, description="worlds", console=Console(stderr=True)):
        row = [SIZES[field][0], f"{size:g}"]
        for label, fields in GROWN.items():
            small = replace(SMALL, model=label, options=fields)
            (first, before), (second, after) = step(small), step(replace(small, **{field: size}))
            seconds = shortest({"small": first, "large": second}, rounds=5, budget=10.0)
            row += [f"{seconds['large'] / seconds['small']:.1f}", f"{after / before:.1f}"]
        rows.append(row)
    page = write_table(
        options.out / f"scaling-threads{options.threads}.md",
        "Larger worlds",
        f"batches of {SMALL.batch} pairs. Times as long as a step in the smallest world (5 factors, fillers of 3 "
        "numbers), and times as many parameters.",
        ["what grows", "size", *(f"{label}: {word}" for label in GROWN for word in ("time", "parameters"))],
        rows,
    )
    Console().print(page)


if __name__ == "__main__":
    main()
