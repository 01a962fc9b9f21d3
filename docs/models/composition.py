"""Train and write the models that the explorer shows in the documentation: `python docs/models/composition.py STORE`.

They are contestants of the studies, with the first seed, as the studies train them. What the store has already is not
trained again. Weights are stored with 16 bits where that changes what a model answers by little: where the root of the
mean squared change is less than a thirtieth of the root of its lowest test loss.
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
from tpr_attention.studies.contestants import contestant
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import RunSpec

SPLITS = ("square_red", "square_pos")
INTERACTIONS = (None, "shape_col", "scale_pos")
MODELS = ("tpr", "classical", "resnet", "tpr-stack", "tpr-laws")
HEADS = 8
LEAST = 30.0
EXAMPLES = 1000

Weights = Mapping[str, np.ndarray]


def specs() -> dict[str, RunSpec]:
    """All runs by the names of their files."""
    return {
        f"{split}-{interaction or 'none'}-{name}": contestant(name, split, interaction, HEADS)
        for split in SPLITS
        for interaction in INTERACTIONS
        for name in MODELS
    }


def answers(spec: RunSpec, weights: Weights) -> Iterator[tuple[torch.Tensor, float]]:
    """What a model answers under each test, and its loss."""
    task = make_task(spec.task, spec.seed)
    model = build(spec.model.name, task, spec.seed, **spec.model.options)
    model.load_state_dict({name: torch.from_numpy(array.astype(np.float32)) for name, array in weights.items()})
    for condition in task.conditions:
        batch = task.draw(condition, EXAMPLES, named_generator(0, condition), torch.float32)
        with torch.no_grad():
            output = model(*batch.inputs)
        yield output, task.measure(output, batch)["loss"].mean().item()


def shortened(spec: RunSpec, weights: Weights) -> Weights:
    """The weights with 16 bits if that changes little, and as they are otherwise."""
    short = {name: array.astype(np.float16) for name, array in weights.items()}
    before, after = list(answers(spec, weights)), list(answers(spec, short))
    changed = max((one - other).square().mean().item() for (one, _), (other, _) in zip(before, after, strict=True))
    return short if changed * LEAST**2 < min(loss for _, loss in before) else weights


if __name__ == "__main__":
    store, folder = Store(sys.argv[1], create=True), Path(__file__).with_suffix("")
    for _ in run([*specs().values()], store, make_executor("local", ExecutorSettings(1, None))):
        pass
    folder.mkdir(exist_ok=True)
    for name, spec in specs().items():
        weights = shortened(spec, store.weights(spec.digest))
        save_file(dict(weights), folder / f"{name}.safetensors", {"spec": spec.to_json()})
