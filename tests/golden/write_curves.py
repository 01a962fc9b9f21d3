"""Write the golden curves anew: `python -m tests.golden.write_curves`.

A change that moves them says so in the changelog.
"""

import csv
from pathlib import Path

import torch

from tpr_attention.experiments.points import Point
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.train import train
from tpr_attention.models import MODELS

CURVES = Path(__file__).parent / "curves.csv"
COLUMNS = ("model", "condition", "step", "loss")


def curves(model):
    """Fifty steps in float64, with an interaction, at a few steps: (condition, step) to the mean loss over roles."""
    spec = RunSpec(model=model, steps=50, train_pairs=1000, eval_pairs=100, interaction="scale_pos", split="scale_pos")
    points = (event for event in train([spec], compiled=False, dtype=torch.float64) if isinstance(event, Point))
    return {
        (p.condition, p.step): sum(p.losses) / len(p.losses)
        for p in points
        if p.step in (0, 16, 50) and p.action is None
    }


if __name__ == "__main__":
    with CURVES.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for name in MODELS:
            rows.writerows([name, *key, f"{loss:.10e}"] for key, loss in curves(name).items())
