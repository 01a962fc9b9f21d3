"""What cannot be run is refused by the key that is wrong, before anything is written."""

from dataclasses import replace

import pytest
import torch

from tpr_attention.data import SPLITS
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.prepare import check, prepare
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.train import train

from ..models import contestants

PLAIN = contestants.__name__


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "tqr"}, "model: expected one of .*did you mean 'tpr'"),
        ({"split": ""}, "split: expected one of"),
        ({"split": "square_rd"}, "split: .*did you mean 'square_red'"),
        ({"interaction": "shape_color"}, "interaction: .*did you mean 'shape_col'"),
        ({"mixing": "norml"}, "mixing: .*did you mean 'normal'"),
        ({"scale_angles": ()}, "scale_angles: expected 6"),
        ({"split": "square_pos", "position_range": (-2, -1)}, "split: it leaves no pairs .* 'ood_reference'"),
        ({"split": "square_pos", "position_range": (1, 2)}, "split: it leaves no pairs .* 'ood_composition'"),
        ({"position_range": (-1e308, 1e308)}, "position_range: expected two growing, finite numbers"),
        ({"position_range": (0, 1e200)}, "position_range: expected positions that are finite as torch.float32"),
        ({"batch": 1}, "batch: expected at least one pair for each of 5 actions, got 1"),
        ({"options": {"heads": 4}}, r"options.heads: expected one of .* 'tpr': .*; did you mean 'num_heads'\?"),
        ({"options": {"num_heads": 0}}, "options.num_heads: expected at least 1, got 0"),
        ({"options": {"num_heads": 2.5}}, "options.num_heads: expected a whole number, got 2.5"),
        ({"options": {"num_heads": "8"}}, "options.num_heads: expected a whole number, got '8'"),
        ({"options": {"num_heads": True}}, "options.num_heads: expected a whole number, got True"),
        ({"options": {"num_heads": None}}, "options.num_heads: expected a whole number, got None"),
        ({"options": {"learn_ids": 5}}, "options.learn_ids: expected true or false, got 5"),
        ({"model": "classical", "options": {"head_dim": 1.5}}, "options.head_dim: expected a whole number, got 1.5"),
        ({"model": "resnet-matched", "options": {"num_heads": "x"}}, "options.num_heads: expected a whole number"),
        ({"model": f"{PLAIN}:Hinted", "options": {"depth": "x"}}, "options.depth: expected a whole number, got 'x'"),
        ({"model": f"{PLAIN}:Hinted", "options": {"rate": True}}, "options.rate: expected a finite number, got True"),
        ({"model": f"{PLAIN}:Hinted", "options": {"mode": 0.5}}, "options.mode: expected a whole number or a text"),
        ({"model": f"{PLAIN}:Hinted", "options": {"depth": -1}}, "options.depth: expected at least 0"),
    ],
)
def test_the_key_that_is_wrong_is_named(changes, message, as_users_run_it):
    with pytest.raises(SpecError, match=f"^{message}"):
        check(replace(RunSpec(), **changes))


def test_a_split_that_leaves_an_action_without_training_is_refused(monkeypatch):
    """Each colour has one shape, so that no other shape can be asked for."""
    monkeypatch.setitem(SPLITS, "one_shape", lambda factors: factors.column("shape") != factors.column("colour"))
    with pytest.raises(SpecError, match="split: 'one_shape' leaves some action without pairs in training"):
        check(RunSpec(split="one_shape", require_change=True))


