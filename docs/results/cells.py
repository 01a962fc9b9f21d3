"""Measure the main model of images with many pairs a test: `python docs/results/cells.py STORE FOLDER [SEED ...]`.

The model on the union of the splits answers as it reads, and with codes that are verified by drawing them. The table of
a seed is `FOLDER/SEED.csv`; seeds that have one are left out.

Held-out answers have other shapes and scales than known ones, and larger objects have longer outlines. So known answers
are weighted: each shape at each scale has the share that it has among the held-out ones.
"""

import sys
from pathlib import Path

import polars as pl
import torch

from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.runner.store import Store
from tpr_attention.studies.images.contestants import FIRST_SEED, MAIN, series_of
from tpr_attention.studies.study import Setup
from tpr_attention.tasks.composition.factors import substitute
from tpr_attention.tasks.images.metrics import measure_factors, measure_images
from tpr_attention.training.prepare import make_task

PAIRS, PART = 10_000, 500
WAYS = {"as read": {}, "verified": {"verify": True}}


def measured(models, task, condition, seed):
    """Of each answer of each model: content, wrong pixels, whether it is exact, whether its factors are right."""
    generator, parts = named_generator(seed, f"many pairs of {condition}"), {name: [] for name in models}
    for _ in range(PAIRS // PART):
        examples = task.draw_examples(condition, PART, generator)
        first, second, action = examples.T[:3]
        truth = substitute(task.grid.rows(first), task.grid.rows(second), action)
        batch = task.batch(examples, torch.float32)
        content = truth.column("shape").long() * len(task.grid.columns[1].values) + truth.column("scale").long()
        for name, model in models.items():
            with torch.no_grad():
                output = model(*batch.inputs)
            found = measure_images(output, batch.target)
            factors = found["exact"].clone()  # an exact answer has all factors
            wrong = factors == 0
            if wrong.any():
                factors[wrong] = measure_factors(output[wrong], batch.target[wrong], task.grid, task.warped)["factors"]
            parts[name].append(torch.stack([content.float(), found["wrong_pixels"], found["exact"], factors], 1))
    return {name: torch.cat(of_model) for name, of_model in parts.items()}


def matched(known, new):
    """The mean of wrong pixels of known answers, each content weighted by its share among new ones."""
    means = {float(content): known[known[:, 0] == content, 1].mean() for content in known[:, 0].unique()}
    return float(torch.stack([means[float(content)] for content in new[:, 0]]).mean())


def table_of(store, spec):
    """A row for each test and way to read codes."""
    task = make_task(spec.task, spec.seed)
    weights = {name: torch.from_numpy(array) for name, array in store.weights(spec.digest).items()}
    models = {}
    for name, way in WAYS.items():
        models[name] = build(spec.model.name, task, spec.seed, **spec.model.options | way).eval()
        models[name].load_state_dict(weights)
    known = measured(models, task, "in_distribution", spec.seed)
    rows = []
    for condition in task.conditions:
        is_known = condition == "in_distribution"
        for name, new in (known if is_known else measured(models, task, condition, spec.seed)).items():
            wrong_pixels, exact, factors = new[:, 1:].mean(0).tolist()
            same = matched(known[name], new)
            rows.append((spec.seed, condition, name, PAIRS, exact, factors, wrong_pixels, same))
    columns = "seed", "test", "codes", "pairs", "exact", "factors", "wrong_pixels", "wrong_pixels_of_known"
    return pl.DataFrame(rows, columns, orient="row")


if __name__ == "__main__":
    torch.set_num_threads(1)
    found, folder, wanted = Store(sys.argv[1]), Path(sys.argv[2]), [*map(int, sys.argv[3:])]
    folder.mkdir(exist_ok=True)
    for run in series_of({"union": MAIN["union"]}, Setup(first_seed=FIRST_SEED))["union"].specs:
        path = folder / f"{run.seed}.csv"
        if run.seed in (wanted or [run.seed]) and not path.exists():
            table_of(found, run).write_csv(path, float_precision=6)
