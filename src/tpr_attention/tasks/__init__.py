"""Tasks: what is learned, and how it is measured. `Task` is the contract; each subject is a folder of its own.

`TASKS` names them by import path, so that names can be listed without loading torch. A task of your own joins by its
path: `task=my_package.my_module:MyTask`.
"""

__all__ = ["TASKS"]

TASKS: dict[str, str] = {
    "composition": "tpr_attention.tasks.composition.task:dsprites_composition",
    "random-composition": "tpr_attention.tasks.composition.worlds:random_composition",
    "table-composition": "tpr_attention.tasks.composition.tables:table_composition",
    "images-composition": "tpr_attention.tasks.images.composition:ImageComposition",
    "images-reconstruction": "tpr_attention.tasks.images.reconstruction:ImageReconstruction",
    "recall-capacity": "tpr_attention.tasks.recall.capacity:Capacity",
    "recall-compositional": "tpr_attention.tasks.recall.compositional:Compositional",
    "recall-contextual": "tpr_attention.tasks.recall.contextual:Contextual",
    "recall-hops": "tpr_attention.tasks.recall.hops:Hops",
    "recall-sar": "tpr_attention.tasks.recall.sar:Sar",
}
"""Name to the constructor's import path."""
