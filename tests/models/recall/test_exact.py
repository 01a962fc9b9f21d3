"""Recall contestants with weights that are set and not trained, and what their fast forms are equal to."""

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.models.recall.encoders import Encoded
from tpr_attention.tasks.recall.capacity import Capacity
from tpr_attention.tasks.recall.compositional import Compositional
from tpr_attention.tasks.task import Batch


def drawn(task, condition, count=5):
    return task.draw(condition, count, named_generator(0, condition), torch.float64)


def measured(model, task, batch):
    return {name: values.mean() for name, values in task.measure(model(*batch.inputs), batch).items()}


@torch.no_grad()
@pytest.mark.parametrize("write", ["sum", "delta"])
def test_as_many_pairs_as_features_are_held_exactly(write):
    """Keys are all products of two orthonormal bases: the rank bound, f^m pairs, is reached."""
    setting = "replacement" if write == "delta" else "once"
    task = Capacity(num_pairs=16, setting=setting, queries=9)
    model = build("recall-tpr", task, filler_dim=4, values="one-hot", write=write).double()
    pairs = torch.cartesian_prod(torch.arange(4), torch.arange(4))
    model.objects.key_fillers.copy_(torch.eye(4)[pairs].flatten(1))
    for condition in task.conditions:
        assert measured(model, task, drawn(task, condition))["loss"] < 1e-11  # rounding of unit lengths


@torch.no_grad()
def test_new_pairings_are_recalled_at_every_length():
    task = Compositional()
    for write in ("sum", "delta"):
        model = build("recall-tpr", task, write=write).double()
        model.objects.values_of.weight.copy_(100 * model.objects.value_fillers)
        model.objects.values_of.bias.zero_()
        for condition in task.conditions:
            assert measured(model, task, drawn(task, condition))["accuracy"] == 1


@torch.no_grad()
def test_replacing_is_exact_for_orthonormal_ids():
    task = Capacity(num_pairs=12, setting="replacement", queries=12, tests=(20,))
    options = {"filler_dim": 64, "num_matches": 1, "values": "one-hot", "write": "replace", "learn": "nothing"}
    model = build("recall-tpr", task, **options).double()
    assert measured(model, task, drawn(task, "draws_x20"))["loss"] < 1e-10


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("recall-tpr", {"filler_dim": 4, "values": "one-hot", "keys": "table"}),
        ("recall-softmax", {"encoder": "published", "width": 6}),
        ("recall-linear", {"encoder": "published", "width": 6}),
        ("recall-dpfp", {"encoder": "fixed-roles", "width": 6}),
    ],
)
def test_queries_of_one_sequence_are_as_good_as_those_of_many(name, options):
    """Every sequence has all keys: the loss and its gradient do not depend on which value a key has."""
    task = Capacity(num_pairs=10, queries=7)
    one = drawn(task, "train", 1)
    model = build(name, task, **options).double()
    places = torch.stack([torch.randperm(10, generator=named_generator(seed, "order")) for seed in range(7)])
    renamed = torch.stack([torch.randperm(10, generator=named_generator(seed, "names")) for seed in range(7)])
    keys, values = (one.inputs[0][0, places, field] for field in (0, 1))
    pairs = torch.stack([keys, renamed.gather(1, values)], -1)
    many = Batch((pairs, one.inputs[1][0][:, None]), renamed.gather(1, one.target[0][:, None]))
    found = []
    for batch in (one, many):
        loss = measured(model, task, batch)["loss"]
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(loss, trained, materialize_grads=True)
        found.append((loss, dict(zip((n for n, p in model.named_parameters()), gradients, strict=True))))
    torch.testing.assert_close(found[0][0], found[1][0])
    for key in ("wide", "key_fillers", "table", "key", "query"):
        for (name_of, ours), theirs in zip(found[0][1].items(), found[1][1].values(), strict=True):
            if name_of.rpartition(".")[2] == key:
                torch.testing.assert_close(ours, theirs)


@torch.no_grad()
def test_the_delta_rule_is_what_its_recurrence_says():
    task = Capacity(num_pairs=6)
    model = build("recall-delta", task, encoder="published", width=5).double()
    torch.nn.init.normal_(model.gate.weight, generator=named_generator(0, "gate"))
    generator = named_generator(0, "keys")
    keys, values, queries, written = (
        torch.randn(2, 1, *shape, generator=generator, dtype=torch.float64)
        for shape in ((8, 5), (8, 3), (4, 5), (8, 5))
    )
    found = model.read(Encoded(keys, values, queries, written[:, 0], queries[:, 0]))
    unit = [torch.nn.functional.normalize(torch.nn.functional.silu(x), dim=-1) for x in (keys, queries)]
    gate = model.gate(written[:, 0]).sigmoid()
    memory = torch.zeros(2, 5, 3, dtype=torch.float64)
    for t in range(8):
        key = unit[0][:, 0, t, :, None]
        memory = memory + gate[:, t, :, None] * key * (values[:, 0, t, None] - key.mT @ memory)
    torch.testing.assert_close(found[:, 0], unit[1][:, 0] @ memory)
