"""Attention over structured, role-filler representations.

An object is a sum of role (x) filler bindings. Objects are superposed in an associative memory; attention matches
objects by role and filler, extracts a property, maps it and binds it to a new role.

- `tpr_attention.functional`: the algebra, as pure functions on tensors.
- `tpr_attention.nn`: the layers `TPRAttention` and `ActionTPRAttention`.
- `tpr_attention.data`: the composition task, from factors of variation to batches of objects.
- `tpr_attention.models`: the models that are compared on it.
- `tpr_attention.experiments`: trainings as values, a store of them, and the paper's figures as lists of them.
- `tpr_attention.report`: from stored curves to figures, tables and verdicts.

Importing this package imports none of them, and not torch.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
