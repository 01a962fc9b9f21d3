"""Every condition has the held-out combination where it says, and pairs are drawn exactly and uniformly."""

from collections import Counter
from itertools import product

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition import (
    CONDITIONS,
    SPLITS,
    Column,
    Condition,
    Grid,
    HeldOut,
    Pairing,
    Pairs,
    dsprites,
    substitute,
)

from .small import large_discs, small_grid


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("require_change", [False, True])
def test_held_out_combinations_are_exactly_where_the_condition_says(split, require_change):
    """Checked with the predicate itself, on a hundred thousand pairs of each condition."""
    pairing = Pairing(HeldOut(dsprites(), SPLITS[split]), require_change=require_change)
    for name, condition in CONDITIONS.items():
        pairs = pairing.draw(name, 100_000, named_generator(0, name))
        for part in ("reference", "transform", "target"):
            wanted = getattr(condition, part)
            held = SPLITS[split](getattr(pairs, part))
            assert wanted is None or (held == wanted).all(), (name, part)
        assert torch.equal(pairs.target.classes, substitute(pairs.reference, pairs.transform, pairs.action).classes)
        acted = dsprites().acts_on[pairs.action]
        changed = ((pairs.reference.classes != pairs.transform.classes) & acted).any(1)
        assert changed.all() == (require_change or name == "ood_composition")


@pytest.mark.parametrize("target", [False, True])
def test_where_the_target_of_tests_1_and_2_falls_can_be_said(target):
    grid = dsprites()
    conditions = {
        "ood_reference": Condition(reference=True, transform=False, target=target),
        "ood_transform": Condition(reference=False, transform=True, target=target),
    }
    pairing = Pairing(HeldOut(grid, SPLITS["square_red"]), conditions=conditions)
    for name in conditions:
        assert (SPLITS["square_red"](pairing.draw(name, 10_000, named_generator(0, name)).target) == target).all()
    # Of the actions on a red square, only shape and colour make something else of it.
    assert pairing.actions("ood_reference") == (("shape", "colour") if not target else tuple(grid.actions))


def every_pair(grid, condition, action, require_change):
    """By definition: go through all references and transforms."""
    everything = grid.all()
    count = len(everything)
    first, second = (torch.tensor(numbers) for numbers in zip(*product(range(count), repeat=2), strict=True))
    pairs = Pairs(everything[first], everything[second], torch.full_like(first, list(grid.actions).index(action)))
    keep = torch.ones(len(pairs), dtype=torch.bool)
    for part in ("reference", "transform", "target"):
        wanted = getattr(condition, part)
        if wanted is not None:
            keep &= large_discs(getattr(pairs, part)) == wanted
    if require_change:
        acted = [grid.names.index(name) for name in grid.actions[action]]
        keep &= (pairs.reference.classes[:, acted] != pairs.transform.classes[:, acted]).any(1)
    return {(int(a), int(b)) for a, b in zip(first[keep], second[keep], strict=True)}


def numbers(factors):
    weights = torch.tensor([12, 4, 2, 1])
    return (factors.classes.long() * weights).sum(-1).tolist()


@pytest.mark.parametrize("require_change", [False, True])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_all_pairs_are_drawn_equally_often(condition, require_change):
    grid = small_grid()
    pairing = Pairing(HeldOut(grid, large_discs), require_change=require_change)
    for action in grid.actions:
        expected = every_pair(grid, CONDITIONS[condition], action, require_change)
        assert pairing.count(condition, action) == len(expected)
        assert (action in pairing.actions(condition)) == bool(expected)
    drawn = pairing.draw_each(condition, 60_000, named_generator(0, condition))
    for action in pairing.actions(condition):
        rows = drawn.action == list(grid.actions).index(action)
        assert rows.sum() == 60_000
        counts = Counter(zip(numbers(drawn.reference[rows]), numbers(drawn.transform[rows]), strict=True))
        expected = every_pair(grid, CONDITIONS[condition], action, require_change)
        assert set(counts) == expected
        mean = 60_000 / len(expected)
        chi_square = sum((counts[pair] - mean) ** 2 / mean for pair in expected)
        free = len(expected) - 1
        assert abs(chi_square - free) < 5 * (2 * free) ** 0.5 + 1e-9


@pytest.mark.parametrize("balance", [False, True])
def test_actions_are_balanced_or_pairs_are(balance):
    pairing = Pairing(HeldOut(dsprites(), SPLITS["scale_pos"]), balance_actions=balance)
    names = pairing.actions("train")
    counts = torch.bincount(pairing.draw("train", 200_000, named_generator(0, "a")).action, minlength=5)
    weights = torch.tensor([1.0 if balance else pairing.count("train", name) for name in names])
    expected = 200_000 * weights / weights.sum()
    assert (counts - expected).abs().max() < 5 * 40_000**0.5
    assert (counts - 40_000).abs().max() > 1500 or balance


