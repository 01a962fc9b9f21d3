"""Runs that are trained together are trained as if each were alone."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tpr_attention.models import MODELS
from tpr_attention.training.points import Point
from tpr_attention.training.prepare import prepare
from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.stack import can_compile
from tpr_attention.training.train import Pause, evaluation_steps, groups, is_worth_compiling, train

from ..models import contestants
from . import components
from .runs import LINES, SMALL, alone, check_equal, curve, of_run, own, weights, without_pauses

LEARNERS = [name for name, path in MODELS.items() if ".composition." in path and name not in ("oracle", "linear-floor")]
PLAIN = contestants.__name__


@pytest.mark.parametrize("name", LEARNERS)
def test_together_is_as_alone(name, as_users_run_it):
    """To single precision: after thirty steps, weights differ by less than 1e-4 and losses by less than a thousandth.

    But for the bias of keys, which a softmax does not see: its gradient is rounding, and Adam makes steps of it. So it
    does, after a few steps, with laws of the third number of orientations, which is always zero.
    """
    base = SMALL.changed({"model": name, "steps": 3 if name == "tpr-laws" else 30})
    specs = [
        base.changed({"learning_rate": 0.01}),
        base.changed({"seed": 1, "learning_rate": 0.003, "split": "scale_pos"}),
        base.changed({"seed": 2, "interaction": "scale_pos"}),
    ]
    events = list(train(specs, compiled=False))
    found = weights(events)
    losses = {event[:3]: event.values for event in events if isinstance(event, Point) and event.group is None}
    for spec in specs:
        model, run = alone(spec)
        for key, tensor in model.state_dict().items():
            if not key.endswith("attention.key.bias"):
                torch.testing.assert_close(found[spec.digest][key], tensor, rtol=1e-4, atol=1e-4)
        for condition, test in run.tests.items():
            batch = test.map(lambda tensor: tensor[0])
            measured = run.task.measure(model(*batch.inputs), batch)
            expected = torch.stack([values.mean() for values in measured.values()])
            torch.testing.assert_close(
                torch.tensor(losses[spec.digest, base.training.steps, condition]), expected, rtol=1e-3, atol=1e-6
            )


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
@pytest.mark.parametrize("schedule", ["cosine", "constant", "late-decay"])
@pytest.mark.parametrize("spec", [LINES, SMALL.changed({"model": "resnet"})], ids=["stacked", "folded"])
def test_optimisers_and_schedules_are_those_of_torch(optimiser, schedule, spec):
    spec = spec.changed({"optimiser": optimiser, "schedule": schedule})
    model, _ = alone(spec, torch.float64)
    (found,) = weights(train([spec], dtype=torch.float64)).values()
    for key, tensor in model.state_dict().items():
        torch.testing.assert_close(found[key], tensor, rtol=1e-9, atol=1e-9)


def test_optimisers_and_schedules_differ():
    found = [
        torch.cat([tensor.flatten() for tensor in one.values()])
        for changes in ({}, {"optimiser": "sgd"}, {"schedule": "constant"})
        for one in weights(train([LINES.changed(changes)])).values()
    ]
    assert min((found[i] - found[j]).abs().max() for i in range(3) for j in range(i)) > 1e-3


@pytest.mark.parametrize("name", ["Normed", "Branches", "Swap"])
def test_a_model_of_ones_own_is_trained_as_if_alone(name, as_users_run_it):
    """Also one that changes buffers in training, and one that cannot be stacked."""
    specs = [SMALL.changed({"model": f"{PLAIN}:{name}", "seed": seed}) for seed in range(2)]
    found = weights(train(specs))
    for spec in specs:
        model, _ = alone(spec)
        assert set(found[spec.digest]) == set(model.state_dict())
        for key, tensor in model.state_dict().items():
            torch.testing.assert_close(found[spec.digest][key], tensor, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("spec", [own("Dropping"), own("Branching"), SMALL.changed({"model": f"{PLAIN}:Drops"})])
def test_models_that_cannot_be_stacked_have_the_same_bits_alone_and_in_company(spec):
    """Whatever the state of torch's global generator, which is left as it was."""
    specs = [spec.with_seed(seed) for seed in range(3)]
    torch.manual_seed(1)
    together = list(train(specs))
    torch.manual_seed(2)
    before = torch.get_rng_state()
    for spec in specs:
        check_equal(of_run(together, spec), train([spec]))
    assert torch.equal(torch.get_rng_state(), before)
    check_equal(together, train(specs))


