"""What cannot be run is refused by the key that is wrong, before anything is written."""

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.tasks.task import Batch
from tpr_attention.training.points import Point
from tpr_attention.training.prepare import check, make_task, names_of, prepare
from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.train import train

from ..models import contestants
from . import components
from .components import MODEL, TASK

PLAIN = contestants.__name__
OWN = {"task": TASK, "model": MODEL, "batch_size": 6, "train_examples": 30, "test_examples": 9, "steps": 4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": ""}, "task.split: expected one of"),
        ({"split": "square_rd"}, "task.split: .*did you mean 'square_red'"),
        ({"split.shape": "hart"}, "task.split: expected one of .* for 'shape', got 'hart'"),
        ({"split": "no_such_package:held_out"}, "task.split: .* cannot import 'no_such_package'"),
        ({"interaction": "shape_color"}, "task.interaction: .*did you mean 'shape_col'"),
        ({"interaction.law": "x:y"}, "task.interaction: expected one of .* or the keys 'factors' and 'law'"),
        ({"scale_angles": ()}, "task.scale_angles: expected 6"),
        ({"split": "square_pos", "position_range": (-2, -1)}, "task.split: it leaves no pairs .* 'ood_reference'"),
        ({"split": "square_pos", "position_range": (1, 2)}, "task.split: it leaves no pairs .* 'ood_composition'"),
        ({"position_range": [1]}, "task.position_range: expected two growing, finite numbers"),
        ({"position_range": (-1e308, 1e308)}, "task.position_range: expected two growing, finite numbers"),
        ({"position_range": (0, 1e200)}, "task.position_range: expected positions that are finite in float32"),
        ({"noise": -1}, "task.noise: expected a number from 0"),
        ({"batch_size": 1}, "training.batch_size: expected at least one example for each action of 5, got 1"),
        ({"batch_size": 20, "train_examples": 10}, "training.train_examples: expected at least a batch of 20, got 10"),
        ({"device": "cuda:99"}, "training.device: cannot use 'cuda:99': "),
        ({"device": "gpu"}, "training.device: cannot use 'gpu': "),
        ({"device": ""}, "training.device: cannot use '': "),
        ({"device": "meta"}, "training.device: cannot use 'meta': "),
        ({"num_heads": 0}, "model.num_heads: expected at least 1, got 0"),
        ({"model": f"{PLAIN}:Hinted", "depth": -1}, "model.depth: expected at least 0"),
        ({"model": f"{PLAIN}:Counted"}, "model: '.*Counted' cannot be made: TypeError: .*'depth'"),
        ({"model": f"{PLAIN}:number"}, "model: expected '.*number' to make a torch.nn.Module, got int"),
        ({"task": "random-composition", "factors": 1}, "task.factors: expected a whole number of at least 2, got 1"),
        ({"task": "table-composition"}, "task.path: expected a file"),
        ({"task": f"{PLAIN}:number"}, "task: '.*number' cannot be made: TypeError: .*'num_roles'"),
        ({"task": f"{PLAIN}:Refuses"}, "task: '.*Refuses' cannot be made: OSError: no disk"),
        ({"task": f"{PLAIN}:Bad"}, "task: expected '.*Bad' to make a task, got one without sizes, conditions"),
        ({**OWN, "task.size": 0}, "task.size: expected at least 1, got 0"),
        ({**OWN, "task": f"{__name__}:Broken"}, "task: '.*Broken' cannot draw examples: KeyError: 'far'"),
        ({**OWN, "task": f"{__name__}:Infinite"}, "task: expected '.*Infinite' to draw numbers that are finite"),
        ({**OWN, "even": True, "batch_size": 2}, "training.batch_size: expected at least one example for each kind"),
    ],
)
def test_the_key_that_is_wrong_is_named(changes, message, as_users_run_it):
    spec = RunSpec.of(changes)
    for refuse in (check, prepare):
        with pytest.raises(SpecError, match=f"^{message}"):
            refuse(spec)


class Broken(components.Lines):
    """Has a condition that cannot be drawn."""

    def draw(self, condition, count, generator, dtype):
        return {"train": super().draw, "near": super().draw}[condition](condition, count, generator, dtype)


class Infinite(components.Lines):
    """Draws what is not a number."""

    def draw(self, condition, count, generator, dtype):
        batch = super().draw(condition, count, generator, dtype)
        return batch._replace(target=batch.target / 0)


def one_shape(factors):
    """Each colour has one shape, so that no other shape can be asked for."""
    return factors.column("shape") != factors.column("colour")


