"""Write the golden store anew: `python -m tests.golden.write_store`.

It is a store of the current schema; a change after which it cannot be read needs a new schema.
"""

import shutil
from pathlib import Path

import torch

from tpr_attention.runner.executors.local import in_this_process
from tpr_attention.runner.run import run
from tpr_attention.runner.store import Store
from tpr_attention.runner.tables import write_table
from tpr_attention.training.spec import RunSpec

STORE = Path(__file__).parent / "store"
SPECS = [
    RunSpec.of({"model": model, "steps": 4, "train_examples": 50, "test_examples": 10, "batch_size": 50})
    for model in ("tpr", "linear-floor")
]

if __name__ == "__main__":
    torch.set_num_threads(1)
    shutil.rmtree(STORE, ignore_errors=True)
    store = Store(STORE, create=True)
    for event in run(SPECS, store, in_this_process):
        print(event)  # noqa: T201
    write_table(store)
    for folder in (".locks", ".checkpoints"):
        shutil.rmtree(STORE / folder, ignore_errors=True)
