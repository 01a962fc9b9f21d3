"""Pairs a second: drawing and encoding of the composition task, and two other ways to write it.

    python benchmarks/pairs.py [--pairs 100000] [--threads 1] [--out benchmarks/results]

All ways take turns in one process. `rejection` draws uniformly on tensors and keeps what the condition allows; `row by
row` is the loop that a data set with `__getitem__` amounts to. Writes a table.
"""

import argparse
import random
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

from measure import shortest, write_table
from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition.factors import substitute
from tpr_attention.tasks.composition.pairs import CONDITIONS, Pairs
from tpr_attention.tasks.composition.task import Composition, dsprites_composition


def rejection(task: Composition, condition: str, count: int, generator: torch.Generator) -> Pairs:
    """Draw more than are needed, keep what is allowed, until there are enough; all actions at the same time."""
    wanted, held_out = task.pairing.conditions[condition], task.pairing.held_out
    found: list[Pairs] = []
    while sum(map(len, found)) < count:
        reference, transform = (task.grid.sample(count, generator) for _ in range(2))
        action = torch.randint(task.num_actions, (count,), generator=generator)
        target = substitute(reference, transform, action)
        keep = torch.ones(count, dtype=torch.bool)
        for factors, where in ((reference, wanted.reference), (transform, wanted.transform), (target, wanted.target)):
            keep &= torch.ones_like(keep) if where is None else held_out(factors) == where
        rows = keep.nonzero().flatten()
        found.append(Pairs(reference[rows], transform[rows], action[rows]))
    return found[-1]  # to join them would cost a little more


def row_by_row(task: Composition, condition: str, count: int, draw: random.Random) -> list[list[torch.Tensor]]:
    """One pair after another, from Python's random numbers to a tensor."""
    wanted, held_out = task.pairing.conditions[condition], task.pairing.held_out
    sizes, names, actions = task.grid.sizes, task.grid.names, list(task.grid.actions.values())
    table, read = held_out.table.tolist(), [names.index(name) for name in held_out.names]

    def held(row: list[int]) -> bool:
        return table[row[read[0]]][row[read[1]]]

    rows = []
    while len(rows) < count:
        reference, transform = ([draw.randrange(size) for size in sizes] for _ in range(2))
        acted = actions[draw.randrange(len(actions))]
        target = [t if name in acted else r for name, r, t in zip(names, reference, transform, strict=True)]
        asked = ((reference, wanted.reference), (transform, wanted.transform), (target, wanted.target))
        if all(where is None or held(row) == where for row, where in asked):
            rows.append([torch.tensor(row) for row in (reference, transform, target)])
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pairs", type=int, default=100_000, help="pairs in one call")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    few, rows = max(1, options.pairs // 500), []
    for condition in track(CONDITIONS, description="conditions", console=Console(stderr=True)):
        task, generator, python = dsprites_composition("square_red"), named_generator(0, "benchmark"), random.Random(0)
        calls = {
            "draw and encode": lambda: task.draw(condition, options.pairs, generator),  # noqa: B023
            "draw": lambda: task.pairing.draw(condition, options.pairs, generator),  # noqa: B023
            "rejection": lambda: rejection(task, condition, options.pairs, generator),  # noqa: B023
            "row by row": lambda: row_by_row(task, condition, few, python),  # noqa: B023
        }
        seconds = shortest(calls, rounds=5, budget=10.0)
        seconds["row by row"] *= options.pairs / few
        ours, encoded = seconds["draw"], seconds["draw and encode"]
        rates = f"{options.pairs / encoded / 1e6:.1f}", f"{options.pairs / ours / 1e6:.1f}"
        rows.append([condition, *rates, f"{seconds['rejection'] / ours:.1f}", f"{seconds['row by row'] / ours:,.0f}"])
    page = write_table(
        options.out / f"pairs-threads{options.threads}.md",
        "Drawing pairs",
        f"split `square_red`, {options.pairs:,} pairs a call. Millions of pairs a second, and how many times as long "
        "other ways take to draw as many.",
        ["condition", "draw and encode (M/s)", "draw (M/s)", "rejection / draw", "row by row / draw"],
        rows,
    )
    Console().print(page)


if __name__ == "__main__":
    main()
