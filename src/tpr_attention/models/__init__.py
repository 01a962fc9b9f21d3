"""The contestants: all of them answer `model(reference, transform, action)`.

`MODELS` is their table and `build` makes one by name, or a class of your own by its path. To write one, subclass
`CopyAndUpdate` and say what to add to the reference; `check_contract` tells what a model still lacks.
"""

from tpr_attention.models.build import MODELS, build, option_types
from tpr_attention.models.classical import Classical
from tpr_attention.models.classical_roles import ClassicalRoles
from tpr_attention.models.contract import ContractError, Task, check_contract, from_path
from tpr_attention.models.copy_and_update import CopyAndUpdate
from tpr_attention.models.linear_floor import LinearFloor
from tpr_attention.models.matched import classical_matched, classical_roles_matched, parameter_count, resnet_matched
from tpr_attention.models.montero import Interpolate, Linear
from tpr_attention.models.oracle import Oracle
from tpr_attention.models.resnet import ResNet
from tpr_attention.models.tpr import TPR

__all__ = [
    "MODELS",
    "TPR",
    "Classical",
    "ClassicalRoles",
    "ContractError",
    "CopyAndUpdate",
    "Interpolate",
    "Linear",
    "LinearFloor",
    "Oracle",
    "ResNet",
    "Task",
    "build",
    "check_contract",
    "classical_matched",
    "classical_roles_matched",
    "from_path",
    "option_types",
    "parameter_count",
    "resnet_matched",
]
