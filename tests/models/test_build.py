"""Models are made from names and paths, with what the task knows and the options they take."""

import pytest
import torch

from tpr_attention.data import dsprites_composition, stream
from tpr_attention.models import TPR, ContractError, ResNet, build, check_contract, parameter_count

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
@pytest.mark.parametrize(
    ("name", "wide", "field"),
    [
        ("classical-matched", "classical", "head_dim"),
        ("classical-roles-matched", "classical-roles", "head_dim"),
        ("resnet-matched", "resnet", "width"),
    ],
)
def test_matched_widths_come_nearest_to_the_paper_s_model(name, wide, field, heads, task):
    def count(name, **options):
        return parameter_count(build(name, task, stream(0, "a"), options=options))

    wanted, found = count("tpr", num_heads=heads), count(name, num_heads=heads)
    more = {} if wide == "resnet" else {"num_heads": heads}
    assert abs(found - wanted) == min(abs(count(wide, **{field: width}, **more) - wanted) for width in range(1, 40))


def test_a_class_inside_a_class(task):
    assert isinstance(build(f"{PLAIN}:Outer.Inner", task, stream(0, "a")), contestants.Plain)


def test_a_name_and_a_generator_are_needed(task, as_users_run_it):
    with pytest.raises(TypeError, match="expected a name and a"):
        build(TPR, task, stream(0, "a"))
    with pytest.raises(TypeError, match="expected a name and a"):
        build("tpr", task, None)


def test_defaults_are_those_of_the_paper_s_main_figure(task):
    assert build("tpr", task, stream(0, "a")).attention.num_heads == 4
    assert build("classical", task, stream(0, "a")).attention.num_heads == 4


def test_a_random_start_has_roles_of_unit_length(task):
    model = build("tpr", task, stream(0, "a"), options={"num_heads": 200}, start_at_copy=False)
    assert model.attention.role_map.square().sum(-1).mean().item() == pytest.approx(1, rel=0.1)


def test_ids_can_be_fixed(task):
    model = build("tpr", task, stream(0, "a"), options={"num_heads": 3, "learn_ids": False})
    assert model.attention.id_query.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert parameter_count(model) == 3 * (25 + 25 + 9)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("tqr", {}, ValueError, r"model: expected one of \['tpr', .*did you mean 'tpr'"),
        ("tpr", {"num_head": 3}, ValueError, "options.num_head: .* of 'tpr': .*; did you mean 'num_heads'"),
        ("tpr", {"num_roles": 3}, ValueError, "options.num_roles: expected one of the options of 'tpr'"),
        ("resnet", {"num_heads": 3}, ValueError, r"options.num_heads: .* options of 'resnet': \['width'\]"),
        ("tpr", {"num_heads": 0}, ValueError, "options.num_heads: expected at least 1, got 0"),
        ("tpr", {"num_heads": 2.5}, ValueError, "options.num_heads: expected a whole number, got 2.5"),
        ("classical", {"head_dim": 0}, ValueError, "head_dim: expected at least 1"),
        ("classical-roles", {"num_heads": -1}, ValueError, "num_heads: expected at least 1"),
        ("resnet", {"width": 0}, ValueError, "width: expected at least 1"),
        (f"{PLAIN}:Needy", {}, ContractError, "Needy' cannot be made: TypeError: .*'depth'"),
        (f"{PLAIN}:Refuses", {}, ContractError, "Refuses' cannot be made: OSError: no disk"),
        ("tpr_attention.models:CopyAndUpdate", {}, ContractError, "cannot be made: TypeError: .*abstract"),
        ("builtins:type", {}, ContractError, "cannot tell what 'builtins:type' takes"),
        (f"{PLAIN}:Plain", {"num_roles": 3}, ValueError, "options.num_roles: expected one of the options"),
        (f"{PLAIN}:number", {}, ContractError, "to make a torch.nn.Module, got int"),
    ],
)
def test_bad_names_and_options_are_refused(name, options, error, message, task, as_users_run_it):
    with pytest.raises(error, match=message):
        build(name, task, stream(0, "a"), options=options)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((torch.ones(2, 5, 3), torch.ones(2, 5, 3), torch.ones(2, 4)), "action: .* a=5"),
        ((torch.ones(2, 5, 3), torch.ones(1, 5, 3), torch.ones(2, 5)), r"transform: .* batch=\[2\]"),
        ((torch.ones(2, 5, 3).double(), torch.ones(2, 5, 3), torch.ones(2, 5)), "reference: expected torch.float32"),
        ((torch.ones(2, 6, 3), torch.ones(2, 6, 3), torch.ones(2, 5)), "reference: .* r=5"),
    ],
)
@pytest.mark.parametrize("model", [TPR, ResNet])
def test_nothing_broadcasts(inputs, message, model, as_users_run_it):
    with pytest.raises((TypeError, ValueError), match=message):
        model(5, 5, 3)(*inputs)
