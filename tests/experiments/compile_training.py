"""Train with and without a compiled step, and compare.

Run by `test_train.py` in an interpreter of its own: the checks of the import hook do not compile.
"""

import torch

from tpr_attention.experiments.points import Point
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.train import Finished, train


def check(model):
    specs = [
        RunSpec(model=model, steps=30, train_pairs=500, eval_pairs=100, interaction="shape_col", batch=50, seed=seed)
        for seed in range(2)
    ]
    for one, other in zip(train(specs, compiled=True), train(specs, compiled=False), strict=True):
        if isinstance(one, Point):
            assert one[:3] == other[:3]
            torch.testing.assert_close(torch.tensor(one.losses), torch.tensor(other.losses), rtol=1e-3, atol=1e-6)


def check_many_shapes():
    """torch.compile gives up after eight shapes of one function; the backend makes no difference to that."""
    compiler = torch.compile
    torch.compile = lambda step, fullgraph: compiler(step, fullgraph=fullgraph, backend="eager")
    for width in range(1, 12):
        spec = RunSpec(model="resnet", options={"width": width}, steps=1, train_pairs=50, eval_pairs=10, batch=50)
        assert isinstance(list(train([spec], compiled=True))[-1], Finished)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in ("tpr", "resnet", "classical"):
        check(name)
        print(name)  # noqa: T201
    check_many_shapes()
    print("many")  # noqa: T201