def test_a_split_that_leaves_an_action_without_training_is_refused():
    spec = RunSpec.of({"split": f"{__name__}:one_shape", "require_change": True})
    for refuse in (check, prepare):
        with pytest.raises(SpecError, match=r"^task.split: it leaves some action without pairs in training: \['shape'"):
            refuse(spec)


def test_options_of_the_right_type_are_taken():
    check(RunSpec.of({"model": "classical", "head_dim": None, "num_heads": 2}))
    for options in ({"depth": 2, "rate": 1}, {"rate": None, "mode": "x"}, {"mode": 3, "names": ["a", "b"]}):
        check(RunSpec.of({"model": f"{PLAIN}:Hinted", **options}))
    for name in ("Plain", "Unresolved"):
        check(RunSpec.of({"model": f"{PLAIN}:{name}", "model.depth": "any"}))
    assert check(RunSpec.of(OWN)) == 6


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"train_examples": 10**12}, "training.train_examples"),
        ({"test_examples": 10**12}, "training.test_examples"),
        ({"model": "classical", "batch_size": 10**9, "train_examples": 10**9}, "model.num_heads, training.batch_size"),
        ({"num_heads": 10**9}, "model.num_heads, training.test_examples"),
        ({"model": "resnet-matched", "num_heads": 10**9}, "model.num_heads, training.test_examples"),
        ({"model": "resnet", "width": 10**9}, "model.width, training.test_examples"),
        ({"model": f"{PLAIN}:Wide", "width": 10**12}, "model.width"),
        # Weights of 0.5 GB, but what is between them and the answers to a test is a thousand times as much.
        (
            {"model": "classical-roles", "num_heads": 10**5, "head_dim": 13},
            "model.head_dim, model.num_heads, training.test_examples",
        ),
        ({**OWN, "train_examples": 10**12}, "training.train_examples"),
    ],
)
def test_what_no_machine_can_hold_is_refused(changes, keys, as_users_run_it):
    message = f"^{keys}: expected a run that fits into this machine's .* GB of memory, got one that needs .* GB"
    with pytest.raises(SpecError, match=message):
        check(RunSpec.of(changes))


def test_the_machine_decides(monkeypatch):
    spec = RunSpec.of({"train_examples": 100_000})  # 416 bytes for each pair
    monkeypatch.setattr("tpr_attention.training.memory._memory", lambda: 45e6)
    check(spec)
    monkeypatch.setattr("tpr_attention.training.memory._memory", lambda: 40e6)
    with pytest.raises(SpecError, match=r"training.train_examples: .* 0.0 GB of memory, .* for 100000 examples"):
        check(spec)


def test_of_compact_examples_only_a_batch_must_fit(monkeypatch):
    """One of 13 numbers in float32 is 26 numbers and a group, twice."""
    spec = RunSpec.of({**OWN, "task": f"{components.__name__}:CompactLines", "task.size": 13, "train_examples": 1e9})
    monkeypatch.setattr("tpr_attention.training.memory._memory", lambda: 1e5)
    check(spec)
    with pytest.raises(SpecError, match=r"^training.batch_size: .* for a batch of 100000"):
        check(spec.changed({"batch_size": 100_000}))


def test_sizes_that_no_tensor_has_are_refused(as_users_run_it):
    said = (
        r"model: 'tpr' cannot be made with .*: ValueError: .*num_heads=10+, .*: expected sizes whose numbers fit into"
    )
    with pytest.raises(SpecError, match=said):
        check(RunSpec.of({"num_heads": 10**18}))


def test_a_model_that_needs_numbers_to_be_made_is_taken(as_users_run_it):
    assert check(RunSpec.of({"model": f"{PLAIN}:Calibrated", "width": 2000})) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WrongShape", "forward: the output cannot be measured: output: expected the target's shape"),
        ("Nothing", "forward: expected a tensor, got NoneType"),
        ("Raises", "forward: raised KeyError: 'colour'"),
        ("Frozen", "parameters: expected at least one"),
        ("Whole", "forward: expected an output of torch.float32, as the batch has, got torch.int64"),
        ("EditsInputs", "forward: expected inputs to be left as they are"),
        ("StaysInTraining", "eval: expected evaluation mode everywhere"),
    ],
)
def test_a_model_is_tried_before_it_is_trained(name, message, as_users_run_it):
    spec = RunSpec.of({"model": f"{PLAIN}:{name}"})
    for refuse in (check, prepare):
        with pytest.raises(SpecError, match=f"^model: '{PLAIN}:{name}' breaks the contract: {message}"):
            refuse(spec)


