"""Models are made from names and paths, with what the task knows and the options they take."""

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.models.composition.resnet import ResNet
from tpr_attention.models.composition.tpr import TPR
from tpr_attention.models.contract import ContractError, check_contract, parameter_count
from tpr_attention.tasks.composition.task import dsprites_composition

from . import contestants

PLAIN = contestants.__name__


@pytest.fixture(scope="module")
def task():
    return dsprites_composition()


def test_a_class_of_ones_own_joins_by_its_path(task):
    model = build(f"{PLAIN}:Swap", task, scale=2.0)
    assert type(model).__name__ == "Swap"
    assert model.gate.std() > 1.3
    check_contract(model, task.draw("train", 16, named_generator(0, "a")), task.measure)


def test_a_class_that_takes_everything_is_given_all_sizes(task):
    model = build(f"{PLAIN}:Plain", task, depth=3)
    assert model.sizes == {"num_actions": 5, "num_roles": 5, "filler_dim": 3, "depth": 3}
    check_contract(model, task.draw("train", 16, named_generator(0, "a")), task.measure)


def test_only_the_sizes_that_a_class_asks_for_are_given(task):
    class Other:
        sizes = {"num_roles": 4, "depth": 2, "vocabulary": 99}  # noqa: RUF012

    assert build(f"{PLAIN}:Counted", Other()).given == (4, 2)
    with pytest.raises(ContractError, match=r"Counted' cannot be made: TypeError: .*'depth'"):
        build(f"{PLAIN}:Counted", task)


def test_the_best_answer_of_a_task_is_given_to_who_asks(task):
    batch = task.draw("train", 16, named_generator(0, "a"))
    torch.testing.assert_close(build("oracle", task)(*batch.inputs), batch.target)


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
        return parameter_count(build(name, task, **options))

    wanted, found = count("tpr", num_heads=heads), count(name, num_heads=heads)
    more = {} if wide == "resnet" else {"num_heads": heads}
    assert abs(found - wanted) == min(abs(count(wide, **{field: width}, **more) - wanted) for width in range(1, 40))


def test_a_class_inside_a_class(task):
    assert isinstance(build(f"{PLAIN}:Outer.Inner", task), contestants.Plain)


def test_parameters_are_the_same_on_every_device(task):
    expected = build("tpr", task, seed=3, start_at_copy=False).state_dict()
    for name, tensor in build("tpr", task, seed=3, device="cpu", start_at_copy=False).state_dict().items():
        assert torch.equal(tensor, expected[name])
    assert all(tensor.is_meta for tensor in build("tpr", task, device="meta").state_dict().values())


def test_defaults_are_those_of_the_paper_s_main_figure(task):
    assert build("tpr", task).attention.num_heads == 4
    assert build("classical", task).attention.num_heads == 4


def test_a_random_start_has_roles_of_unit_length(task):
    model = build("tpr", task, num_heads=200, start_at_copy=False)
    assert model.attention.role_map.square().sum(-1).mean().item() == pytest.approx(1, rel=0.1)


def test_ids_can_be_fixed(task):
    model = build("tpr", task, num_heads=3, learn_ids=False)
    assert model.attention.id_query.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert parameter_count(model) == 3 * (25 + 25 + 9)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("tqr", {}, ValueError, r"model: expected one of \['tpr', .*did you mean 'tpr'"),
        ("tpr", {"num_head": 3}, ValueError, "model.num_head: .* of 'tpr': .*; did you mean 'num_heads'"),
        ("tpr", {"num_roles": 3}, ValueError, "model.num_roles: expected one of the options of 'tpr'"),
        (
            "resnet",
            {"num_heads": 3},
            ValueError,
            r"model.num_heads: .* options of 'resnet': \['width', 'start_at_copy'\]",
        ),
        ("tpr", {"num_heads": 0}, ValueError, "model.num_heads: expected at least 1, got 0"),
        ("classical", {"head_dim": 0}, ValueError, "model.head_dim: expected at least 1"),
        ("classical-roles", {"num_heads": -1}, ValueError, "model.num_heads: expected at least 1"),
        ("resnet", {"width": 0}, ValueError, "model.width: expected at least 1"),
        (f"{PLAIN}:Refuses", {}, ContractError, "Refuses' cannot be made: OSError: no disk"),
        (
            "tpr_attention.models.composition.copy_and_update:CopyAndUpdate",
            {},
            ContractError,
            "cannot be made: TypeError: .*abstract",
        ),
        ("builtins:type", {}, ContractError, "model: 'builtins:type': cannot tell what it takes"),
        (f"{PLAIN}:Plain", {"num_roles": 3}, ValueError, "model.num_roles: expected one of the options"),
        (f"{PLAIN}:number", {}, ContractError, "to make a torch.nn.Module, got int"),
    ],
)
def test_bad_names_and_options_are_refused(name, options, error, message, task, as_users_run_it):
    with pytest.raises(error, match=message):
        build(name, task, **options)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_package.models:Mine", "cannot import 'no_such_package.models': ModuleNotFoundError"),
        (f"{PLAIN}:Missing", "expected a class or function 'Missing'"),
        (f"{PLAIN}:Swop", r"expected a class or function 'Swop' .* got None; did you mean 'Swap'\?"),
        (f"{PLAIN}:not_callable", "expected a class or function 'not_callable' .* got 3"),
        (f"{PLAIN}:", "expected a path like 'package.module:Name'"),
        (":Swap", "expected a path like 'package.module:Name'"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path, message, task):
    with pytest.raises(ContractError, match=f"^model: '{path}': {message}"):
        build(path, task)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise OSError('no licence')", "OSError: no licence"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("class Net(:", "SyntaxError: "),
        ("import sys; sys.exit('usage: ...')", "SystemExit: usage"),
    ],
)
def test_a_module_that_cannot_be_imported_is_refused(code, message, task, tmp_path, monkeypatch):
    (tmp_path / "unsound.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ContractError, match=f"model: 'unsound:Net': cannot import 'unsound': {message}"):
        build("unsound:Net", task)


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
