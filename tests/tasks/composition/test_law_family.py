"""Laws of the family against literal loops, and the two parts of their table."""

import re
from math import exp, sin, sqrt, tanh

import pytest
import torch

from tpr_attention.cli import main
from tpr_attention.generators import named_generator
from tpr_attention.imports import load
from tpr_attention.tasks.composition import (
    ALL_INTERACTIONS,
    DEVELOPMENT_INTERACTIONS,
    HELD_OUT_INTERACTIONS,
    INTERACTIONS,
    dsprites_composition,
    law_family,
)

THREE = range(3)


def normal(*shape):
    """What a law draws, from the same generator."""
    return torch.randn(shape, generator=named_generator(7, "law"), dtype=torch.float64).tolist()


def matrices():
    """Two of them, one after the other."""
    random = named_generator(7, "law")
    return [torch.randn(3, 3, generator=random, dtype=torch.float64).tolist() for _ in range(2)]


def bilinear(a, b):
    tensor = normal(3, 3, 3)
    return [sum(a[i] * tensor[k][i][j] * b[j] for i in THREE for j in THREE) for k in THREE]


def linear_form(a, b):
    one, other = matrices()
    return [sum(a[i] * one[i][k] + b[i] * other[i][k] for i in THREE) for k in THREE]


def mixture(a, b):
    u, v = normal(2, 3)
    first, second = (exp(2 * sum(x * y for x, y in zip(*pair, strict=True))) for pair in ((a, u), (b, v)))
    return [(first * a[k] + second * b[k]) / (first + second) for k in THREE]


def trilinear(a, b, c):
    tensor = normal(3, 3, 3, 3)
    return [sum(tensor[k][i][j][m] * a[i] * b[j] * c[m] for i in THREE for j in THREE for m in THREE) for k in THREE]


def soft_difference(a, b):
    length = sqrt(sum((a[k] - b[k]) ** 2 for k in THREE) + 0.25)
    return [(a[k] - b[k]) / length for k in THREE]


LOOPS = {
    "saturating": lambda a, b: [tanh(2 * x) for x in bilinear(a, b)],
    "softsign": lambda a, b: [2 * x / (1 + 2 * abs(x)) for x in bilinear(a, b)],
    "conditional": lambda a, b, c: [a[0] * b[k] + (1 - a[0]) * c[k] for k in THREE],
    "switch": lambda a, b, c: [a[0] * b[k] + a[1] * c[k] + a[2] * (b[k] - c[k]) for k in THREE],
    "scaled_bilinear": lambda a, b, c: [x * c[k] for k, x in enumerate(bilinear(a, b))],
    "trilinear": trilinear,
    "largest": lambda a, b: [*map(max, a, b)],
    "smallest": lambda a, b: [*map(min, a, b)],
    "sine": lambda a, b: [*map(sin, linear_form(a, b))],
    "squared_sum": lambda a, b: [x * x / 2 for x in linear_form(a, b)],
    "product": lambda a, b: [x * y for x, y in zip(a, b, strict=True)],
    "soft_difference": soft_difference,
    "threshold": lambda a, b: [tanh(4 * (x - y)) for x, y in zip(a, b, strict=True)],
    "mixture": mixture,
}


@pytest.mark.parametrize("name", law_family.__all__)
def test_laws_are_their_equations(name, generator):
    law, loop = getattr(law_family, name), LOOPS[name]
    fillers = torch.randn(loop.__code__.co_argcount, 9, 3, generator=generator, dtype=torch.float64)
    drawn = {"generator": named_generator(7, "law")} if "generator" in law.__annotations__ else {}
    found = law(*fillers, **drawn)
    expected = [loop(*(filler.tolist() for filler in row)) for row in fillers.unbind(1)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def path_of(interaction):
    return interaction.law.partition(":")[::2]


def test_every_law_of_the_family_has_a_name():
    laws = {law for module, law in map(path_of, ALL_INTERACTIONS.values()) if module == law_family.__name__}
    assert laws == set(law_family.__all__) == set(LOOPS)


def test_held_out_laws_are_other_formulas_of_other_factors():
    known = {**INTERACTIONS, **DEVELOPMENT_INTERACTIONS}
    assert not set(known) & set(HELD_OUT_INTERACTIONS)
    assert not {one.law for one in known.values()} & {one.law for one in HELD_OUT_INTERACTIONS.values()}
    assert len({one.law for one in HELD_OUT_INTERACTIONS.values()}) == len(HELD_OUT_INTERACTIONS)
    assert len({frozenset(one.factors) for one in HELD_OUT_INTERACTIONS.values()}) == len(HELD_OUT_INTERACTIONS)
    assert {**known, **HELD_OUT_INTERACTIONS} == ALL_INTERACTIONS


@pytest.mark.parametrize("name", ALL_INTERACTIONS)
def test_fillers_depend_on_every_factor(name):
    factors, _ = interaction = ALL_INTERACTIONS[name]
    task = dsprites_composition("square_red", name, seed=3)
    table = task.encoding.tables[-1]
    assert (table.role, table.fillers.isfinite().all()) == (name, True)
    assert table.fillers.abs().max() < 10
    assert (table.guess is None) == ("generator" not in load(interaction.law).__annotations__)
    order = [next(table for table in task.encoding.tables if table.role == role) for role in factors]
    sizes = [len(one.fillers) for one in order]
    by_factor = table.fillers.reshape(*sizes, 3)
    for axis in range(len(sizes)):
        assert (by_factor - by_factor.narrow(axis, 0, 1)).abs().max() > 0.1


@pytest.mark.parametrize("split", ["square_red", "scale_pos"])
@pytest.mark.parametrize("name", HELD_OUT_INTERACTIONS)
def test_held_out_laws_can_be_known_but_not_linearly(name, split):
    found = dsprites_composition(split, name).floors()
    assert {losses["knowable"] for losses in found.values()} == {0}
    assert found["train"]["linear"] > 5e-4
    assert found["ood_reference"]["linear"] > 5e-4


def test_what_is_drawn_is_unknown_where_training_does_not_show_it():
    found = dsprites_composition({"shape": "heart", "colour": "blue"}, "scaled_shape_colour_scale").floors()
    assert [name for name, losses in found.items() if not losses["knowable"]] == ["train", "in_distribution"]


def test_floors_of_all_names_on_the_command_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    names = [name for name in ALL_INTERACTIONS if name not in INTERACTIONS]
    assert main(["floors", f"interaction=[{','.join(names)}]", "split=square_red"]) == 0
    said = capsys.readouterr().out
    assert all(len(re.findall(rf"\b{name}\b.* ood_reference ", said)) == 1 for name in names)


def test_hand_checked_sine():
    """With zero fillers of one factor, only the matrix of the other counts."""
    first, second = torch.eye(3, dtype=torch.float64), torch.zeros(3, 3, dtype=torch.float64)
    found = law_family.sine(first, second, generator=named_generator(7, "law"))
    assert found[0].tolist() == pytest.approx([sin(x) for x in matrices()[0][0]])
