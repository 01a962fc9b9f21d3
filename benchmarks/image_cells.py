"""Every test of stored image models with many pairs: exactness, factors, and wrong pixels on the same contents.

Held-out answers have other shapes and scales than known ones, and larger objects have longer outlines. So known answers
are weighted: each shape at each scale has the share that it has among the held-out ones. Models with a clean-up are
measured as they are, with codes that are verified by drawing them, and without codes.

    python benchmarks/image_cells.py STORE DIGEST [DIGEST ...] [--count 10000]
"""

import argparse

import torch

from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.runner.store import Store
from tpr_attention.tasks.images.metrics import measure_factors
from tpr_attention.tasks.images.reading import read_frames
from tpr_attention.training.prepare import make_task

PART = 500
NAMES = "wrong_pixels", "exact", "iou"
COLUMNS = "run", "test", "codes", "exact", "factors right", "IoU", "wrong pixels", "known, same contents", "ratio"


def measured(models, task, condition, count, seed):
    """Content, the metrics of `NAMES`, and whether all factors are right, of each answer of each model."""
    generator, parts = named_generator(seed, f"matched/{condition}"), {name: [] for name in models}
    for _ in range(count // PART):
        batch = task.draw(condition, PART, generator, torch.float32)
        truth = read_frames(batch.target, task.grid).factors
        content = truth.column("shape").long() * len(task.grid.columns[1].values) + truth.column("scale").long()
        for name, model in models.items():
            with torch.no_grad():
                output = model(*batch.inputs)
            found = task.measure(output, batch)
            factors = measure_factors(output, batch.target, task.grid, task.warped)["factors"]
            parts[name].append(torch.stack([content.float(), *(found[name] for name in NAMES), factors], 1))
    return {name: torch.cat(of_model) for name, of_model in parts.items()}


def matched(known, new):
    """The mean of known values, each content weighted by its share among new ones."""
    contents = known[:, 0].unique()
    means = {float(content): known[known[:, 0] == content, 1].mean() for content in contents}
    return float(torch.stack([means[float(content)] for content in new[:, 0]]).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("digests", nargs="+")
    parser.add_argument("--count", type=int, default=10_000)
    asked = parser.parse_args()
    store = Store(asked.store)
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    for digest in map(store.find, asked.digests):
        spec = store.check(digest)
        task = make_task(spec.task, spec.seed)
        weights = {name: torch.from_numpy(array) for name, array in store.weights(digest).items()}
        ways = {"as read": {}}
        if spec.model.options.get("clean_up"):
            ways |= {"verified": {"verify": True}, "none": {}}
        models = {
            name: build(spec.model.name, task, spec.seed, **spec.model.options | way).eval()
            for name, way in ways.items()
        }
        for model in models.values():
            model.load_state_dict(weights)
        if "none" in models:
            models["none"].memory.is_used.fill_(False)
        known = measured(models, task, "in_distribution", asked.count, spec.seed)
        for condition in task.conditions:
            for name, new in measured(models, task, condition, asked.count, spec.seed).items():
                wrong, expected = float(new[:, 1].mean()), matched(known[name], new)
                exact, factors = (f"{100 * float(new[:, column].mean()):.2f} %" for column in (2, 4))
                pixels = f"{float(new[:, 3].mean()):.4f}", f"{wrong:.4f}", f"{expected:.4f}"
                ratio = f"{wrong / expected:.2f}" if expected else "-"
                print("| " + " | ".join((digest, condition, name, exact, factors, *pixels, ratio)) + " |", flush=True)


if __name__ == "__main__":
    main()