def test_what_a_model_draws_differs_from_step_to_step_and_from_run_to_run():
    """With one batch and a rate of almost zero, losses would all be the same without dropout."""
    spec = own("Dropping").changed({"train_examples": 50, "learning_rate": 1e-30})
    found = curve([spec])
    losses = [found[spec.digest, step, "train"][0] for step in (1, 2, 4, 8, 16, 30)]
    assert len(set(losses)) == len(losses)
    states = [event.state()["random_states"] for event in train([spec, spec.with_seed(1)]) if isinstance(event, Pause)]
    assert not torch.equal(states[-1][0], states[-1][1])


def test_a_metric_that_cannot_be_stacked_is_measured_run_by_run():
    """With the same points, and further ones for the metric."""
    specs = [LINES.with_seed(seed) for seed in range(2)]
    ranked = [spec.changed({"task": f"{components.__name__}:SortedMedian"}) for spec in specs]
    assert len(groups(ranked)) == 1
    events = list(train(ranked))
    for spec, plain in zip(ranked, specs, strict=True):
        found, expected = of_run(events, spec), without_pauses(train([plain]))
        assert len(found) == len(expected)
        for one, other in zip(found[:-1], expected[:-1], strict=True):
            assert one[1:4] == other[1:4]
            assert one.values[: len(other.values)] == pytest.approx(other.values, rel=1e-5)
            assert len(one.values) == (1 if one.condition == "train" else 3)
        assert found[-1].names["metrics"] == ["loss", "largest", "rank"]
        check_equal(found, train([spec]))
    test = [event for event in events if isinstance(event, Point) and event.condition == "far" and event.group is None]
    assert {event.values[2] for event in test} == {49.5}  # the mean rank of a hundred


@pytest.mark.parametrize("name", ["tpr", "resnet"])
def test_pairs_that_are_not_sorted_by_action(name):
    spec = SMALL.changed({"model": name, "balance_actions": False})
    model, _ = alone(spec)
    (found,) = weights(train([spec])).values()
    for key, tensor in model.state_dict().items():
        torch.testing.assert_close(found[key], tensor, rtol=1e-4, atol=1e-5)


