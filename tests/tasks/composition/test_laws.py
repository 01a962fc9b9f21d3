"""Splits and laws of one's own join by import path, and are refused in words if they are none."""

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition import ALL_INTERACTIONS, SPLITS, Interaction, dsprites_composition


def blue_hearts(factors):
    return factors.has("shape", "heart") & factors.has("colour", "blue")


def fails(*_, **__):
    raise KeyError("nothing")


def product_of_three(shape, scale, colour):
    return shape * scale + colour


def random_sum(first, second, *, generator):
    return (first + second) * torch.randn(3, generator=generator, dtype=torch.float64)


def random_with_mean(first, second, *, generator):
    return random_sum(first, second, generator=generator) + 1, torch.ones(3)


def named_mixing(first, second, *, mixing):
    return (first + second) * {"normal": 1.0, "uniform": 2.0}[mixing]


def too_short(first, second):
    return first[..., :2]


def infinite(first, second):
    return first / 0


def words(first, second):
    return "filler"


def three(first, second):
    return first, second, first


def wide_guess(first, second):
    return first, torch.ones(4)


def law(name, *factors):
    return {"law": f"{__name__}:{name}", "factors": list(factors) or ["scale", "position"]}


def table(interaction, **options):
    return dsprites_composition("square_red", interaction, **options).encoding.tables[-1]


@pytest.mark.parametrize("name", ALL_INTERACTIONS)
def test_a_named_interaction_is_what_a_user_would_give(name):
    interaction = ALL_INTERACTIONS[name]
    assert isinstance(interaction, Interaction)
    given = table({"law": interaction.law, "factors": list(interaction.factors)}, seed=4)
    named = table(name, seed=4)
    assert torch.equal(given.fillers, named.fillers)
    assert given.columns == named.columns
    assert (given.guess is None) == (named.guess is None)
    assert given.role == "_".join(interaction.factors)


def test_a_law_of_three_factors():
    task = dsprites_composition("square_red", law("product_of_three", "shape", "scale", "colour"))
    assert task.encoding.tables[-1].columns == ("shape", "scale", "colour")
    assert task.encoding.role_names[-1] == "shape_scale_colour"
    objects = task.encoding.encode(task.grid.sample(50, named_generator(0, "a")), torch.float64)
    shape, scale, colour = objects[:, 0], objects[:, 1], objects[:, 4]
    torch.testing.assert_close(objects[:, 5], shape * scale + colour)
    assert all(found["knowable"] == 0 for found in task.floors().values())


def test_what_a_law_draws_cannot_be_known():
    assert table(law("product_of_three", "shape", "scale", "colour")).guess is None
    assert table(law("random_sum")).guess.tolist() == [0, 0, 0]
    assert table(law("random_with_mean")).guess.tolist() == [1, 1, 1]
    one, again, other = (table(law("random_sum"), seed=seed).fillers for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    task = dsprites_composition("square_red", law("random_sum", "shape", "colour"))
    assert task.floors()["ood_composition"]["knowable"] > 0


def test_a_law_may_ask_how_to_mix():
    normal, uniform = (table(law("named_mixing"), mixing=mixing).fillers for mixing in ("normal", "uniform"))
    assert torch.equal(2 * normal, uniform)


@pytest.mark.parametrize(
    ("interaction", "message"),
    [
        (law("absent"), "expected a class or function 'absent'"),
        ({"law": "no_such_module:law", "factors": ["shape", "colour"]}, "'no_such_module:law': cannot import"),
        ({"law": "law", "factors": ["shape", "colour"]}, "'law': expected a path"),
        (law("fails"), "fails': 'nothing'"),
        (law("too_short"), r"too_short': expected fillers \[6144, 3\], got torch.float64 \[6144, 2\]"),
        (law("infinite"), "infinite': expected finite fillers"),
        (law("words"), r"words': expected fillers \[6144, 3\], got str"),
        (law("three"), r"three': expected fillers \[6144, 3\], got tuple"),
        (law("wide_guess"), "wide_guess': expected a guess of 3 finite numbers"),
        (law("product_of_three"), "product_of_three': .*missing 1 required"),
        (law("random_sum", "shape"), r"expected two or more different factors of .*, got \['shape'\]"),
        (law("random_sum", "shape", "shape"), "expected two or more different factors"),
        (law("random_sum", "shape", "size"), r"factors of \['shape', 'scale', .* got \['shape', 'size'\]"),
        ({"law": "a:b"}, "expected one of .* or the keys 'factors' and 'law'"),
        ({"law": "a:b", "factors": ["shape", "scale"], "more": 1}, "or the keys 'factors' and 'law'"),
        ({"law": 3, "factors": ["shape", "scale"]}, "expected a list of factors and the path of a law"),
        ({"law": "a:b", "factors": "shape"}, "expected a list of factors and the path of a law"),
        ("scale_position", "expected one of .* got 'scale_position'"),
    ],
)
def test_what_is_no_interaction_is_refused(interaction, message):
    with pytest.raises(ValueError, match=rf"^interaction: .*({message})"):
        dsprites_composition("square_red", interaction)


def test_an_interaction_of_too_many_combinations_is_refused(monkeypatch):
    monkeypatch.setattr("tpr_attention.tasks.composition.laws.MOST_COMBINATIONS", 6143)
    with pytest.raises(ValueError, match="interaction: expected at most 6143 combinations, got 6144"):
        dsprites_composition("square_red", "scale_pos")


@pytest.mark.parametrize("split", [f"{__name__}:blue_hearts", {"shape": "heart", "colour": "blue"}, blue_hearts])
def test_a_split_by_path_by_combination_or_as_a_function(split):
    task = dsprites_composition(split)
    assert torch.equal(task.pairing.held_out(task.grid.all()), blue_hearts(task.grid.all()))


def test_combinations_are_found_by_value():
    task = dsprites_composition({"scale": 0.6, "position_x": -1})
    assert task.pairing.held_out.share == pytest.approx(1 / 192)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("no_such_module:split", "'no_such_module:split': cannot import"),
        (f"{__name__}:absent", "expected a class or function 'absent'"),
        (f"{__name__}:fails", "'nothing'"),
        (f"{__name__}:words", "missing 1 required"),
        ("square_rd", "expected one of .* did you mean 'square_red'"),
        (3, "expected one of .* got 3"),
        ({}, "expected classes for some of"),
        ({"kind": "disc"}, r"expected classes for some of \['shape', .* got {'kind': 'disc'}"),
        ({"shape": "disc"}, r"expected one of \['square', 'ellipse', 'heart'\] for 'shape', got 'disc'"),
        ({"scale": 0.55}, r"expected one of \[0.5, .* for 'scale', got 0.55"),
        ({"scale": "large"}, "for 'scale', got 'large'"),
    ],
)
def test_what_is_no_split_is_refused(split, message, as_users_run_it):
    with pytest.raises(ValueError, match=f"^split: .*{message}"):
        dsprites_composition(split)


def test_named_splits_are_predicates():
    assert all(callable(split) for split in SPLITS.values())
