"""One suite over all contestants, and a check that names what a model breaks."""

import pytest
import torch

from tpr_attention.data import dsprites_composition, stream
from tpr_attention.models import MODELS, ContractError, build, check_contract, from_path, parameter_count
from tpr_attention.models.deep import Deep
from tpr_attention.models.montero import Linear
from tpr_attention.models.tpr import TPR

from . import contestants

LEARNERS = [name for name in MODELS if name not in ("oracle", "linear-floor")]
WITH_OUTPUT_MAP = [name for name in LEARNERS if name != "interpolate"]
FOLDING = ["tpr", "classical", "classical-matched", "resnet", "resnet-matched", "tpr-second", "tpr-stack"]
FOLDING += ["tpr-deep", "classical-deep", "resnet-deep"]
PLAIN = contestants.__name__


@pytest.fixture(scope="module")
def task():
    return dsprites_composition("square_red", "shape_col")


@pytest.fixture(scope="module")
def batch(task):
    return task.draw("train", 64, stream(0, "batch"), torch.float64)


def made(name, task, **fields):
    model = build(name, task, stream(0, "init"), **fields).double()
    return model.fit([task.draw("train", 2000, stream(0, "fit"))]) if hasattr(model, "fit") else model


@pytest.mark.parametrize("name", MODELS)
def test_the_contract_holds(name, task, batch):
    check_contract(made(name, task), *batch)
    check_contract(made(name, task, start_at_copy=False), *batch)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_answers_have_the_shape_of_the_reference_for_any_batch(name, shape, task, batch):
    model = made(name, task)
    rows = torch.arange(torch.Size(shape).numel()).reshape(shape)
    reference, transform, action = (tensor[rows] for tensor in batch[:3])
    output = model(reference, transform, action)
    assert output.shape == (*shape, 6, 3)
    assert output.dtype == torch.float64
    for row in rows.flatten().tolist():
        alone = model(*(tensor[row : row + 1] for tensor in batch[:3]))[0]
        torch.testing.assert_close(output[rows == row][0], alone)


@pytest.mark.parametrize("name", LEARNERS)
def test_pairs_sorted_by_action_have_the_same_answers_and_gradients(name, task):
    """Also many models at once, where a model folds."""
    batch = task.encode(task.pairing.draw_each("train", 7, stream(0, "a")), torch.float64)
    reference, transform = (tensor.reshape(5, 7, 6, 3) for tensor in (batch.reference, batch.transform))
    models = [build(name, task, stream(k, "init"), start_at_copy=False).double() for k in range(3)]
    wanted = [model(*batch[:3]) for model in models]
    weight = torch.randn(wanted[0].shape, generator=stream(0, "w"), dtype=torch.float64)
    for model, expected in zip(models, wanted, strict=True):
        output = model.by_action(reference, transform).reshape(expected.shape)
        torch.testing.assert_close(output, expected)
        parameters = [tensor for key, tensor in model.named_parameters() if not key.endswith("attention.key.bias")]
        for found, gradient in zip(
            torch.autograd.grad((output * weight).sum(), parameters),
            torch.autograd.grad((expected * weight).sum(), parameters, retain_graph=True),
            strict=True,
        ):
            torch.testing.assert_close(found, gradient)
    assert models[0].folds == (name in FOLDING)
    if models[0].folds:
        for parameter, stacked in torch.func.stack_module_state(models)[0].items():
            owner, _, last = parameter.rpartition(".")
            delattr(models[0].get_submodule(owner), last)
            setattr(models[0].get_submodule(owner), last, stacked)
        together = models[0].by_action(*(tensor.expand(3, -1, -1, -1, -1) for tensor in (reference, transform)))
        torch.testing.assert_close(together.reshape(3, *batch.reference.shape), torch.stack(wanted))


@pytest.mark.parametrize("name", LEARNERS)
def test_gradients_reach_every_parameter(name, task, batch):
    model = made(name, task, start_at_copy=False)
    (model(*batch[:3]) - batch.target).square().mean().backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        # A key's bias moves all logits of a query alike, which a softmax does not see.
        assert parameter.grad.abs().max() > 1e-9 or (
            name.startswith("classical") and parameter_name.endswith("attention.key.bias")
        )


@pytest.mark.parametrize("name", WITH_OUTPUT_MAP)
def test_with_its_output_map_at_zero_a_model_returns_the_reference(name, task, batch):
    random = made(name, task, start_at_copy=False)
    assert (random(*batch[:3]) - batch.reference).abs().max() > 1e-3
    assert torch.equal(made(name, task)(*batch[:3]), batch.reference)


