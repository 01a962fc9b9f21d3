"""Worlds of random factors are tasks like the paper's, of any size."""

import pytest
import torch

from tpr_attention.data import dsprites_composition, floors, random_composition, stream
from tpr_attention.experiments.prepare import prepare
from tpr_attention.experiments.spec import RunSpec, SpecError


@pytest.mark.parametrize(("factors", "fillers"), [(2, 2), (5, 3), (40, 8)])
def test_sizes_and_fillers(factors, fillers):
    task = random_composition(factors, fillers)
    batch = task.draw("train", 50, stream(0, "a"), torch.float64)
    assert batch.reference.shape == (50, factors, fillers)
    assert batch.action.shape == (50, factors)
    torch.testing.assert_close(batch.target.norm(dim=-1), torch.ones(50, factors, dtype=torch.float64))
    for condition, place in {"ood_reference": 0, "ood_transform": 1, "ood_composition": 3}.items():
        batch = task.draw(condition, 50, stream(0, "b"), torch.float64)
        found = task.encoding.decode(batch[place])
        assert ((found.column("factor_1") == 0) & (found.column("factor_2") == 0)).all()


def test_seeds_draw_the_fillers():
    one, again, other = (random_composition(5, 3, seed=seed).encoding.stacked for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_it_is_a_substitution_and_solvable():
    assert all(one.linear == 0 and one.solvable for one in floors(random_composition(5, 3)).values())


@pytest.mark.parametrize(
    "make", [lambda noise: random_composition(5, 3, noise=noise), lambda noise: dsprites_composition(noise=noise)]
)
def test_noise_is_on_the_inputs_only(make):
    clean, noisy = (make(noise).draw("train", 4000, stream(0, "a"), torch.float64) for noise in (0.0, 0.1))
    assert torch.equal(clean.target, noisy.target)
    assert torch.equal(clean.action, noisy.action)
    for one, other in ((clean.reference, noisy.reference), (clean.transform, noisy.transform)):
        assert (other - one).std().item() == pytest.approx(0.1, rel=0.02)
    assert (noisy.reference - clean.reference).flatten() @ (noisy.transform - clean.transform).flatten() < 30
    with pytest.raises(ValueError, match="noise: expected a finite number of at least 0, got -1"):
        make(-1.0)


def test_noise_is_in_training_and_in_tests():
    run = prepare(RunSpec(factors=4, filler_dim=2, noise=0.5, train_pairs=96, eval_pairs=50, batch=48))
    assert run.pool.reference.shape[-2:] == (4, 2)
    assert (run.pool.reference.norm(dim=-1) - 1).abs().mean() > 0.1
    assert (run.evaluation["ood_reference"].reference.norm(dim=-1) - 1).abs().mean() > 0.1
    torch.testing.assert_close(run.pool.target.norm(dim=-1), torch.ones(2, 48, 4))


@pytest.mark.parametrize(("field", "value"), [("split", "scale_pos"), ("interaction", "shape_col"), ("azimuth", 0.0)])
def test_what_belongs_to_the_paper_s_world_is_refused(field, value):
    with pytest.raises(SpecError, match=f"{field}: expected the default in a world of random factors, got {value!r}"):
        prepare(RunSpec(factors=5, **{field: value}))


def test_worlds_in_which_nothing_can_be_held_out_are_refused():
    with pytest.raises(ValueError, match="num_factors: expected at least 2, got 1"):
        random_composition(1, 3)
    with pytest.raises(ValueError, match="filler_dim: expected at least 2, got 1"):
        random_composition(3, 1)
