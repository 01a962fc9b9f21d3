"""Train with and without a compiled step, and compare.

Run by `test_train.py` in an interpreter of its own: the checks of the import hook do not compile.
"""

import torch

from tpr_attention.experiments.points import Point
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.train import train


def check(model):
    specs = [
        RunSpec(model=model, steps=30, train_pairs=500, eval_pairs=100, interaction="shape_col", batch=50, seed=seed)
        for seed in range(2)
    ]
    for one, other in zip(train(specs, compiled=True), train(specs, compiled=False), strict=True):
        if isinstance(one, Point):
            assert one[:3] == other[:3]
            torch.testing.assert_close(torch.tensor(one.losses), torch.tensor(other.losses), rtol=1e-3, atol=1e-6)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in ("tpr", "resnet", "classical"):
        check(name)
        print(name)  # noqa: T201
