"""What a model adds to the loss in training."""

import pytest
import torch

from tpr_attention.training.train import train

from .runs import alone, own, weights


@pytest.mark.parametrize(
    ("name", "even"), [("Penalised", False), ("BranchingPenalised", False), ("FoldingPenalised", True)]
)
def test_a_penalty_is_added_to_the_loss_in_training_alone(name, even):
    """In all three ways of calling models."""
    specs = [own(name).changed({"task.even": even, "seed": seed, "batch_size": 51}) for seed in (0, 1)]
    found = weights(train(specs, dtype=torch.float64))
    for spec in specs:
        model, _ = alone(spec, torch.float64)
        for key, tensor in model.state_dict().items():
            torch.testing.assert_close(found[spec.digest][key], tensor, rtol=1e-9, atol=1e-9)
    plain = {"Penalised": "Slope", "BranchingPenalised": "Branching", "FoldingPenalised": "FoldingSlope"}[name]
    without = weights(train([spec.changed({"model": own(plain).model.name}) for spec in specs], dtype=torch.float64))
    sizes = [sum(tensor.abs().sum() for tensor in one.values()) for one in (*found.values(), *without.values())]
    assert max(sizes[:2]) < min(sizes[2:])