def test_a_model_of_ones_own_may_fold():
    """With the weights that it has if examples are not sorted."""
    spec = own("FoldingSlope").changed({"even": True, "batch_size": 51})
    assert prepare(spec).even_group == "kind"
    model, _ = alone(spec, torch.float64)
    for specs in ([spec], [spec, spec.with_seed(1)]):
        found = weights(train(specs, dtype=torch.float64))[spec.digest]
        torch.testing.assert_close(found["weight"], model.weight.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(not can_compile(), reason="needs a C++ compiler")
def test_a_compiled_step_is_the_same_step():
    command = [sys.executable, "-m", "tests.training.compile_training"]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout == "done\n"


def test_points_come_for_every_condition_and_step():
    points = curve([SMALL])
    steps = evaluation_steps(30)
    assert steps == [0, 1, 2, 4, 8, 16, 30]
    tests = ("in_distribution", "ood_reference", "ood_transform", "ood_composition")
    assert {(step, condition) for _, step, condition in points} == {
        *((step, condition) for step in steps for condition in tests),
        *((step, "train") for step in steps[1:]),
    }
    assert {len(values) for (_, _, condition), values in points.items() if condition != "train"} == {7}
    assert {len(values) for (_, _, condition), values in points.items() if condition == "train"} == {1}


def test_the_training_loss_is_the_mean_since_the_point_before():
    spec = LINES.changed({"learning_rate": 1e-30, "train_examples": 100, "steps": 4})
    run, found = prepare(spec), curve([spec])
    losses = [
        run.task.measure(run.model(*batch.inputs), batch)["loss"].mean().item()
        for batch in (run.pool.map(lambda tensor, k=k: tensor[k]) for k in (0, 1, 0, 1))
    ]
    assert found[spec.digest, 1, "train"][0] == pytest.approx(losses[0], rel=1e-5)
    assert found[spec.digest, 2, "train"][0] == pytest.approx(losses[1], rel=1e-5)
    assert found[spec.digest, 4, "train"][0] == pytest.approx(sum(losses[2:]) / 2, rel=1e-5)


@pytest.mark.parametrize("name", ["tpr", "classical-roles", "oracle"])
def test_metrics_of_groups_make_up_the_whole(name):
    """At the end, for models that are evaluated sorted by action, one by one, and not trained at all."""
    spec = SMALL.changed({"model": name})
    events = list(train([spec, spec.with_seed(1)]))
    run = prepare(spec)
    for condition, test in run.tests.items():
        at_end = [event for event in events if event[:3] == (spec.digest, 30, condition)]
        (whole,) = (event.values for event in at_end if event.group is None)
        parts = {event.group: event.values for event in at_end if event.group is not None}
        actions = test.groups["action"][0]
        shares = {
            f"action={action}": (actions == number).float().mean().item()
            for number, action in enumerate(run.task.grid.actions)
        }
        assert set(parts) == {action for action, share in shares.items() if share > 0}
        summed = sum(shares[action] * torch.tensor(values) for action, values in parts.items())
        torch.testing.assert_close(summed, torch.tensor(whole), rtol=1e-5, atol=1e-12)
    assert set(parts) == {"action=shape", "action=colour"}


@pytest.mark.parametrize("steps", [1, 2, 999, 1000, 10_000, 12_345])
def test_evaluation_steps_show_the_early_and_the_late_part(steps):
    found = evaluation_steps(steps)
    assert found[0] == 0
    assert found[-1] == steps
    assert found == sorted(set(found))
    assert len(found) <= 60
    assert len([step for step in found if step > steps / 2]) >= (10 if steps >= 1000 else 1)


def test_a_model_that_is_not_trained_has_two_points():
    for name in ("oracle", "linear-floor"):
        points = curve([SMALL.changed({"model": name, "seed": seed}) for seed in range(2)])
        assert {step for _, step, _ in points} == {0, 30}
        assert "train" not in {condition for _, _, condition in points}


def test_training_starts_at_the_copy():
    points, run = curve([SMALL]), prepare(SMALL)
    for condition, test in run.tests.items():
        batch = test.map(lambda tensor: tensor[0])
        expected = (batch.inputs[0] - batch.target).square().mean((0, 2))
        torch.testing.assert_close(torch.tensor(points[SMALL.digest, 0, condition][1:]), expected)


def test_groups_are_runs_of_one_shape():
    specs = [
        RunSpec.of({**model, "split": split, "interaction": interaction, "seed": seed, "learning_rate": rate})
        for model in ({"num_heads": 4}, {"num_heads": 8}, {"model": "resnet"})
        for split in ("square_red", "scale_pos")
        for interaction in (None, "scale_pos", "shape_col")
        for seed in range(5)
        for rate in (0.01, 0.001)
    ]
    found = groups(specs)
    assert sorted(spec.digest for group in found for spec in group) == sorted(spec.digest for spec in specs)
    assert max(map(len, found)) == 15
    for group in found:
        assert len({(str(spec.model), spec.task.options["interaction"] is None) for spec in group}) == 1
    with pytest.raises(ValueError, match="specs: expected runs that can be trained together, got 2 kinds in 2 runs"):
        next(iter(train([specs[0], specs[-1]])))


def test_runs_with_large_examples_are_alone():
    """A stack of them saves nothing, and one process would have to train all of them."""
    images = RunSpec.of({"task": "images-composition", "model": "images-composer"})
    specs = [images, images.with_seed(1), images.changed({"learning_rate": 1.0}), SMALL, SMALL.with_seed(1)]
    assert [len(group) for group in groups(specs)] == [1, 1, 1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 31},
        {"batch_size": 25},
        {"train_examples": 400},
        {"test_examples": 99},
        {"optimiser": "sgd"},
        {"schedule": "constant"},
        {"device": "cuda"},
        {"model.size": 2},
        {"model": f"{components.__name__}:Dropping"},
        {"task.size": 3},
        {"slope": 2.0},
        {"task": f"{components.__name__}:SortedMedian"},
    ],
)
def test_runs_that_cannot_share_a_step_are_in_other_groups(changes):
    """Also those whose task does not say that it may be stacked with one of other options."""
    assert len(groups([LINES, LINES.with_seed(1), LINES.changed({"learning_rate": 1.0})])) == 1
    assert len(groups([LINES, LINES.changed(changes)])) == 2


def test_long_trainings_and_many_runs_are_worth_compiling():
    long = SMALL.changed({"steps": 50_000})
    assert is_worth_compiling([long])
    assert is_worth_compiling([SMALL.changed({"steps": 10_000, "seed": seed}) for seed in range(5)])
    assert not is_worth_compiling([SMALL.changed({"steps": 10_000, "seed": seed}) for seed in range(3)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_heads": 0}, "model.num_heads: expected at least 1"),
        ({"split": "square_rd"}, "task.split: .*did you mean 'square_red'"),
        ({"batch_size": 4}, "training.batch_size: expected at least one example for each action of 5, got 4"),
        ({"model": f"{PLAIN}:Nothing"}, "model: .*forward: expected a tensor, got NoneType"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(changes, message):
    with pytest.raises(SpecError, match=f"^{message}"):
        next(iter(train([SMALL.changed(changes)])))