def test_options_of_the_right_type_are_taken():
    check(RunSpec(model="classical", options={"head_dim": None, "num_heads": 2}))
    for options in ({"depth": 2, "rate": 1}, {"rate": None, "mode": "x"}, {"mode": 3, "names": "ab"}):
        check(RunSpec(model=f"{PLAIN}:Hinted", options=options))
    for name in ("Plain", "Unresolved"):
        check(RunSpec(model=f"{PLAIN}:{name}", options={"depth": "any"}))


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"train_pairs": 10**12}, "train_pairs"),
        ({"eval_pairs": 10**12}, "eval_pairs"),
        ({"eval_pairs": 10**30}, "eval_pairs"),
        ({"model": "classical", "batch": 10**9, "train_pairs": 10**9}, "batch"),
        ({"options": {"num_heads": 10**9}}, "options.num_heads, eval_pairs"),
        ({"model": "resnet-matched", "options": {"num_heads": 10**9}}, "options.num_heads, eval_pairs"),
        ({"model": "resnet", "options": {"width": 10**9}}, "options.width, eval_pairs"),
        ({"model": f"{PLAIN}:Wide", "options": {"width": 10**12}}, "options.width"),
        # Weights of 0.5 GB, but what is between them and the answers to a test is a thousand times as much.
        (
            {"model": "classical-roles", "options": {"num_heads": 10**5, "head_dim": 13}},
            "options.head_dim, .*num_heads",
        ),
    ],
)
def test_what_no_machine_can_hold_is_refused(changes, keys, as_users_run_it):
    message = f"^{keys}.*: expected a run that fits into this machine's .* GB of memory, got one that needs .* GB"
    with pytest.raises(SpecError, match=message):
        check(replace(RunSpec(), **changes))


def test_the_machine_decides(monkeypatch):
    spec = RunSpec(train_pairs=100_000)  # 400 bytes for each pair
    monkeypatch.setattr("tpr_attention.experiments.footprint._memory", lambda: 45e6)
    check(spec)
    monkeypatch.setattr("tpr_attention.experiments.footprint._memory", lambda: 40e6)
    with pytest.raises(SpecError, match=r"train_pairs: .* 0.0 GB of memory, .* for 100000 pairs"):
        check(spec)


def test_sizes_that_no_tensor_has_are_refused(as_users_run_it):
    with pytest.raises(SpecError, match=r"model: 'tpr' cannot be made with \{'num_heads': 10+\}: RuntimeError"):
        check(RunSpec(options={"num_heads": 10**18}))


def test_a_model_that_needs_numbers_to_be_made_is_taken(as_users_run_it):
    assert check(RunSpec(model=f"{PLAIN}:Calibrated", options={"width": 2000})) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WrongShape", "forward: expected the shape of the reference"),
        ("Nothing", "forward: expected a tensor, got NoneType"),
        ("Raises", "forward: raised KeyError: 'colour'"),
        ("Frozen", "parameters: expected at least one"),
        ("Whole", "forward: expected the dtype of the reference, torch.float32, got torch.int64"),
        ("EditsInputs", "forward: expected inputs to be left as they are"),
        ("StaysInTraining", "eval: expected evaluation mode everywhere"),
    ],
)
def test_a_model_is_tried_before_it_is_trained(name, message, as_users_run_it):
    spec = RunSpec(model=f"{PLAIN}:{name}")
    for refuse in (check, prepare):
        with pytest.raises(ValueError, match=f"^model: '{PLAIN}:{name}' breaks the contract: {message}"):
            refuse(spec)


def test_a_model_that_cannot_be_fitted_is_refused(as_users_run_it):
    with pytest.raises(SpecError, match=r"model: '.*Unfit' cannot be fitted: ZeroDivisionError"):
        check(RunSpec(model=f"{PLAIN}:Unfit"))


@pytest.mark.parametrize(
    "sizes",
    [
        {"batch": 5, "train_pairs": 5, "eval_pairs": 1},
        {"batch": 7, "train_pairs": 20, "eval_pairs": 3},
        {"batch": 6, "train_pairs": 11, "eval_pairs": 2, "balance_actions": False},
    ],
)
@pytest.mark.parametrize("model", ["tpr", "classical-roles", "linear-floor"])
def test_the_smallest_sizes_give_finite_losses(sizes, model):
    """One pair for each action, one for each test, and what is left of a batch unused."""
    points = [event for event in train([RunSpec(model=model, steps=3, **sizes)]) if isinstance(event, Point)]
    assert {point.condition for point in points} >= {"in_distribution", "ood_composition"}
    assert torch.tensor([point.losses for point in points]).isfinite().all()


@pytest.mark.parametrize("model", ["tpr-stack", "classical"])
def test_large_worlds_are_looked_at_closely(model, monkeypatch):
    monkeypatch.setattr("tpr_attention.experiments.footprint._memory", lambda: 2e9)
    with pytest.raises(SpecError, match=r"expected a run that fits into this machine's 2\.0 GB of memory"):
        check(RunSpec(model=model, factors=40, filler_dim=64, train_pairs=100, eval_pairs=1000))
