"""The baselines with as many parameters as the paper's model has."""

from collections.abc import Callable
from typing import TypeVar

from torch import nn

from tpr_attention.models.classical import Classical
from tpr_attention.models.classical_roles import ClassicalRoles
from tpr_attention.models.resnet import ResNet
from tpr_attention.models.tpr import TPR

__all__ = ["classical_matched", "classical_roles_matched", "parameter_count", "resnet_matched"]

M = TypeVar("M", bound=nn.Module)


def parameter_count(model: nn.Module) -> int:
    """How many numbers training may change.

    >>> parameter_count(TPR(num_actions=5, num_roles=5, filler_dim=3, num_heads=4))
    244
    """
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def classical_matched(num_actions: int, num_roles: int, filler_dim: int, num_heads: int = 4) -> Classical:
    """`Classical` with heads of the width that comes nearest to the parameters of `TPR` with as many heads."""
    return _nearest(
        lambda width: Classical(num_actions, num_roles, filler_dim, num_heads, head_dim=width),
        parameter_count(TPR(num_actions, num_roles, filler_dim, num_heads)),
    )


def classical_roles_matched(num_actions: int, num_roles: int, filler_dim: int, num_heads: int = 4) -> ClassicalRoles:
    """`ClassicalRoles` with heads of the width that comes nearest to the parameters of `TPR` with as many heads."""
    return _nearest(
        lambda width: ClassicalRoles(num_actions, num_roles, filler_dim, num_heads, head_dim=width),
        parameter_count(TPR(num_actions, num_roles, filler_dim, num_heads)),
    )


def resnet_matched(num_actions: int, num_roles: int, filler_dim: int, num_heads: int = 4) -> ResNet:
    """`ResNet` with the width that comes nearest to the parameters of `TPR` with this many heads."""
    return _nearest(
        lambda width: ResNet(num_actions, num_roles, filler_dim, width),
        parameter_count(TPR(num_actions, num_roles, filler_dim, num_heads)),
    )


def _nearest(make: Callable[[int], M], wanted: int) -> M:
    narrow, wider = parameter_count(make(1)), parameter_count(make(2))
    return make(max(1, 1 + round((wanted - narrow) / (wider - narrow))))  # counts grow linearly with the width
