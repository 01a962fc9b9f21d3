"""The recall tasks as they are held to the contract."""

import torch

from ..cases import Case, generator

FEW = {"num_keys": 8, "num_values": 6, "pairs": 4, "queries": 3, "lengths": [1, 4]}


def one_hot(size, height=1.0):
    """The target as a one-hot vector of some height."""
    return lambda batch: (
        height
        * (batch.target.unsqueeze(-1) == torch.arange(size, device=batch.target.device)).to(
            torch.float64 if batch.target.device.type == "cpu" else torch.float32
        )
    )


def logits(size):
    """An answer that knows nothing."""
    return lambda batch: torch.randn(*batch.target.shape, size, generator=generator(7), dtype=torch.float64)


def asks_for_what_is_held_out(task, batch):
    return task.is_held_out(batch.inputs[1]).all(-1)


def asks_for_a_new_combination(task, batch):
    combination = batch.inputs[1].argmax(-1).unsqueeze(2)
    return (combination == task.combinations["ood"]).all(-1).any(-1).all(-1)


def pairs_second_kinds(task, batch):
    return (batch.inputs[0] >= task.each).all(-1).all(-1)


def item(batch):
    return batch.inputs[3].gather(1, batch.target[:, None, None].expand(-1, 1, batch.inputs[3].shape[-1])).squeeze(1)


RECALL = {
    "recall-capacity": Case("recall-capacity", {"num_pairs": 9, "queries": 2}, right_output=one_hot(9)),
    "recall-replacement": Case(
        "recall-capacity", {"num_pairs": 7, "setting": "replacement", "tests": [1, 3]}, right_output=one_hot(7)
    ),
    "recall-compositional": Case(
        "recall-compositional",
        FEW,
        asks_for_what_is_held_out,
        ("train", "in_distribution", "in_distribution_x4"),
        one_hot(6, 50.0),
        logits(6),
    ),
    "recall-contextual": Case("recall-contextual", {"test_objects": 14}, asks_for_a_new_combination),
    "recall-hops": Case("recall-hops", {"items": 5, "filler_dim": 7}, right_output=item),
    "recall-sar": Case(
        "recall-sar",
        {"each": 9, "pairs": 5, "test_pairs": 8, "queries": 4},
        pairs_second_kinds,
        right_output=one_hot(18, 50.0),
        wrong_output=logits(18),
    ),
}
