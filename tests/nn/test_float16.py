"""Long sums in float16: where they overflow, and what keeps them from it."""

import pytest
import torch

from tpr_attention.nn import TPRAttention

LONG = torch.ones(1, 3000, 4, 3)


def sum_of_ones(normalise=None):
    """Each of two heads reads 48 for an object, a score of 12 times four roles of ones, and writes three times that."""
    layer = TPRAttention.literal(4, 3, 2, normalise=normalise)
    with torch.no_grad():
        for linear in layer.queries.children():
            linear.weight.zero_()
            linear.bias.fill_(1)
        layer.filler_map.fill_(1)
        layer.new_role.fill_(1)
    return layer


def test_a_long_sum_overflows_float16_as_the_documentation_says():
    exact = sum_of_ones()(LONG)
    assert exact[0, -1, 0, 0] == 2 * 3 * 48 * 3000 > torch.finfo(torch.float16).max
    with torch.autocast("cpu", torch.float16):
        output, state = sum_of_ones().stream(LONG)
    for found in (output, sum_of_ones().half()(LONG.half())):
        assert found.dtype == torch.float16
        torch.testing.assert_close(found[0, :200].float(), exact[0, :200], rtol=2e-3, atol=0)
        assert found[0, -1].isinf().all()
    assert state.memory.isfinite().all()


@pytest.mark.parametrize("normalise", ["count", "rms", "unit"])
def test_a_normalised_sum_does_not_overflow_float16(normalise):
    exact = sum_of_ones(normalise)(LONG)
    with torch.autocast("cpu", torch.float16):
        output = sum_of_ones(normalise)(LONG)
    assert output.dtype == torch.float16
    torch.testing.assert_close(output.float(), exact, rtol=2e-3, atol=0)
    torch.testing.assert_close(sum_of_ones(normalise).half()(LONG.half()).float(), exact, rtol=2e-3, atol=0)


def test_bfloat16_or_no_autocast_around_the_layer_do_not_overflow_either():
    exact = sum_of_ones()(LONG)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(sum_of_ones()(LONG).float(), exact, rtol=2e-2, atol=0)
    with torch.autocast("cpu", torch.float16), torch.autocast("cpu", enabled=False):
        assert torch.equal(sum_of_ones()(LONG), exact)
