"""Write the golden curves anew: `python -m tests.golden.write_curves`.

A change that moves them says so in the changelog.
"""

import csv
from pathlib import Path

import torch

from tests.models.images.cases import images
from tests.models.recall.cases import recall
from tpr_attention.models import MODELS
from tpr_attention.training.points import Point
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.train import train

CURVES = Path(__file__).parent / "curves.csv"
COLUMNS = ("model", "condition", "step", "loss")


def _recall(model):
    case = recall(model)
    task = {f"task.{key}": value for key, value in case.task_options.items()}
    options = {f"model.{key}": value for key, value in case.options.items()}
    return {"task": case.task, **task, **options, "training.batch_size": 8, "training.learning_rate": 0.001}


def _images(model):
    """With the task of the conformance tests, in small batches."""
    case = images(model)
    task = {f"task.{key}": value for key, value in case.task_options.items()}
    small = {"training.batch_size": 4, "training.train_examples": 200, "training.test_examples": 12, "task.angles": 9}
    return {"task": case.task, **task, **small, "training.learning_rate": 0.001}


TASKS = {
    "composition": lambda model: {"task": "composition", "split": "scale_pos", "interaction": "scale_pos"},
    "recall": _recall,
    "images": _images,
}
"""For each folder of `models`, what a model is trained with."""


def curves(model):
    """Fifty steps in float64, at a few steps: (condition, step) to the loss."""
    training = {"training.steps": 50, "training.train_examples": 1000, "training.test_examples": 100}
    spec = RunSpec.of({"model": model, **training, **TASKS[MODELS[model].split(".")[2]](model)})
    points = (event for event in train([spec], compiled=False, dtype=torch.float64) if isinstance(event, Point))
    return {
        (point.condition, point.step): point.values[0]
        for point in points
        if point.step in (0, 16, 50) and point.group is None
    }


if __name__ == "__main__":
    with CURVES.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for name in MODELS:
            rows.writerows([name, *key, f"{loss:.10e}"] for key, loss in curves(name).items())