def test_a_model_that_cannot_be_fitted_is_refused(as_users_run_it):
    with pytest.raises(SpecError, match=r"model: '.*Unfit' cannot be fitted: ZeroDivisionError"):
        check(RunSpec.of({"model": f"{PLAIN}:Unfit"}))


@pytest.mark.parametrize(
    "sizes",
    [
        {"batch_size": 5, "train_examples": 5, "test_examples": 1},
        {"batch_size": 7, "train_examples": 20, "test_examples": 3},
        {"batch_size": 6, "train_examples": 11, "test_examples": 2, "balance_actions": False},
    ],
)
@pytest.mark.parametrize("model", ["tpr", "classical-roles", "linear-floor"])
def test_the_smallest_sizes_give_finite_losses(sizes, model):
    """One pair for each action, one for each test, and what is left of a batch unused."""
    events = train([RunSpec.of({"model": model, "steps": 3, **sizes})])
    points = [event for event in events if isinstance(event, Point)]
    assert {point.condition for point in points} >= {"in_distribution", "ood_composition"}
    assert torch.tensor([value for point in points for value in point.values]).isfinite().all()


@pytest.mark.parametrize("model", ["tpr-stack", "classical"])
def test_large_worlds_are_looked_at_closely(model, monkeypatch):
    monkeypatch.setattr("tpr_attention.training.memory._memory", lambda: 2e9)
    world = {"task": "random-composition", "factors": 40, "task.filler_dim": 64}
    with pytest.raises(SpecError, match=r"expected a run that fits into this machine's 2\.0 GB of memory"):
        check(RunSpec.of({**world, "model": model, "train_examples": 100, "test_examples": 1000}))


def test_batches_are_cut_once_and_balanced():
    run = prepare(RunSpec.of({"train_examples": 520, "batch_size": 50, "interaction": "shape_col"}))
    actions = run.pool.groups["action"]
    assert [tuple(tensor.shape) for tensor in run.pool.inputs] == [(10, 50, 6, 3), (10, 50, 6, 3), (10, 50, 5)]
    assert torch.equal(actions, torch.arange(5).repeat_interleave(10).expand(10, -1))
    flat = run.pool.map(lambda tensor: tensor.flatten(0, 1))
    torch.testing.assert_close(run.task.best_answer(*flat.inputs), flat.target)
    assert len(flat.inputs[0].unique(dim=0)) > 400
    from_task = run.task.draw_evenly("train", 100, named_generator(0, "train"), torch.float32)
    assert torch.equal(run.pool.inputs[0][3, 10:20], from_task.inputs[0][100 + 30 : 100 + 40])


def test_batches_of_a_task_without_even_groups_are_consecutive():
    run = prepare(RunSpec.of({**OWN, "train_examples": 32}))
    drawn = make_task(run.spec.task, 0).draw("train", 30, named_generator(0, "train"), torch.float32)
    assert run.even_group is None
    for found, tensor in zip(run.pool.tensors(), drawn.tensors(), strict=True):
        assert torch.equal(found.flatten(0, 1), tensor)
        assert found.shape[:2] == (5, 6)
    for condition, test in run.tests.items():
        wanted = run.task.draw(condition, 9, named_generator(0, f"eval/{condition}"), torch.float32)
        assert all(map(torch.equal, test.map(lambda tensor: tensor[0]).tensors(), wanted.tensors()))


def test_a_task_is_given_the_seed_of_the_run_if_it_asks():
    assert prepare(RunSpec.of({**OWN, "seed": 7})).task.seed == 7
    spec = RunSpec.of({"interaction": "shape_col"})
    first, again, other = (make_task(spec.task, seed).encoding.tables[-1].fillers for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_names_are_those_of_the_task():
    assert names_of(prepare(RunSpec.of(OWN))) == {
        "conditions": ["near", "far"],
        "metrics": ["loss", "largest"],
        "groups": {"kind": ["a", "b", "c"]},
        "axes": {},
    }
    found = names_of(prepare(RunSpec.of({"train_examples": 100})))
    assert found["metrics"] == ["loss", *found["axes"]["role"]]


def test_a_prepared_run_does_not_depend_on_the_global_state():
    spec = RunSpec.of(OWN)
    torch.manual_seed(1)
    first = prepare(spec)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    again = prepare(spec)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(map(torch.equal, first.pool.tensors(), again.pool.tensors()))
    assert isinstance(first.pool, Batch)
    assert all(map(torch.equal, first.model.state_dict().values(), again.model.state_dict().values()))
