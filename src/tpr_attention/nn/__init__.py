"""Layers: parameters around `tpr_attention.functional`, ignorant of any task."""

from tpr_attention.nn.action_attention import ActionTPRAttention
from tpr_attention.nn.action_heads import ActionHeads
from tpr_attention.nn.attention import Inspection, State, TPRAttention
from tpr_attention.nn.higher_order import HigherOrderTPRAttention
from tpr_attention.nn.queries import FixedRoleQueries, LinearQueries, Queries
from tpr_attention.nn.stack import TPRBlock, TPRStack

__all__ = [
    "ActionHeads",
    "ActionTPRAttention",
    "FixedRoleQueries",
    "HigherOrderTPRAttention",
    "Inspection",
    "LinearQueries",
    "Queries",
    "State",
    "TPRAttention",
    "TPRBlock",
    "TPRStack",
]
