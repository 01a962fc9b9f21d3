"""Layers: parameters around `tpr_attention.functional`, ignorant of any task."""

from tpr_attention.nn.action_attention import ActionTPRAttention
from tpr_attention.nn.attention import Inspection, State, TPRAttention
from tpr_attention.nn.queries import FixedRoleQueries, LinearQueries, Queries

__all__ = [
    "ActionTPRAttention",
    "FixedRoleQueries",
    "Inspection",
    "LinearQueries",
    "Queries",
    "State",
    "TPRAttention",
]
