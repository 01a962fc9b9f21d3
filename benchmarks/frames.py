"""How fast images are drawn: frames a second on one core with colour, against copies out of a bank of stored frames.

    python benchmarks/frames.py [--count 96] [--rounds 200]

Both make batches of random objects as `float32`. A bank of all frames of nine angles has 680 MB as bytes, and would
have to be drawn first; here it has 20,000 of them.
"""

import argparse

import torch

from measure import shortest
from tpr_attention.tasks.images.frames import coloured_grid, draw_frames

STORED = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=96, help="frames in a batch")
    parser.add_argument("--rounds", type=int, default=200)
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
    print("| frames a second, drawn | copied from a bank | drawn / copied, time |\n|---|---|---|")
    print(f"| {asked.count / first:,.0f} | {asked.count / second:,.0f} | {first / second:.1f} |")


if __name__ == "__main__":
    main()
