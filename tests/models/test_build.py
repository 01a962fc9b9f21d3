"""Models are made from names and paths, with what the task knows and the options they take."""

import pytest
import torch

from tpr_attention.data import dsprites_composition, stream
from tpr_attention.models import TPR, ContractError, build, check_contract, parameter_count

from . import contestants

PLAIN = contestants.__name__


@pytest.fixture(scope="module")
def task():
    return dsprites_composition()


def test_a_class_of_ones_own_joins_by_its_path(task):
    model = build(f"{PLAIN}:Swap", task, stream(0, "init"), options={"scale": 2.0}, start_at_copy=False)
    assert type(model).__name__ == "Swap"
    assert model.gate.std() > 1.3
    check_contract(model, *task.draw("train", 16, stream(0, "a")))
    assert build(f"{PLAIN}:Swap", task, stream(0, "init")).gate.abs().max() == 0


def test_a_class_without_the_copy_joins_too(task):
    model = build(f"{PLAIN}:Plain", task, stream(0, "init"), options={"depth": 3})
    assert model.sizes == {"num_actions": 5, "num_roles": 5, "filler_dim": 3, "depth": 3}
    check_contract(model, *task.draw("train", 16, stream(0, "a")))


@pytest.mark.parametrize("heads", [1, 4, 8, 16])
@pytest.mark.parametrize(("name", "step"), [("classical-matched", None), ("resnet-matched", 51)])
def test_matched_widths_come_nearest_to_the_paper_s_model(name, step, heads, task):
    wanted = parameter_count(build("tpr", task, stream(0, "a"), options={"num_heads": heads}))
    found = parameter_count(build(name, task, stream(0, "a"), options={"num_heads": heads}))
    step = step or heads * (21 + 18 + 18 + 15)  # what one more unit of width costs
    assert abs(found - wanted) <= step / 2 or found < wanted + step  # or the width is one already
    assert found <= wanted + step


def test_ids_can_be_fixed(task):
    model = build("tpr", task, stream(0, "a"), options={"num_heads": 3, "learn_ids": False})
    assert model.attention.id_query.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert parameter_count(model) == 3 * (25 + 25 + 9)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("tqr", {}, ValueError, r"model: expected one of \['tpr', .*did you mean 'tpr'"),
        ("tpr", {"num_head": 3}, ValueError, "options of 'tpr': .* got 'num_head'; did you mean 'num_heads'"),
        ("tpr", {"num_roles": 3}, ValueError, "options of 'tpr': expected one of"),
        ("resnet", {"num_heads": 3}, ValueError, r"options of 'resnet': expected one of \['width'\]"),
        ("tpr", {"num_heads": 0}, ValueError, "num_heads: expected at least 1, got 0"),
        ("classical", {"head_dim": 0}, ValueError, "head_dim: expected at least 1"),
        ("classical-roles", {"num_heads": -1}, ValueError, "num_heads: expected at least 1"),
        ("resnet", {"width": 0}, ValueError, "width: expected at least 1"),
        (f"{PLAIN}:number", {}, ContractError, "to make a torch.nn.Module, got int"),
    ],
)
def test_bad_names_and_options_are_refused(name, options, error, message, task):
    with pytest.raises(error, match=message):
        build(name, task, stream(0, "a"), options=options)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((torch.ones(2, 5, 3), torch.ones(2, 5, 3), torch.ones(2, 4)), "action: .* a=5"),
        ((torch.ones(2, 5, 3), torch.ones(1, 5, 3), torch.ones(2, 5)), r"transform: .* batch=\[2\]"),
        ((torch.ones(2, 6, 3), torch.ones(2, 6, 3), torch.ones(2, 5)), "reference: .* r=5"),
    ],
)
def test_nothing_broadcasts(inputs, message, as_users_run_it):
    with pytest.raises(ValueError, match=message):
        TPR(5, 5, 3)(*inputs)
