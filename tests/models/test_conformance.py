"""All contestants are held to one suite of checks, and the suite finds models that break it."""

import pytest
import torch
from torch import nn

from tpr_attention.models import MODELS

from . import contestants
from .conformance import CHECKS, Case
from .images.cases import images
from .recall.cases import recall

# A key's bias moves all logits of a query alike, which a softmax does not see.
CASES = {
    "composition": lambda name: Case(
        name,
        "composition",
        {"interaction": "shape_col"},
        without_gradient=("attention.key.bias",) if "classical" in name else (),
        random_start=name not in ("linear", "linear-floor", "oracle"),
    ),
    "recall": recall,
    "images": images,
}
"""For each folder of `models`, the case of a model."""


def case(name):
    return CASES[MODELS[name].split(".")[2]](name)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", MODELS)
def test_contestants_conform(name, check):
    check(case(name))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ["Swap", "Plain", "Normed"])
def test_models_of_ones_own_conform(name, check):
    path = f"{contestants.__name__}:{name}"
    check(Case(path, task_options={"interaction": "shape_col"}, random_start=name == "Swap"))


class Forgetful(contestants.Swap):
    """Draws from a state that the seed does not decide."""

    def __init__(self, num_actions, num_roles, filler_dim):
        super().__init__(num_actions, num_roles, filler_dim)
        self.gate = nn.Parameter(torch.randn(num_actions, num_roles, generator=SHARED))


SHARED = torch.Generator().manual_seed(0)


class Crowded(contestants.Swap):
    """Answers an example by what the others are like."""

    def update(self, reference, transform, action):
        return super().update(reference, transform - transform.mean(0), action)


class Coarse(contestants.Swap):
    """Has another answer in single precision."""

    def update(self, reference, transform, action):
        return super().update(reference, transform, action) * (1 if reference.dtype == torch.float64 else 2)


class Idle(contestants.Swap):
    """Has a parameter that changes nothing."""

    def __init__(self, num_actions, num_roles, filler_dim):
        super().__init__(num_actions, num_roles, filler_dim)
        self.rest = nn.Parameter(torch.randn(3))

    def update(self, reference, transform, action):
        return super().update(reference, transform, action) + 0 * self.rest


class Misfolded(contestants.Swap):
    """Folds, but to other answers."""

    def update_by_action(self, reference, transform):
        return self.gate[..., :, None, :, None] * transform


class Secretive(contestants.Swap):
    """Keeps a number that is not among its weights."""

    def __init__(self, num_actions, num_roles, filler_dim):
        super().__init__(num_actions, num_roles, filler_dim)
        self.secret = torch.rand(()).item()

    def update(self, reference, transform, action):
        return super().update(reference, transform, action) * self.secret


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Crowded, "it_keeps_the_contract"),
        (Forgetful, "its_weights_come_from_the_seed_alone"),
        (Crowded, "each_example_is_answered_by_itself"),
        (Coarse, "it_answers_alike_in_single_precision"),
        (Idle, "gradients_reach_every_parameter"),
        (Misfolded, "examples_sorted_by_group_have_the_same_answers_and_gradients"),
        (Secretive, "its_weights_can_be_stored_and_loaded"),
    ],
)
def test_what_breaks_the_suite_is_found(broken, check):
    found = {one.__name__: one for one in CHECKS}[check]
    with pytest.raises((AssertionError, ValueError)):
        found(Case(f"{__name__}:{broken.__name__}"))
