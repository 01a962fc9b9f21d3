"""Train the memories of the explorer's room "Sequences": `python docs/models/sequences.py STORE`.

Two small tasks, so that all keys fit on a page: keys of two parts whose pairings are partly held out, and keys that are
written again. All memories of a task have the same training. With keys of two parts, linear attention and the delta
rule have the width that makes their state as large as that of TPR-Attention; otherwise all keys have 12 numbers.

What the store has is not trained again; all of it takes about five minutes on one core. Weights are stored with 16 bits
where that changes no answer in any test.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.runner.run import run
from tpr_attention.runner.store import Store
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import RunSpec

COMPOUND = {
    "task": "recall-compositional",
    "task.num_keys": 12,
    "task.num_values": 12,
    "task.pairs": 6,
    "task.queries": 6,
    "training.steps": 2_000,
    "training.batch_size": 32,
    "training.train_examples": 20_000,
    "training.test_examples": 200,
    "training.learning_rate": 0.003,
}
AGAIN = {
    "task": "recall-capacity",
    "task.setting": "replacement",
    "task.num_pairs": 12,
    "task.queries": 12,
    "training.steps": 2_000,
    "training.batch_size": 4,
    "training.train_examples": 4_000,
    "training.test_examples": 50,
    "training.learning_rate": 0.003,
    "training.schedule": "late-decay",
}
TPR = {**COMPOUND, "model": "recall-tpr", "model.filler_dim": 12}
TPR_AGAIN = {
    **AGAIN,
    "model": "recall-tpr",
    "model.filler_dim": 6,
    "model.values": "one-hot",
    "model.keys": "table",
    "model.learn": "fillers",
}
PUBLISHED = {**AGAIN, "model.encoder": "published", "model.width": 12}
MODELS = {
    "compound-tpr": TPR,
    "compound-tpr-delta": {**TPR, "model.write": "delta"},
    "compound-tpr-softmax": {**TPR, "model.match": "softmax"},
    "compound-softmax": {**COMPOUND, "model": "recall-softmax", "model.width": 40, "model.num_heads": 4},
    "compound-linear": {**COMPOUND, "model": "recall-linear", "model.width": 41},
    "compound-delta": {**COMPOUND, "model": "recall-delta", "model.width": 41},
    "again-tpr": TPR_AGAIN,
    "again-tpr-delta": {**TPR_AGAIN, "model.write": "delta"},
    "again-tpr-replace": {
        **AGAIN,
        "model": "recall-tpr",
        "model.filler_dim": 12,
        "model.num_matches": 1,
        "model.values": "one-hot",
        "model.learn": "nothing",
        "model.write": "replace",
    },
    "again-softmax": {**PUBLISHED, "model": "recall-softmax"},
    "again-linear": {**PUBLISHED, "model": "recall-linear"},
    "again-delta": {**PUBLISHED, "model": "recall-delta", "model.features": "dpfp"},
}
"""File to the keys of its run."""


@torch.no_grad()
def answers(spec: RunSpec, weights: dict[str, np.ndarray]) -> torch.Tensor:
    """The values that a model answers in all tests."""
    task = make_task(spec.task, spec.seed)
    model = build(spec.model.name, task, spec.seed, **spec.model.options)
    model.load_state_dict({name: torch.from_numpy(array).float() for name, array in weights.items()})
    batches = [task.draw(test, 200, named_generator(spec.seed, test), torch.float32) for test in task.conditions]
    return torch.cat([model(*batch.inputs).argmax(-1).flatten() for batch in batches])


def shortened(spec: RunSpec, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights with 16 bits, or as they are if an answer changes."""
    short = {name: array.astype(np.float16) for name, array in weights.items()}
    return short if torch.equal(answers(spec, weights), answers(spec, short)) else weights


if __name__ == "__main__":
    store = Store(sys.argv[1], create=True)
    specs = {name: RunSpec.of(keys) for name, keys in MODELS.items()}
    list(run([*specs.values()], store))
    folder = Path(__file__).with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, spec in specs.items():
        weights = shortened(spec, store.weights(spec.digest))
        save_file(weights, folder / f"{name}.safetensors", {"spec": spec.to_json()})
