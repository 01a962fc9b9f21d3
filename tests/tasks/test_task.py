"""A batch is tensors with a structure that survives what is done with them."""

import pytest
import torch

from tpr_attention.tasks.task import Batch


@pytest.fixture
def batch():
    groups = {"kind": torch.tensor([0, 1, 0]), "length": torch.tensor([2, 1, 2])}
    counted = torch.tensor([[True, True], [True, False], [True, True]])
    return Batch((torch.rand(3, 2), torch.arange(3)), torch.rand(3, 2), groups, counted)


def test_tensors_are_taken_apart_and_put_together(batch):
    again = batch.with_tensors(batch.tensors())
    assert all(one is other for one, other in zip(again.tensors(), batch.tensors(), strict=True))
    assert again.groups.keys() == batch.groups.keys()
    assert len(batch.tensors()) == 6
    assert batch.size == 3


def test_a_function_reaches_every_tensor(batch):
    first = batch.map(lambda tensor: tensor[:1])
    assert [len(tensor) for tensor in first.tensors()] == [1] * 6
    assert first.size == 1
    assert all(tensor.is_meta for tensor in batch.to("meta").tensors())
    assert not batch.target.is_meta


def test_groups_and_what_counts_may_be_left_out():
    batch = Batch((torch.rand(3, 2),), torch.rand(3))
    assert batch.to("meta").counted is None
    assert batch.map(torch.clone).groups == {}
    assert len(batch.tensors()) == 2


def test_as_many_tensors_are_needed(batch):
    for tensors in (batch.tensors()[:-1], (*batch.tensors(), batch.target)):
        with pytest.raises(ValueError, match=f"tensors: expected 6, got {len(tensors)}"):
            batch.with_tensors(tensors)
