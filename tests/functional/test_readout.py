"""Normalised read-outs have the size that their names say, at any scale, and zero stays zero."""

import pytest
import torch

from tpr_attention.functional.readout import READOUTS, WITHOUT_COUNT, by_count, to_unit_length, to_unit_rms

SIZES = {to_unit_rms: lambda x: x.square().mean(-1).sqrt(), to_unit_length: lambda x: x.norm(dim=-1)}


def test_the_table_has_each_of_them_by_name():
    assert list(READOUTS.items()) == [("count", by_count), ("rms", to_unit_rms), ("unit", to_unit_length)]
    assert {READOUTS[name] for name in WITHOUT_COUNT} == set(SIZES)


@pytest.mark.parametrize("scale", [1e-1, 1.0, 1e30])
@pytest.mark.parametrize("readout", SIZES)
def test_the_size_is_one_and_the_direction_stays(readout, scale, normal):
    fillers = normal(4, 5, 3)
    found = readout(scale * fillers)
    torch.testing.assert_close(SIZES[readout](found), torch.ones(4, 5, dtype=torch.float64), rtol=0, atol=1e-3)
    torch.testing.assert_close(torch.cosine_similarity(found, fillers, -1), torch.ones(4, 5, dtype=torch.float64))
    assert torch.autograd.gradcheck(readout, fillers)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("readout", SIZES)
def test_zero_stays_zero_with_finite_gradients(readout, dtype):
    fillers = torch.zeros(2, 3, dtype=dtype, requires_grad=True)
    found = readout(fillers)
    found.sum().backward()
    assert found.abs().max() == 0
    assert dtype == torch.float16 or fillers.grad.isfinite().all()
    largest = torch.full((1, 4), 6e4, dtype=dtype)
    torch.testing.assert_close(SIZES[readout](readout(largest)), torch.ones(1, dtype=dtype), rtol=1e-2, atol=0)


def test_the_mean_is_the_sum_over_the_count(normal):
    fillers, count = normal(2, 3, 4, 5), torch.tensor([1.0, 2.0, 7.0]).double()
    for t in range(3):
        torch.testing.assert_close(by_count(fillers, count)[:, t], fillers[:, t] / count[t])


def test_every_sequence_may_have_a_count_of_its_own(normal):
    fillers, count = normal(2, 3, 4, 5), torch.tensor([[1.0, 2.0, 7.0], [0.0, 0.0, 1.0]]).double()
    found = by_count(fillers, count)
    torch.testing.assert_close(found[0], fillers[0] / count[0, :, None, None])
    torch.testing.assert_close(found[1], fillers[1] * count[1, :, None, None])
    (gradient,) = torch.autograd.grad(found.sum(), fillers)
    assert gradient.isfinite().all()
