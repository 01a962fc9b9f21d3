# What type checkers read: the names that `__init__.py` imports lazily. A test compares the two.

from tpr_attention.nn.action_attention import ActionTPRAttention as ActionTPRAttention
from tpr_attention.nn.action_blocks import ActionTPRBlock as ActionTPRBlock
from tpr_attention.nn.action_blocks import ActionTPRStack as ActionTPRStack
from tpr_attention.nn.action_heads import ActionHeads as ActionHeads
from tpr_attention.nn.attention import Inspection as Inspection
from tpr_attention.nn.attention import State as State
from tpr_attention.nn.attention import TPRAttention as TPRAttention
from tpr_attention.nn.higher_order import HigherOrderActionTPRAttention as HigherOrderActionTPRAttention
from tpr_attention.nn.queries import FixedRoleQueries as FixedRoleQueries
from tpr_attention.nn.queries import LinearQueries as LinearQueries
from tpr_attention.nn.queries import Queries as Queries
