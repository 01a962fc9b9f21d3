"""Attention over structured, role-filler representations.

An object is a sum of role (x) filler bindings. Objects are superposed in an associative memory; attention matches
objects by role and filler, extracts a property, maps it and binds it to a new role.

- `tpr_attention.functional`: the algebra, as pure functions on tensors.
- `tpr_attention.nn`: the layers `TPRAttention` and `ActionTPRAttention`, their queries, and blocks of them.
- `tpr_attention.tasks`: what is learned; a task draws examples and measures outputs.
- `tpr_attention.models`: the models that are compared on tasks.
- `tpr_attention.training`: a training as a value, and many trainings at once.
- `tpr_attention.runner`: a store of trainings, and who does them.
- `tpr_attention.report`: from stored curves to figures and tables.
- `tpr_attention.studies`: the paper's experiments and others: their trainings, figures and words.

What users need can be imported from here: `from tpr_attention import TPRAttention`. A name is loaded when it is first
used, so `import tpr_attention` alone does not import torch.
"""

from tpr_attention.lazy import lazy_exports

__version__ = "0.2.0"

__getattr__, __dir__, _exports = lazy_exports(
    __name__,
    {
        "functional.attention": ["attend", "extract", "match", "memorise", "rebind"],
        "functional.binding": ["bind", "superpose", "unbind"],
        "functional.factored": ["recall"],
        "generators": ["named_generator"],
        "models.build": ["build"],
        "models.contract": ["check_contract"],
        "nn.action_attention": ["ActionTPRAttention"],
        "nn.action_blocks": ["ActionTPRBlock", "ActionTPRStack"],
        "nn.attention": ["TPRAttention"],
        "nn.clean_up": ["CleanUp", "StoredCleanUp"],
        "nn.embedding": ["RoleEmbedding", "shifted"],
        "nn.higher_order": ["HigherOrderActionTPRAttention"],
        "nn.queries": ["FixedRoleQueries", "LinearQueries", "OwnFillerQueries", "Queries"],
        "nn.reading": ["Inspection"],
        "nn.role_laws": ["RoleLaws"],
        "nn.sequence_blocks": ["FillerFeedForward", "TPRBlock", "WriteGate"],
        "nn.sequence_models": ["TPRDecoder", "TPREncoder"],
        "nn.state": ["History", "State"],
        "runner.executors": ["make_executor"],
        "runner.run": ["run"],
        "runner.store": ["Store"],
        "tasks.composition.task": ["dsprites_composition"],
        "tasks.task": ["Batch", "Task"],
        "training.spec": ["RunSpec"],
        "training.sweep": ["sweep"],
        "training.train": ["train"],
    },
)
__all__ = ["__version__", *_exports]
