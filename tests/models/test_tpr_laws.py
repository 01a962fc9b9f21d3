"""`tpr-laws`: a constructed solution, what inputs carry, and what decides whether a role is cleaned."""

import pytest
import torch

from tpr_attention.functional.laws import carried
from tpr_attention.models.build import build
from tpr_attention.models.composition.tpr_laws import _majority
from tpr_attention.tasks.composition.task import dsprites_composition


def constructed(task, **options):
    """Appendix D's substitution, and the law of the interaction `shape_col` for all that training shows."""
    model = build("tpr-laws", task, num_heads=2, **options).double()
    actions, roles = task.num_actions, task.num_roles
    names, last = task.encoding.role_names, task.num_roles - 1
    acted = torch.eye(actions, roles)
    state = {
        "query_map": torch.stack([acted, acted]),
        "role_map": torch.stack([acted, acted]),
        "filler_map": torch.stack([-torch.eye(3), torch.eye(3)]),
        "id_query": torch.eye(2),
    }
    model.substitute.load_state_dict(state)
    model.law_gate.data[:, last] = 1
    model.laws.query_map.data.zero_()
    model.laws.query_map.data[last, 0, names.index("shape")] = 1
    model.laws.query_map.data[last, model.laws.num_pairs, names.index("colour")] = 1
    mixing = task.encoding.tables[last].fillers.reshape(3, 3, 3).permute(2, 0, 1).clone()
    square, red = 0, 0
    mixing[:, square, red] = 7  # what training does not show is anything
    model.laws.pair_map.data[last, :, 0] = mixing
    return model


@pytest.mark.parametrize("condition", ["train", "ood_reference", "ood_transform"])
def test_the_constructed_model_solves_what_can_be_known(condition):
    task = dsprites_composition("square_red", "shape_col")
    batch = task.draw(condition, 300, torch.Generator().manual_seed(0), torch.float64)
    assert task.measure(constructed(task)(*batch.inputs), batch)["loss"].max() < 1e-20


def test_what_inputs_carry_makes_the_difference():
    """A red square in an input has a filler that its law does not know; without `carries` it is not used."""
    task = dsprites_composition("square_red", "shape_col")
    for condition in ("ood_reference", "ood_transform"):
        batch = task.draw(condition, 300, torch.Generator().manual_seed(0), torch.float64)
        lost = task.measure(constructed(task, carries=False)(*batch.inputs), batch)["loss"]
        assert lost.max() > 0.1


def test_what_is_carried_is_its_equation(normal):
    law, inputs, laws = normal(4, 3, 6), normal(2, 4, 3, 6), normal(2, 4, 3, 6)
    first, second = (torch.exp(-0.5 * (law - one).square().sum(-2, keepdim=True)) for one in laws)
    expected = first * (inputs[0] - laws[0]) + (1 - first) * second * (inputs[1] - laws[1])
    torch.testing.assert_close(carried(law, inputs, laws, 0.5), expected)


def test_the_majority_of_actions_decides_and_each_learns_for_itself():
    gate = torch.tensor([[0.0, 1.0], [0.0, 0.8], [0.7, 0.9]], requires_grad=True)
    found = _majority(gate)
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.9]]).expand(3, 2))
    (gradient,) = torch.autograd.grad((found * torch.arange(6.0).reshape(3, 2)).sum(), gate)
    torch.testing.assert_close(gradient, torch.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize("options", [{"sparsity": -1.0}, {"sparsity": float("nan")}, {"num_codes": -2}, {"hidden": 0}])
def test_options_that_make_no_model_are_refused_by_their_name(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        build("tpr-laws", dsprites_composition(), **options)


def test_the_penalty_is_the_error_of_the_inputs_laws_and_the_size_of_queries():
    task = dsprites_composition("square_red", "shape_col")
    model = constructed(task, sparsity=0.25)
    batch = task.draw("train", 50, torch.Generator().manual_seed(0), torch.float64)
    output, penalty = model.with_penalty(*batch.inputs)
    torch.testing.assert_close(output, model(*batch.inputs))
    objects = torch.stack(batch.inputs[:2])
    expected = (model.laws(objects) - objects).square().mean() + 0.25 * 2  # two queries of size one
    torch.testing.assert_close(penalty, expected)
    pairs = [tensor[:50].reshape(5, 10, *tensor.shape[1:]) for tensor in batch.inputs]
    _, by_group = model.by_group_with_penalty(*pairs)
    torch.testing.assert_close(by_group, penalty)
