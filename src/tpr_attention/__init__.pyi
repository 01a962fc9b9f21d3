# What type checkers read: the names that `__init__.py` imports lazily. A test compares the two.

from tpr_attention.functional.attention import attend as attend
from tpr_attention.functional.attention import extract as extract
from tpr_attention.functional.attention import match as match
from tpr_attention.functional.attention import memorise as memorise
from tpr_attention.functional.attention import rebind as rebind
from tpr_attention.functional.binding import bind as bind
from tpr_attention.functional.binding import superpose as superpose
from tpr_attention.functional.binding import unbind as unbind
from tpr_attention.functional.factored import recall as recall
from tpr_attention.generators import named_generator as named_generator
from tpr_attention.models.build import build as build
from tpr_attention.models.contract import check_contract as check_contract
from tpr_attention.nn.action_attention import ActionTPRAttention as ActionTPRAttention
from tpr_attention.nn.action_blocks import ActionTPRBlock as ActionTPRBlock
from tpr_attention.nn.action_blocks import ActionTPRStack as ActionTPRStack
from tpr_attention.nn.attention import TPRAttention as TPRAttention
from tpr_attention.nn.clean_up import CleanUp as CleanUp
from tpr_attention.nn.clean_up import StoredCleanUp as StoredCleanUp
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
from tpr_attention.nn.sequence_models import TPRDecoder as TPRDecoder
from tpr_attention.nn.sequence_models import TPREncoder as TPREncoder
from tpr_attention.nn.state import History as History
from tpr_attention.nn.state import State as State
from tpr_attention.runner.executors import make_executor as make_executor
from tpr_attention.runner.run import run as run
from tpr_attention.runner.store import Store as Store
from tpr_attention.tasks.composition.task import dsprites_composition as dsprites_composition
from tpr_attention.tasks.task import Batch as Batch
from tpr_attention.tasks.task import Task as Task
from tpr_attention.training.spec import RunSpec as RunSpec
from tpr_attention.training.sweep import sweep as sweep
from tpr_attention.training.train import train as train

__version__: str