@pytest.mark.parametrize("name", MODELS)
def test_same_seed_same_weights(name, task):
    def weights(seed):
        model = build(name, task, stream(seed, "init"), start_at_copy=False)
        return torch.cat([torch.zeros(1), *(parameter.detach().flatten() for parameter in model.parameters())])

    before = torch.get_rng_state()
    assert torch.equal(weights(0), weights(0))
    assert torch.equal(weights(0), weights(1)) == (name not in LEARNERS)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_can_overfit_eight_pairs(name, task):
    """Of one action: the smallest could not learn more by heart. A gate stays between its inputs, and heads that are
    one number wide find it hard to tell ten tokens apart; two layers of softmax attention are slower than one."""
    model = made(name, task)
    batch = task.draw("train", 400, stream(0, "eight"), torch.float64)
    chosen = batch.action[:, 0].bool().nonzero().flatten()[:8]
    reference, transform, action, target = (tensor[chosen] for tensor in batch)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(400):
        optimiser.zero_grad()
        loss = (model(reference, transform, action) - target).square().mean()
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
    assert parameter_count(build(name, dsprites_composition(), stream(0, "a"), options=options)) == count


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (contestants.WrongShape, r"forward: expected the shape of the reference, \[64, 6, 3\], got \[64, 3\]"),
        (contestants.Nothing, "forward: expected a tensor, got NoneType"),
        (contestants.Raises, "forward: raised KeyError: 'colour'"),
        (contestants.WrongDtype, "forward: expected the dtype of the reference, torch.float32, got torch.float64"),
        (contestants.Whole, "forward: expected the dtype of the reference, torch.float32, got torch.int64"),
        (contestants.NotFinite, "forward: expected finite numbers"),
        (contestants.Detached, "forward: the output does not depend on any parameter"),
        (contestants.NoParameters, "parameters: expected at least one"),
        (contestants.Frozen, "parameters: expected at least one"),
        (contestants.BadGradient, "backward: expected finite gradients, got others for the parameter 'weight'"),
        (contestants.Backwardless, "backward: .*modified by an inplace operation"),
        (contestants.EditsInputs, "forward: expected inputs to be left as they are, but transform was changed"),
        (contestants.StaysInTraining, "eval: expected evaluation mode everywhere"),
        (contestants.Random, "eval: expected the same output for the same inputs"),
        (contestants.MixesRows, "eval: expected an output that depends on its own row only"),
        (contestants.Accumulates, "eval: expected an output that depends on its own row only"),
        (contestants.BackwardRaises, "backward: no way back"),
        (contestants.Unused, "backward: the loss reaches no parameter"),
        (contestants.InfiniteGradient, "backward: expected finite gradients"),
        (contestants.MixesRowsOfTheUpdate, "eval: expected an output that depends on its own row only"),
        (contestants.Broadcasts, r"forward: raised ValueError: update: expected the reference's shape \[64, 6, 3\]"),
        (contestants.Uncopyable, "model: expected one that can be copied: RuntimeError: only one of me"),
        (lambda: lambda *inputs: inputs[0], "model: expected a torch.nn.Module, got function"),
    ],
)
def test_what_a_model_breaks_is_named(model, message, task, as_users_run_it):
    candidate, batch = model(), task.draw("train", 64, stream(0, "batch"))
    before = torch.get_rng_state()
    with pytest.raises(ContractError, match=message):
        check_contract(candidate, *batch)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_batch_that_says_nothing_is_refused(task, batch, as_users_run_it):
    model = made("resnet", task)
    for bad in (
        [tensor[:1] for tensor in batch],
        [*batch[:3], batch.target[:1]],
        [batch.reference * torch.nan, *batch[1:]],
    ):
        with pytest.raises(ValueError, match="batch: expected at least two pairs"):
            check_contract(model, *bad)


def test_the_check_sees_through_no_grad_and_leaves_the_batch_alone(task, as_users_run_it):
    batch = task.draw("train", 8, stream(0, "a"))
    before = batch.transform.clone()
    with torch.no_grad():
        check_contract(build("resnet", task, stream(0, "init")), *batch)
    with pytest.raises(ContractError, match="transform was changed"):
        check_contract(contestants.EditsInputs(), *batch)
    assert torch.equal(batch.transform, before)


def test_sparse_gradients_are_gradients(task, as_users_run_it):
    check_contract(contestants.Sparse(), *task.draw("train", 8, stream(0, "a")))


def test_the_check_leaves_the_model_as_it_was(task, batch):
    model = contestants.Normed().double().eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    check_contract(model, *batch)
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_package.models:Mine", "model: cannot import 'no_such_package.models': ModuleNotFoundError"),
        (f"{PLAIN}:Missing", "model: expected a class or function 'Missing'"),
        (f"{PLAIN}:Swop", r"model: expected a class or function 'Swop' .* got None; did you mean 'Swap'\?"),
        (f"{PLAIN}:not_callable", "model: expected a class or function 'not_callable' .* got 3"),
        (f"{PLAIN}:", "model: expected a path like 'package.module:Class'"),
        (":Swap", "model: expected a path like 'package.module:Class'"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path, message):
    with pytest.raises(ContractError, match=message):
        from_path(path)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise OSError('no licence')", "OSError: no licence"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("class Net(:", "SyntaxError: "),
        ("import sys; sys.exit('usage: ...')", "SystemExit: usage"),
    ],
)
def test_a_module_that_cannot_be_imported_is_refused(code, message, tmp_path, monkeypatch):
    (tmp_path / "unsound.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ContractError, match=f"model: cannot import 'unsound': {message}"):
        from_path("unsound:Net")


def test_layers_that_do_not_fold_make_a_stack_that_does_not():
    assert Deep(lambda: TPR(5, 6, 3), num_layers=2).folds
    assert not Deep(lambda: Linear(5, 6, 3), num_layers=2).folds
