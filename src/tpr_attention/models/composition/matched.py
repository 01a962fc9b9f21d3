"""The baselines with as many parameters as the paper's model has."""

from collections.abc import Callable
from typing import TypeVar

from torch import nn

from tpr_attention.models.composition.classical import Classical
from tpr_attention.models.composition.classical_roles import ClassicalRoles
from tpr_attention.models.composition.resnet import ResNet
from tpr_attention.models.composition.tpr import TPR
from tpr_attention.models.contract import parameter_count

__all__ = ["classical_matched", "classical_roles_matched", "resnet_matched"]

M = TypeVar("M", bound=nn.Module)


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
