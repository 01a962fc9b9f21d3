"""The cost of images against torch's binary cross-entropy, which computes two logarithms a number."""

from math import log

import pytest
import torch
import torch.nn.functional as F

from tpr_attention.functional.images.likelihood import LEAST, negative_log_likelihood

from ..test_factored import gradients


@pytest.fixture
def problem(generator):
    """Probabilities between a thousandth and one less it, and what was there."""
    output = torch.rand(3, 4, 5, generator=generator, dtype=torch.float64) * 0.998 + 0.001
    target = (torch.rand(3, 4, 5, generator=generator) < 0.5).double()
    return output.requires_grad_(), target


def cross_entropy(output, target):
    return F.binary_cross_entropy(output, target, reduction="none")


def test_values_and_gradients_are_those_of_torch(problem):
    output, target = problem
    found, expected = negative_log_likelihood(output, target), cross_entropy(output, target)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    (gradient,), (wanted,) = gradients([found], [output], 0), gradients([expected], [output], 0)
    torch.testing.assert_close(gradient, wanted, rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_differences(problem):
    output, target = problem
    assert torch.autograd.gradcheck(lambda output: negative_log_likelihood(output, target), (output,))


@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (2, 2), (0, None)])
def test_many_at_once_are_as_one_after_the_other(axes, problem):
    """With gradients through vmap; also for one target of all."""
    output, target = problem
    if axes[1] is None:
        target = target[0]
    together = torch.vmap(negative_log_likelihood, axes)(output, target)
    pairs = zip(output.unbind(axes[0]), [target] * 3 if axes[1] is None else target.unbind(axes[1]), strict=True)
    one_by_one = torch.stack([negative_log_likelihood(*pair) for pair in pairs])
    assert torch.equal(together, one_by_one)
    (found,), (expected,) = gradients([together], [output], 0), gradients([one_by_one], [output], 0)
    assert torch.equal(found, expected)


def test_gradients_of_torch_func(problem):
    output, target = problem
    found = torch.func.grad(lambda output: negative_log_likelihood(output, target).sum())(output)
    (expected,) = torch.autograd.grad(negative_log_likelihood(output, target).sum(), output)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_certainty(dtype):
    """What is sure and right costs nothing; what is sure and wrong costs the most, and nothing is infinite."""
    output = torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=dtype, requires_grad=True)
    target = torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=dtype)
    found = negative_log_likelihood(output, target)
    most = -log(LEAST)
    torch.testing.assert_close(found, torch.tensor([0.0, 0.0, most, most], dtype=dtype))
    (gradient,) = torch.autograd.grad(found.sum(), output)
    torch.testing.assert_close(gradient, torch.tensor([1.0, -1.0, 0.0, 0.0], dtype=dtype))


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-9, 2e-12])
def test_what_is_thought_unlikely_still_has_a_gradient(share):
    """Down to the least probability, below which there is none."""
    output = torch.tensor([share, 1 - share, LEAST / 2], dtype=torch.float64, requires_grad=True)
    target = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    found = negative_log_likelihood(output, target)
    torch.testing.assert_close(
        found, -torch.tensor([share, share, LEAST], dtype=torch.float64).log(), rtol=1e-5, atol=0
    )
    (gradient,) = torch.autograd.grad(found.sum(), output)
    expected = torch.tensor([-1 / share, 1 / share, 0], dtype=torch.float64)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=0)


def test_the_target_has_no_gradient(problem):
    output, target = problem
    target.requires_grad_()
    assert torch.autograd.grad(negative_log_likelihood(output, target).sum(), target, allow_unused=True) == (None,)


def test_a_mean_over_numbers_that_are_not_kept_apart(problem):
    """The gradient that comes back may be expanded."""
    output, target = problem
    (found,) = torch.autograd.grad(negative_log_likelihood(output, target).mean(), output)
    (expected,) = torch.autograd.grad(F.binary_cross_entropy(output, target), output)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
