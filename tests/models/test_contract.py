"""What a model breaks is named; and what contestants of the composition task have in common."""

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.models import MODELS
from tpr_attention.models.build import build
from tpr_attention.models.composition.deep import Deep
from tpr_attention.models.composition.montero import Linear
from tpr_attention.models.composition.tpr import TPR
from tpr_attention.models.contract import ContractError, check_contract, parameter_count
from tpr_attention.tasks.composition.task import dsprites_composition

from . import contestants
from .conformance import moved

OURS = [name for name, path in MODELS.items() if ".composition." in path]
LEARNERS = [name for name in OURS if name not in ("oracle", "linear-floor")]
WITH_OUTPUT_MAP = [name for name in LEARNERS if name != "interpolate"]
WITH_CHOICE = ("tpr", "classical", "classical-roles", "resnet")
FOLDING = {"tpr", "classical", "classical-matched", "resnet", "resnet-matched", "tpr-second", "tpr-stack"}
FOLDING |= {"tpr-laws", "tpr-deep", "classical-deep", "resnet-deep"}
PLAIN = contestants.__name__


@pytest.fixture(scope="module")
def task():
    return dsprites_composition("square_red", "shape_col")


@pytest.fixture(scope="module")
def batch(task):
    return task.draw("train", 64, named_generator(0, "batch"), torch.float64)


def made(name, task, **options):
    model = build(name, task, **options).double()
    return model.fit([task.draw("train", 2000, named_generator(0, "fit"))]) if hasattr(model, "fit") else model


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_answers_have_the_shape_of_the_reference_for_any_batch(name, shape, task, batch):
    model = moved(made(name, task))
    rows = torch.arange(torch.Size(shape).numel()).reshape(shape)
    output = model(*(tensor[rows] for tensor in batch.inputs))
    assert output.shape == (*shape, 6, 3)
    for row in rows.flatten().tolist():
        alone = model(*(tensor[row : row + 1] for tensor in batch.inputs))[0]
        torch.testing.assert_close(output[rows == row][0], alone)


def test_which_models_fold(task):
    assert {name for name in OURS if build(name, task).folds} == FOLDING


@pytest.mark.parametrize("name", WITH_OUTPUT_MAP)
def test_with_its_output_map_at_zero_a_model_returns_the_reference(name, task, batch):
    model = made(name, task)
    assert torch.equal(model(*batch.inputs), batch.inputs[0])
    assert (moved(model)(*batch.inputs) - batch.inputs[0]).abs().max() > 1e-3


