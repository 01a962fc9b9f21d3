"""How filler maps of `ActionTPRAttention` start: random orthonormal matrices against the identity, seed by seed.

    python benchmarks/filler_start.py [--steps 3000] [--seeds 5]

The paper's model on its composition task, with and without its interactions, each split held out.
Losses are in distribution and in the worst of the three tests, as geometric means over seeds.
"""

import argparse
from statistics import geometric_mean

import torch

from tpr_attention.models.composition.tpr import TPR
from tpr_attention.studies.contestants import contestant
from tpr_attention.tasks.composition.splits import SPLITS
from tpr_attention.training.points import Point
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.train import groups, train

FIRST_SEED = 900
LEAST = 1e-9  # what is lower counts as this


class IdentityTPR(TPR):
    """The paper's model with filler maps that start at the identity, as those of the layer do by default."""

    def __init__(self, num_actions: int, num_roles: int, filler_dim: int, num_heads: int = 4) -> None:
        super().__init__(num_actions, num_roles, filler_dim, num_heads)
        with torch.no_grad():
            self.attention.filler_map.copy_(torch.eye(filler_dim).expand_as(self.attention.filler_map))


def losses(specs: list[RunSpec]) -> dict[str, dict[str, float]]:
    """The final loss of each run under each condition, by digest."""
    found: dict[str, dict[str, float]] = {}
    for group in groups(specs):
        for event in train(group):
            if isinstance(event, Point) and event.group is None and event.condition != "train":
                found.setdefault(event.run, {})[event.condition] = max(event.values[0], LEAST)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| interaction | split | orthonormal | identity | orthonormal, worst test | identity, worst test |")
    print("|---|---|---|---|---|---|")
    for interaction in (None, "scale_pos", "shape_col"):
        for split in SPLITS:
            usual = contestant("tpr", split, interaction, 4).changed({"training.steps": asked.steps})
            kinds = usual, usual.changed({"model": f"{__name__}:IdentityTPR", "model.num_heads": 4})
            cells = []
            for kind in kinds:
                specs = [kind.changed({"seed": FIRST_SEED + number}) for number in range(asked.seeds)]
                runs = losses(specs).values()
                worst = [max(run.values()) for run in runs]
                cells.append((geometric_mean(run["in_distribution"] for run in runs), geometric_mean(worst)))
            (first, first_worst), (second, second_worst) = cells
            numbers = " | ".join(f"{number:.1e}" for number in (first, second, first_worst, second_worst))
            print(f"| {interaction or 'none'} | {split} | {numbers} |", flush=True)


if __name__ == "__main__":
    import filler_start  # by its name, so that runs can name the model

    filler_start.main()
