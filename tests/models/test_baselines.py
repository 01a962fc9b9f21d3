"""The baselines compute what their definitions say, and could solve the task where decision 0013 says so."""

from math import exp, sqrt

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.models import MODELS
from tpr_attention.models.build import build
from tpr_attention.models.composition.classical import Classical
from tpr_attention.models.composition.classical_roles import ClassicalRoles
from tpr_attention.models.composition.montero import Interpolate, Linear
from tpr_attention.models.composition.resnet import ResNet
from tpr_attention.tasks.composition import CONDITIONS, dsprites_composition

from .conformance import moved

IDS = torch.eye(2, dtype=torch.float64)
LEARNERS = [name for name, path in MODELS.items() if ".composition." in path and name not in ("oracle", "linear-floor")]


def attended(attention, asking, tokens):
    """One asking vector, head by head and token by token."""
    query, keys, values = attention.query(asking), attention.key(tokens), attention.value(tokens)
    width = len(query) // attention.num_heads
    read = []
    for head in range(attention.num_heads):
        own = slice(head * width, (head + 1) * width)
        weights = [exp(float(query[own] @ key[own]) / sqrt(width)) for key in keys]
        read.append(sum(w / sum(weights) * value[own] for w, value in zip(weights, values, strict=True)))
    return attention.output(torch.cat(read))


def literal_classical(model, reference, transform, action):
    tokens = torch.stack([torch.cat([reference.flatten(), IDS[0]]), torch.cat([transform.flatten(), IDS[1]])])
    return attended(model.attention, torch.cat([action, reference.flatten()]), tokens).reshape(reference.shape)


def literal_classical_roles(model, reference, transform, action):
    roles = len(reference)
    tokens = torch.cat([torch.cat([reference, transform]), torch.eye(2 * roles).double()], 1)
    rows = [
        attended(model.attention, torch.cat([action, reference[j], torch.eye(roles).double()[j]]), tokens)
        for j in range(roles)
    ]
    return torch.stack(rows)


def literal_resnet(model, reference, transform, action):
    hidden = model.hidden(torch.cat([reference.flatten(), transform.flatten(), action])).clamp(min=0)
    return model.output(hidden).reshape(reference.shape)


def literal_linear(model, reference, transform, action):
    return model.output(torch.cat([reference.flatten(), transform.flatten(), action])).reshape(reference.shape)


def literal_interpolate(model, reference, transform, action):
    logits = model.gate(torch.cat([reference.flatten(), transform.flatten(), action])).reshape(reference.shape)
    gate = 1 / (1 + torch.exp(-logits))
    return (1 - gate) * reference + gate * transform - reference


@pytest.mark.parametrize(
    ("model", "literal"),
    [
        (Classical(5, 6, 3, num_heads=3, head_dim=4), literal_classical),
        (Classical(5, 6, 3, num_heads=2), literal_classical),
        (ClassicalRoles(5, 6, 3, num_heads=3, head_dim=4), literal_classical_roles),
        (ResNet(5, 6, 3, width=7), literal_resnet),
        (Linear(5, 6, 3), literal_linear),
        (Interpolate(5, 6, 3), literal_interpolate),
    ],
)
@torch.no_grad()
def test_a_baseline_is_its_definition(model, literal, generator):
    model = model.double()
    for parameter in model.parameters():
        parameter.normal_(generator=generator)
    reference, transform = torch.randn(2, 4, 6, 3, generator=generator, dtype=torch.float64)
    action = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    expected = torch.stack([literal(model, *row) for row in zip(reference, transform, action, strict=True)])
    torch.testing.assert_close(model(reference, transform, action), reference + expected)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_looks_at_all_that_it_is_given(name, generator):
    task = dsprites_composition("square_red", "shape_col")
    model = moved(build(name, task))
    reference, transform, action = task.draw("train", 32, generator).inputs
    output = model(reference, transform, action) - reference
    other = torch.randn(reference.shape, generator=generator)
    for changed in (
        model(other, transform, action) - other,
        model(reference, other, action) - reference,
        model(reference, transform, action.roll(1, -1)) - reference,
    ):
        assert (changed - output).abs().amax(
            (-1, -2)
        ).median() > 1e-4  # of one row all units of a small ReLU may be dead


def losses(model, split="square_red"):
    task = dsprites_composition(split)
    batches = [task.draw(condition, 500, named_generator(0, condition)) for condition in CONDITIONS]
    return [(model(*batch.inputs) - batch.target).square().mean().item() for batch in batches]


@torch.no_grad()
def test_six_heads_over_two_objects_can_substitute():
    """Head k takes role k from the transform if the action is k and from the reference if not; the last one takes the
    reference away."""
    model, sure = Classical(5, 5, 3, num_heads=6), 200.0
    for parameter in model.parameters():
        parameter.zero_()
    query, key, value = (getattr(model.attention, name) for name in ("query", "key", "value"))
    output = model.attention.output.weight
    for head in range(6):
        first = 15 * head
        key.weight[first, 15:] = torch.tensor([-1.0, 1.0])
        query.bias[first] = -sure
        value.weight[first : first + 15, :15] = torch.eye(15)
        if head < 5:
            query.weight[first, head] = 2 * sure
            output[3 * head : 3 * head + 3, first + 3 * head : first + 3 * head + 3] = torch.eye(3)
        else:
            output[:, first : first + 15] = -torch.eye(15)
    assert max(losses(model)) < 1e-12


@torch.no_grad()
def test_two_heads_over_roles_can_substitute():
    """One head reads what to write, from the transform where the action is about its role; the other what to erase."""
    model, sure = ClassicalRoles(5, 5, 3, num_heads=2), 400.0
    for parameter in model.parameters():
        parameter.zero_()
    query, key, value = (getattr(model.attention, name) for name in ("query", "key", "value"))
    for head in range(2):
        first = 13 * head
        key.weight[first : first + 10, 3:] = torch.eye(10)
        value.weight[first : first + 3, :3] = torch.eye(3)
    query.weight[:5, 8:] = query.weight[5:10, 8:] = query.weight[13:18, 8:] = sure * torch.eye(5)
    query.bias[:5] = sure / 4  # rather the reference ...
    query.weight[5:10, :5] = sure / 2 * torch.eye(5)  # ... unless the action is about this role
    model.attention.output.weight[:, :3] = torch.eye(3)
    model.attention.output.weight[:, 13:16] = -torch.eye(3)
    assert max(losses(model)) < 1e-12