@pytest.mark.parametrize("name", WITH_CHOICE)
def test_a_model_may_start_away_from_the_copy(name, task, batch):
    free, zeroed = made(name, task, start_at_copy=False), made(name, task)
    assert (free(*batch.inputs) - batch.inputs[0]).abs().max() > 1e-3
    for key, tensor in zeroed.state_dict().items():
        assert torch.equal(tensor, free.state_dict()[key]) or not tensor.any(), key


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_can_overfit_eight_pairs(name, task, as_users_run_it):
    """Of one action: the smallest could not learn more by heart. A gate stays between its inputs, and heads that are
    one number wide find it hard to tell ten tokens apart; two layers of softmax attention are slower than one."""
    model = made(name, task)
    batch = task.draw("train", 400, named_generator(0, "eight"), torch.float64)
    chosen = (batch.groups["action"] == 0).nonzero().flatten()[:8]
    batch = batch.map(lambda tensor: tensor[chosen])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(400):
        optimiser.zero_grad()
        loss = (model(*batch.inputs) - batch.target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    left = {"interpolate": 0.3, "classical-roles-matched": 0.02, "classical-deep": 3e-3}.get(name, 1e-3)
    assert losses[-1] < left * losses[0]


@pytest.mark.parametrize(
    ("name", "heads", "count"),
    [
        ("tpr", 4, 4 * (5 * 5 + 5 * 5 + 3 * 3 + 2)),
        ("tpr", 8, 8 * (5 * 5 + 5 * 5 + 3 * 3 + 2)),
        ("classical", 4, 60 * (20 + 1) + 2 * 60 * (17 + 1) + 15 * (60 + 1)),
        ("classical-roles", 4, 52 * (13 + 1) + 2 * 52 * (13 + 1) + 3 * (52 + 1)),
        ("resnet", None, 128 * (35 + 1) + 15 * (128 + 1)),
        ("linear", None, 15 * (35 + 1)),
        ("interpolate", None, 15 * (35 + 1)),
        ("oracle", None, 0),
        ("linear-floor", None, 0),
    ],
)
def test_parameters_are_counted(name, heads, count):
    options = {} if heads is None else {"num_heads": heads}
    assert parameter_count(build(name, dsprites_composition(), **options)) == count


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            contestants.WrongShape,
            r"forward: the output cannot be measured: output: expected the target's shape \[64, 6, 3\], got \[64, 3\]",
        ),
        (contestants.Nothing, "forward: expected a tensor, got NoneType"),
        (contestants.Raises, "forward: raised KeyError: 'colour'"),
        (contestants.WrongDtype, "forward: expected an output of torch.float32, as the batch has, got torch.float64"),
        (contestants.Whole, "forward: expected an output of torch.float32, as the batch has, got torch.int64"),
        (contestants.NotFinite, "forward: expected finite numbers"),
        (contestants.Detached, "forward: the output does not depend on any parameter"),
        (contestants.NoParameters, "parameters: expected at least one"),
        (contestants.Frozen, "parameters: expected at least one"),
        (contestants.BadGradient, "backward: expected finite gradients, got others for the parameter 'weight'"),
        (contestants.Backwardless, "backward: .*modified by an inplace operation"),
        (contestants.EditsInputs, "forward: expected inputs to be left as they are, but input 2 was changed"),
        (contestants.StaysInTraining, "eval: expected evaluation mode everywhere"),
        (contestants.Random, "eval: expected the same output for the same inputs"),
        (contestants.MixesRows, "eval: expected an output that depends on its own example only"),
        (contestants.Accumulates, "eval: expected an output that depends on its own example only"),
        (contestants.BackwardRaises, "backward: no way back"),
        (contestants.Unused, "backward: the loss reaches no parameter"),
        (contestants.InfiniteGradient, "backward: expected finite gradients"),
        (contestants.MixesRowsOfTheUpdate, "eval: expected an output that depends on its own example only"),
        (contestants.Broadcasts, r"forward: raised ValueError: update: expected the reference's shape \[64, 6, 3\]"),
        (contestants.Uncopyable, "model: expected one that can be copied: RuntimeError: only one of me"),
        (lambda: lambda *inputs: inputs[0], "model: expected a torch.nn.Module, got function"),
    ],
)
def test_what_a_model_breaks_is_named(model, message, task, as_users_run_it):
    candidate, batch = model(), task.draw("train", 64, named_generator(0, "batch"))
    before = torch.get_rng_state()
    with pytest.raises(ContractError, match=message):
        check_contract(candidate, batch, task.measure)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_batch_that_says_nothing_is_refused(task, batch, as_users_run_it):
    reference, transform, action = batch.inputs
    for bad in (
        batch.map(lambda tensor: tensor[:1]),
        batch._replace(target=batch.target[:1]),
        batch._replace(inputs=(reference * torch.nan, transform, action)),
        batch._replace(target=batch.target / 0),
    ):
        with pytest.raises(ValueError, match="batch: expected at least two examples of finite numbers"):
            check_contract(made("resnet", task), bad, task.measure)


def test_the_check_sees_through_no_grad_and_leaves_the_batch_alone(task, as_users_run_it):
    batch = task.draw("train", 8, named_generator(0, "a"))
    before = batch.map(torch.clone)
    with torch.no_grad():
        check_contract(build("resnet", task), batch, task.measure)
    with pytest.raises(ContractError, match="input 2 was changed"):
        check_contract(contestants.EditsInputs(), batch, task.measure)
    assert all(map(torch.equal, batch.tensors(), before.tensors()))


def test_sparse_gradients_are_gradients(task, as_users_run_it):
    check_contract(contestants.Sparse(), task.draw("train", 8, named_generator(0, "a")), task.measure)


def test_the_check_leaves_the_model_as_it_was(task, batch):
    model = contestants.Normed().double().eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    check_contract(model, batch, task.measure)
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_what_the_task_cannot_measure_is_the_model_s_fault(task, batch):
    def measure(output, batch):
        raise IndexError("class 7 of 5")

    with pytest.raises(ContractError, match="forward: the output cannot be measured: class 7 of 5"):
        check_contract(made("resnet", task), batch, measure)


def test_layers_that_do_not_fold_make_a_stack_that_does_not():
    assert Deep(lambda: TPR(5, 6, 3), num_layers=2).folds
    assert not Deep(lambda: Linear(5, 6, 3), num_layers=2).folds
