"""Worlds of random factors are tasks like the paper's, of any size."""

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition import dsprites_composition, random_composition


@pytest.mark.parametrize(("factors", "fillers"), [(2, 2), (5, 3), (40, 8)])
def test_sizes_and_fillers(factors, fillers):
    task = random_composition(factors, fillers)
    batch = task.draw("train", 50, named_generator(0, "a"), torch.float64)
    assert batch.inputs[0].shape == (50, factors, fillers)
    assert batch.inputs[2].shape == (50, factors)
    torch.testing.assert_close(batch.target.norm(dim=-1), torch.ones(50, factors, dtype=torch.float64))
    for condition, place in {"ood_reference": 0, "ood_transform": 1, "ood_composition": 3}.items():
        batch = task.draw(condition, 50, named_generator(0, "b"), torch.float64)
        found = task.encoding.decode((*batch.inputs, batch.target)[place])
        assert ((found.column("factor_1") == 0) & (found.column("factor_2") == 0)).all()


def test_seeds_draw_the_fillers():
    one, again, other = (random_composition(5, 3, seed=seed).encoding.stacked for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_it_is_a_substitution_and_solvable():
    assert all(floors == {"linear": 0, "knowable": 0} for floors in random_composition(5, 3).floors().values())


@pytest.mark.parametrize(
    "make", [lambda noise: random_composition(5, 3, noise=noise), lambda noise: dsprites_composition(noise=noise)]
)
def test_noise_is_on_the_inputs_only(make):
    clean, noisy = (make(noise).draw("train", 4000, named_generator(0, "a"), torch.float64) for noise in (0.0, 0.1))
    assert torch.equal(clean.target, noisy.target)
    assert torch.equal(clean.inputs[2], noisy.inputs[2])
    assert torch.equal(clean.groups["action"], noisy.groups["action"])
    added = [other - one for one, other in zip(clean.inputs[:2], noisy.inputs[:2], strict=True)]
    for noise in added:
        assert noise.std().item() == pytest.approx(0.1, rel=0.02)
    assert added[0].flatten() @ added[1].flatten() < 30
    for noise in (-1.0, 2e6, float("nan")):
        with pytest.raises(ValueError, match=rf"noise: expected a number from 0 to .*, got {noise}"):
            make(noise)


def test_noise_is_in_every_condition():
    task = random_composition(4, 2, noise=0.5)
    for condition in ("train", *task.conditions):
        batch = task.draw(condition, 200, named_generator(0, "a"))
        assert all((objects.norm(dim=-1) - 1).abs().mean() > 0.1 for objects in batch.inputs[:2])
        torch.testing.assert_close(batch.target.norm(dim=-1), torch.ones(200, 4))
    evenly = task.draw_evenly("train", 50, named_generator(0, "a"))
    assert (evenly.inputs[0].norm(dim=-1) - 1).abs().mean() > 0.1


def test_worlds_in_which_nothing_can_be_held_out_are_refused():
    with pytest.raises(ValueError, match="factors: expected a whole number of at least 2, got 1"):
        random_composition(1, 3)
    with pytest.raises(ValueError, match="filler_dim: expected a whole number of at least 2, got 1"):
        random_composition(3, 1)
