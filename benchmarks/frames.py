"""How fast images are drawn: frames a second on one core with colour, against copies out of a bank of stored frames.

    python benchmarks/frames.py [--count 96] [--rounds 200] [--out benchmarks/results]

Both make batches of random objects as `float32`. A bank of all frames of nine angles has 680 MB as bytes, and would
have to be drawn first; here it has 20,000 of them. Writes a table.
"""

import argparse
from pathlib import Path

import torch

from measure import shortest, write_table
from tpr_attention.tasks.images.frames import coloured_grid, draw_frames

STORED = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=96, help="frames in a batch")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    grid, generator = coloured_grid(9), torch.Generator().manual_seed(0)
    numbers = torch.randint(len(grid), (STORED,), generator=generator)
    bank = torch.cat([draw_frames(grid.rows(part), torch.uint8) for part in numbers.split(1_000)])

    def drawn() -> None:
        draw_frames(grid.rows(numbers[torch.randint(STORED, (asked.count,), generator=generator)]))

    def copied() -> None:
        bank[torch.randint(STORED, (asked.count,), generator=generator)].float()

    first, second = shortest({"drawn": drawn, "copied": copied}, rounds=asked.rounds, budget=20.0).values()
    said = (
        f"batches of {asked.count} random frames of nine angles with colour, as `float32`. "
        f"The bank has {STORED:,} of them as bytes."
    )
    columns = "frames a second, drawn", "copied from a bank", "drawn / copied, time"
    row = f"{asked.count / first:,.0f}", f"{asked.count / second:,.0f}", f"{first / second:.1f}"
    print(write_table(asked.out / "frames.md", "Drawing frames", said, columns, [row]))


if __name__ == "__main__":
    main()
