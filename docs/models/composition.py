"""Train and write the models that the explorer shows in the documentation: `python docs/models/composition.py STORE`.

They are runs of the study `data`, with its first seed. What the store has already is not trained again. The smallest
are stored as they are. Others are stored with 16 bits, which halves the files and changes no loss by more than 1e-7 or
a hundredth of it, or the script fails.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.runner.executors import ExecutorSettings, make_executor
from tpr_attention.runner.run import run
from tpr_attention.runner.store import Store
from tpr_attention.studies.data.specs import FIRST_SEED, MODELS, MOST_STEPS, data_spec
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import RunSpec

CELLS = (
    ("square_red", None, (100, 50_000)),
    ("square_red", "shape_col", (50_000,)),
    ("square_pos", "scale_pos", (100, 50_000)),
)
"""Splits and interactions, with the numbers of training pairs."""
FOR_INTERACTIONS = "tpr-stack"
"""A model that is shown where factors interact."""
SMALL, MOST_CHANGE, EXAMPLES = 1000, 1e-7, 1000

Weights = Mapping[str, np.ndarray]


def specs() -> dict[str, RunSpec]:
    """All runs by the names of their files."""
    return {
        f"{split}-{interaction or 'none'}-{size}-{name}": data_spec(name, split, interaction, size).changed(
            {"training.steps": MOST_STEPS, "seed": FIRST_SEED}
        )
        for split, interaction, sizes in CELLS
        for size in sizes
        for name in MODELS
        if interaction or name != FOR_INTERACTIONS
    }


def losses(spec: RunSpec, weights: Weights) -> Iterator[float]:
    """The loss of a model under each test."""
    task = make_task(spec.task, spec.seed)
    model = build(spec.model.name, task, spec.seed, **spec.model.options)
    model.load_state_dict({name: torch.from_numpy(array.astype(np.float32)) for name, array in weights.items()})
    for condition in task.conditions:
        batch = task.draw(condition, EXAMPLES, named_generator(0, condition), torch.float32)
        with torch.no_grad():
            yield task.measure(model(*batch.inputs), batch)["loss"].mean().item()


def shortened(spec: RunSpec, weights: Weights) -> Weights:
    """The weights with 16 bits, unless they are few."""
    if sum(array.size for array in weights.values()) < SMALL:
        return weights
    short = {name: array.astype(np.float16) for name, array in weights.items()}
    for before, after in zip(losses(spec, weights), losses(spec, short), strict=True):
        if abs(after - before) > max(MOST_CHANGE, before / 100):
            raise ValueError(f"{spec.digest}: with 16 bits its loss changes from {before:.2e} to {after:.2e}")
    return short


if __name__ == "__main__":
    store, folder = Store(sys.argv[1], create=True), Path(__file__).with_suffix("")
    for _ in run([*specs().values()], store, make_executor("local", ExecutorSettings(1, None))):
        pass
    folder.mkdir(exist_ok=True)
    for name, spec in specs().items():
        weights = shortened(spec, store.weights(spec.digest))
        save_file(dict(weights), folder / f"{name}.safetensors", {"spec": spec.to_json()})
