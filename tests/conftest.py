import jaxtyping
import pytest
import torch
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40, database=None)
settings.load_profile("repeatable")


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(20260704)


@pytest.fixture
def normal(generator):
    """Standard normal tensors in float64 that ask for gradients."""

    def draw(*shape, dtype=torch.float64):
        return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()

    return draw


@pytest.fixture
def as_users_run_it():
    """Without the import hook's checks, which users do not have and which `torch.compile` cannot see through."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
