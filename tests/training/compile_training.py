"""Train with and without a compiled step, and compare.

Run by `test_train.py` in an interpreter of its own: the checks of the import hook do not compile.
"""

import torch

from tpr_attention.training.points import Point
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.train import Finished, train

COMPILE = torch.compile
SMALL = {"train_examples": 500, "test_examples": 100, "batch_size": 50}


def check(model):
    specs = [
        RunSpec.of({**SMALL, "model": model, "steps": 8, "interaction": "shape_col", "seed": seed}) for seed in range(2)
    ]
    compiled, plain = (
        [event for event in train(specs, compiled=flag) if isinstance(event, Point)] for flag in (True, False)
    )
    for one, other in zip(compiled, plain, strict=True):
        assert one[:4] == other[:4]
        torch.testing.assert_close(torch.tensor(one.values), torch.tensor(other.values), rtol=1e-3, atol=1e-6)


def use(backend):
    """Compile with another backend, which takes a tenth of the time: what is traced is the same."""
    torch.compile = lambda step, fullgraph: COMPILE(step, fullgraph=fullgraph, backend=backend)


def check_many_shapes():
    """torch.compile gives up after eight shapes of one function, here two; the backend makes no difference to that."""
    torch._dynamo.config.recompile_limit = 2
    for width in range(1, 5):
        spec = RunSpec.of({**SMALL, "model": "resnet", "width": width, "steps": 1, "train_examples": 50})
        assert isinstance(list(train([spec], compiled=True))[-1], Finished)


if __name__ == "__main__":
    torch.set_num_threads(1)
    check("tpr")
    use("aot_eager")
    for name in ("classical", "resnet", "tpr-stack"):
        check(name)
    use("eager")
    check_many_shapes()
    print("done")  # noqa: T201