def test_drawing_is_repeatable_and_leaves_the_global_state_alone():
    pairing = Pairing(HeldOut(dsprites(), SPLITS["square_pos"]))
    before = torch.get_rng_state()
    first, again = (pairing.draw("ood_transform", 1000, named_generator(3, "pairs")) for _ in range(2))
    other = pairing.draw("ood_transform", 1000, named_generator(4, "pairs"))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.reference.classes, again.reference.classes)
    assert torch.equal(first.transform.classes, again.transform.classes)
    assert torch.equal(first.action, again.action)
    assert not torch.equal(first.reference.classes, other.reference.classes)


@pytest.mark.parametrize("count", [0, 1])
def test_few_pairs_or_none(count):
    pairing = Pairing(HeldOut(small_grid(), large_discs))
    assert len(pairing.draw("train", count, named_generator(0, "a"))) == count
    assert len(pairing.draw("train", count, named_generator(0, "a")).target) == count


def test_a_single_held_out_object_of_two_million_is_found():
    """Where drawing at random and rejecting would have to try for hours."""

    def last(factors):
        return (factors.classes == torch.tensor([2, 5, 39, 31, 31, 2])).all(-1)

    pairing = Pairing(HeldOut(dsprites(), last), conditions={"both": Condition(True, False, True)})
    pairs = pairing.draw("both", 100, named_generator(0, "a"))
    assert last(pairs.reference).all()
    assert last(pairs.target).all()
    assert not last(pairs.transform).any()


def test_forty_factors():
    columns = tuple(Column(f"f{k}", tuple(float(v) for v in range(10))) for k in range(40))
    grid = Grid(columns, {column.name: (column.name,) for column in columns})

    def corner(factors):
        return (factors.value("f3") > 6) & (factors.value("f17") > 6)

    pairing = Pairing(HeldOut(grid, corner))
    pairs = pairing.draw("ood_composition", 1000, named_generator(0, "a"))
    assert pairing.actions("ood_composition") == ("f3", "f17")
    assert corner(pairs.target).all()
    assert not (corner(pairs.reference) | corner(pairs.transform)).any()
    assert pairing.count("ood_composition", "f3") == 3**2 * 7 * 7 * 10**76


@pytest.mark.parametrize(
    ("split", "condition"),
    [
        (lambda f: torch.zeros(len(f), dtype=torch.bool), "ood_reference"),
        (lambda f: torch.ones(len(f), dtype=torch.bool), "train"),
        (lambda f: f.has("kind", "disc"), "ood_composition"),
    ],
)
def test_a_split_that_leaves_a_condition_empty_is_refused(split, condition):
    with pytest.raises(ValueError, match=f"it leaves no pairs for the condition '{condition}'"):
        Pairing(HeldOut(small_grid(), split))


def test_a_condition_that_is_not_asked_for_may_be_empty():
    conditions = {name: CONDITIONS[name] for name in ("train", "ood_reference")}
    pairing = Pairing(HeldOut(small_grid(), lambda f: f.has("kind", "disc")), conditions=conditions)
    assert len(pairing.draw("ood_reference", 5, named_generator(0, "a"))) == 5


def test_pairs_come_in_no_order():
    """Rows next to each other have the same action as often as any two rows have."""
    action = Pairing(HeldOut(dsprites(), SPLITS["square_red"])).draw("train", 50_000, named_generator(0, "a")).action
    assert abs((action[1:] == action[:-1]).double().mean() - 0.2) < 0.01


def test_an_action_on_many_columns_that_the_split_does_not_read():
    columns = tuple(Column(f"f{k}", tuple(float(v) for v in range(10))) for k in range(20))
    names = tuple(column.name for column in columns)
    grid = Grid(columns, {"first": names[:1], "most": names[1:]})
    held_out = HeldOut(grid, lambda f: (f.value("f0") > 4) & (f.value("f1") > 4))
    assert len(Pairing(held_out).draw("ood_composition", 100, named_generator(0, "a"))) == 100
    with pytest.raises(ValueError, match=r"split: expected at most .* combinations of .*'f19'"):
        Pairing(held_out, require_change=True)


def test_training_that_shows_what_is_held_out_is_refused():
    for leak in (Condition(None, False, False), Condition(False, False, None), Condition(False, True, False)):
        with pytest.raises(ValueError, match="conditions: expected nothing held out in the inputs and targets"):
            Pairing(HeldOut(small_grid(), large_discs), conditions={"train": leak})


@pytest.mark.parametrize(
    ("count", "generator", "message"),
    [
        (-1, named_generator(0, "a"), "count: expected"),
        (1.5, named_generator(0, "a"), "count: expected"),
        (3, None, "generator: expected"),
    ],
)
def test_bad_arguments_of_draw(count, generator, message, as_users_run_it):
    pairing = Pairing(HeldOut(small_grid(), large_discs))
    for draw in (pairing.draw, pairing.draw_each):
        with pytest.raises((TypeError, ValueError), match=message):
            draw("train", count, generator)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda pairing: pairing.draw("ood_refrence", 1, named_generator(0, "a")), "did you mean 'ood_reference'"),
        (lambda pairing: pairing.count("train", "colour"), r"action: expected one of \['kind', 'size', 'place'\]"),
    ],
)
def test_unknown_names_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(Pairing(HeldOut(small_grid(), large_discs)))
