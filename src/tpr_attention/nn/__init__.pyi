# What type checkers read: the names that `__init__.py` imports lazily. A test compares the two.

from tpr_attention.nn.action_attention import ActionTPRAttention as ActionTPRAttention
from tpr_attention.nn.action_blocks import ActionTPRBlock as ActionTPRBlock
from tpr_attention.nn.action_blocks import ActionTPRStack as ActionTPRStack
from tpr_attention.nn.action_heads import ActionHeads as ActionHeads
from tpr_attention.nn.attention import TPRAttention as TPRAttention
from tpr_attention.nn.clean_up import CleanUp as CleanUp
from tpr_attention.nn.clean_up import StoredCleanUp as StoredCleanUp
from tpr_attention.nn.embedding import EMPTY as EMPTY
from tpr_attention.nn.embedding import RoleEmbedding as RoleEmbedding
from tpr_attention.nn.embedding import shifted as shifted
from tpr_attention.nn.higher_order import HigherOrderActionTPRAttention as HigherOrderActionTPRAttention
from tpr_attention.nn.queries import FixedRoleQueries as FixedRoleQueries
from tpr_attention.nn.queries import LinearQueries as LinearQueries
from tpr_attention.nn.queries import OwnFillerQueries as OwnFillerQueries
from tpr_attention.nn.queries import Queries as Queries
from tpr_attention.nn.reading import Inspection as Inspection
from tpr_attention.nn.role_laws import RoleLaws as RoleLaws
from tpr_attention.nn.sequence_blocks import FillerFeedForward as FillerFeedForward
from tpr_attention.nn.sequence_blocks import TPRBlock as TPRBlock
from tpr_attention.nn.sequence_blocks import WriteGate as WriteGate
from tpr_attention.nn.sequence_models import DecoderState as DecoderState
from tpr_attention.nn.sequence_models import TPRDecoder as TPRDecoder
from tpr_attention.nn.sequence_models import TPREncoder as TPREncoder
from tpr_attention.nn.state import History as History
from tpr_attention.nn.state import State as State
