"""Runs that are trained together are trained as if each were alone, and every model's curve is what it was."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tpr_attention.data import Batch, stream
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.prepare import eval_steps, prepare
from tpr_attention.experiments.program import can_compile
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.train import Finished, Pause, groups, train
from tpr_attention.models import MODELS

from ..models import contestants

SMALL = RunSpec(steps=30, train_pairs=500, eval_pairs=100, interaction="shape_col", batch=50)
LEARNERS = [name for name in MODELS if name not in ("oracle", "linear-floor")]


def curve(specs, **fields):
    """Losses of every run, step, condition and role."""
    return {
        event[:3]: event.losses for event in train(specs, **fields) if isinstance(event, Point) and event.action is None
    }


def alone(spec):
    """The loop that everyone writes: one model, `torch.optim.Adam`, a cosine."""
    run = prepare(spec)
    model, pool = run.model.train(), run.pool
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=spec.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, spec.steps)
    for step in range(spec.steps):
        batch = Batch(*(tensor[step % len(pool.action)] for tensor in pool))
        losses = (model(*batch[:3]) - batch.target).square().mean((0, 2))
        optimiser.zero_grad()
        (losses * run.role_weights).sum().backward()
        optimiser.step()
        schedule.step()
    return model.eval(), run


@pytest.mark.parametrize("name", LEARNERS)
def test_together_is_as_alone(name):
    """To single precision: after thirty steps, weights differ by less than 1e-4 and losses by less than a thousandth.

    But for the bias of keys, which a softmax does not see: its gradient is rounding, and Adam makes steps of it.
    """
    specs = [
        replace(SMALL, model=name, seed=0, learning_rate=0.01),
        replace(SMALL, model=name, seed=1, learning_rate=0.003, split="scale_pos"),
        replace(SMALL, model=name, seed=2, interaction="scale_pos", loss_roles="factors", start_at_copy=False),
    ]
    events = list(train(specs, compiled=False))
    found = {event.run: event.weights for event in events if isinstance(event, Finished)}
    losses = {event[:3]: event.losses for event in events if isinstance(event, Point) and event.action is None}
    for spec in specs:
        model, run = alone(spec)
        for key, tensor in model.state_dict().items():
            if not key.endswith("attention.key.bias"):
                torch.testing.assert_close(found[spec.digest][key], tensor, rtol=1e-4, atol=1e-4)
        for condition, batch in run.evaluation.items():
            expected = (model(*batch[:3]) - batch.target).square().mean((0, 2))
            torch.testing.assert_close(torch.tensor(losses[spec.digest, 30, condition]), expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["Normed", "Branches", "Swap"])
def test_a_model_of_ones_own_is_trained_as_if_alone(name, as_users_run_it):
    """Also one that changes buffers in training, and one that cannot be stacked."""
    specs = [replace(SMALL, model=f"{contestants.__name__}:{name}", seed=seed) for seed in range(2)]
    found = {event.run: event.weights for event in train(specs) if isinstance(event, Finished)}
    for spec in specs:
        model, _ = alone(spec)
        assert set(found[spec.digest]) == set(model.state_dict())
        for key, tensor in model.state_dict().items():
            torch.testing.assert_close(found[spec.digest][key], tensor, rtol=1e-4, atol=1e-4)


def test_what_a_model_draws_in_training_is_repeatable():
    specs = [replace(SMALL, model=f"{contestants.__name__}:Drops", seed=seed) for seed in range(2)]
    torch.manual_seed(1)
    first = curve(specs)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert curve(specs) == first
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", ["tpr", "resnet"])
def test_pairs_that_are_not_sorted_by_action(name):
    spec = replace(SMALL, model=name, balance_actions=False)
    model, _ = alone(spec)
    *_, finished = train([spec])
    for key, tensor in model.state_dict().items():
        torch.testing.assert_close(finished.weights[key], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not can_compile(), reason="needs a C++ compiler")
def test_a_compiled_step_is_the_same_step():
    command = [sys.executable, "-m", "tests.experiments.compile_training"]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.split() == ["tpr", "resnet", "classical", "many"]


def without_pauses(events):
    """Pauses come as time passes."""
    return [event for event in events if not isinstance(event, Pause)]


def check_equal(first, again):
    for one, other in zip(without_pauses(first), without_pauses(again), strict=True):
        if isinstance(one, Point):
            assert one == other
        else:
            assert one.run == other.run
            assert all(torch.equal(tensor, other.weights[key]) for key, tensor in one.weights.items())


def test_the_same_bits_every_time():
    specs = [replace(SMALL, seed=seed) for seed in range(2)]
    torch.manual_seed(1)
    first = list(train(specs))
    torch.manual_seed(2)
    check_equal(first, train(specs))


@pytest.mark.parametrize("model", ["tpr", "classical-roles", "Drops", "Normed", "oracle"])
def test_a_training_goes_on_from_any_pause(model, monkeypatch, as_users_run_it):
    """Bitwise, whatever it draws on the way and whatever it keeps in buffers."""
    monkeypatch.setattr("tpr_attention.experiments.train.PATIENCE", 0.0)
    own = f"{contestants.__name__}:{model}"
    specs = [replace(SMALL, model=own if model[0].isupper() else model, seed=seed) for seed in range(2)]
    events, pauses = [], []
    for event in train(specs):
        events.append(event)
        if isinstance(event, Pause):
            pauses.append((len(events), event.step, {name: tensor.clone() for name, tensor in event.state().items()}))
    assert [step for _, step, _ in pauses] == ([0, 30] if model == "oracle" else list(range(31)))
    for place, step, state in pauses[:: 1 if model == "oracle" else 7] + pauses[-1:]:
        check_equal(events[place:], train(specs, begin=(step, state)))


class Explodes(contestants.Swap):
    """Infinite once a gate is large: only a high rate takes it there."""

    def update(self, reference, transform, action):
        return super().update(reference, transform, action) / (self.gate.abs().max() < 3)


@pytest.mark.parametrize("model", ["tests.experiments.test_train:Explodes", "tpr", "resnet"])
def test_a_run_that_diverges_stops_alone(model, as_users_run_it):
    """The others are bitwise as if it had lived, and it keeps the last weights that were finite."""
    swap = model.endswith("Explodes")
    rates = [0.001, 5.0 if swap else 1e30, 0.002]
    options = {"scale": 0.01} if swap else {}
    specs = [
        replace(SMALL, model=model, options=options, seed=seed, learning_rate=rate, start_at_copy=False)
        for seed, rate in enumerate(rates)
    ]
    tame = [specs[0], replace(specs[1], learning_rate=0.001), specs[2]]
    events, tamed = list(train(specs)), list(train(tame))
    ends = {event.run: event for event in events if isinstance(event, Finished)}
    divergence = ends[specs[1].digest].divergence
    assert divergence is not None
    assert 1 < divergence.step <= 30
    assert divergence.tensor == "output" if swap else divergence.tensor.split()[0] in ("output", "loss", "norm")
    assert all(tensor.isfinite().all() for tensor in ends[specs[1].digest].weights.values())
    late = {event.step for event in events if isinstance(event, Point) and event.run == specs[1].digest}
    assert max(late) < divergence.step
    survivors = {specs[0].digest, specs[2].digest}
    assert all(ends[run].divergence is None for run in survivors)
    kept, expected = ([event for event in without_pauses(found) if event.run in survivors] for found in (events, tamed))
    check_equal(kept, expected)


def test_a_group_that_diverges_wholly_ends_early():
    (end,) = (event for event in train([replace(SMALL, learning_rate=1e30)]) if isinstance(event, Finished))
    assert end.divergence is not None
    assert end.weights


def test_what_a_model_draws_does_not_depend_on_its_company():
    specs = [replace(SMALL, model=f"{contestants.__name__}:Drops", seed=seed) for seed in range(2)]
    assert curve(specs) == curve(specs[:1]) | curve(specs[1:])


def test_points_come_for_every_condition_and_step():
    points = curve([SMALL])
    steps = eval_steps(30)
    assert steps == [0, 1, 2, 4, 8, 16, 30]
    tests = ("in_distribution", "ood_reference", "ood_transform", "ood_composition")
    assert {(step, condition) for _, step, condition in points} == {
        *((step, condition) for step in steps for condition in tests),
        *((step, "train") for step in steps[1:]),
    }
    assert {len(losses) for losses in points.values()} == {6}


@pytest.mark.parametrize("name", ["tpr", "classical-roles", "oracle"])
def test_losses_of_actions_make_up_the_whole(name):
    """At the end, for models that are evaluated sorted by action, one by one, and not trained at all."""
    spec = replace(SMALL, model=name)
    events = list(train([spec, replace(spec, seed=1)]))
    run = prepare(spec)
    for condition, batch in run.evaluation.items():
        at_end = [event for event in events if event[:3] == (spec.digest, 30, condition)]
        (whole,) = (event.losses for event in at_end if event.action is None)
        parts = {event.action: event.losses for event in at_end if event.action is not None}
        shares = dict(zip(run.task.grid.actions, batch.action.mean(0).tolist(), strict=True))
        assert set(parts) == {action for action, share in shares.items() if share > 0}
        summed = sum(shares[action] * torch.tensor(losses) for action, losses in parts.items())
        torch.testing.assert_close(summed, torch.tensor(whole), rtol=1e-5, atol=1e-12)
    assert set(parts) == {"shape", "colour"}


@pytest.mark.parametrize("steps", [1, 2, 999, 1000, 10_000, 12_345])
def test_eval_steps_show_the_early_and_the_late_part(steps):
    found = eval_steps(steps)
    assert found[0] == 0
    assert found[-1] == steps
    assert found == sorted(set(found))
    assert len(found) <= 60
    assert len([step for step in found if step > steps / 2]) >= (10 if steps >= 1000 else 1)


def test_a_model_that_is_not_trained_has_two_points():
    for name in ("oracle", "linear-floor"):
        points = curve([replace(SMALL, model=name), replace(SMALL, model=name, seed=1)])
        assert {step for _, step, _ in points} == {0, 30}
        assert "train" not in {condition for _, _, condition in points}


def test_training_starts_at_the_copy():
    points = curve([SMALL])
    run = prepare(SMALL)
    for condition, batch in run.evaluation.items():
        expected = (batch.reference - batch.target).square().mean((0, 2))
        torch.testing.assert_close(torch.tensor(points[SMALL.digest, 0, condition]), expected)


def test_groups_share_a_program():
    specs = [
        RunSpec(model=model, options=options, split=split, interaction=interaction, seed=seed, learning_rate=rate)
        for model, options in (("tpr", {"num_heads": 4}), ("tpr", {"num_heads": 8}), ("resnet", {}))
        for split in ("square_red", "scale_pos")
        for interaction in (None, "scale_pos", "shape_col")
        for seed in range(5)
        for rate in (0.01, 0.001)
    ]
    found = groups(specs)
    assert sorted(spec.digest for group in found for spec in group) == sorted(spec.digest for spec in specs)
    assert max(map(len, found)) == 15
    for group in found:
        assert len({(spec.model, str(spec.options), spec.interaction is None) for spec in group}) == 1
    with pytest.raises(ValueError, match="specs: expected those of one group, got 2 groups of 2 runs"):
        next(iter(train([specs[0], specs[-1]])))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": "tqr"}, ValueError, "model: .*did you mean 'tpr'"),
        ({"options": {"heads": 4}}, ValueError, "options of 'tpr': .*did you mean 'num_heads'"),
        ({"options": {"num_heads": 0}}, ValueError, "num_heads: expected at least 1"),
        ({"split": "square_rd"}, ValueError, "split: .*did you mean 'square_red'"),
        ({"batch": 4}, SpecError, "batch: expected at least one pair for each of 5 actions, got 4"),
        ({"model": "tests.models.contestants:Nothing"}, ValueError, "forward: expected a tensor, got NoneType"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(changes, error, message):
    with pytest.raises(error, match=message):
        next(iter(train([replace(SMALL, **changes)])))


def test_batches_are_cut_once_and_balanced():
    run = prepare(replace(SMALL, train_pairs=520))
    assert run.pool.action.shape == (10, 50, 5)
    assert (run.pool.action.sum(1) == 10).all()
    assert torch.equal(run.pool.action, run.pool.action[:1].expand(10, -1, -1))
    flat = Batch(*(tensor.flatten(0, 1) for tensor in run.pool))
    torch.testing.assert_close(run.task.best_answer(*flat[:3]), flat.target)
    assert len(run.pool.reference.flatten(0, 1).unique(dim=0)) > 400
    again = run.task.encode(run.task.pairing.draw_each("train", 100, stream(0, "train")))
    assert torch.equal(run.pool.reference[3, 10:20], again.reference[100 + 30 : 100 + 40])
