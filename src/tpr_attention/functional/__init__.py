"""The algebra of TPR-Attention: pure functions on tensors, without parameters or state.

The definitions of the paper are `bind`, `superpose`, `unbind` and `tag`; `memorise`, `match`, `extract`, `rebind` and
`attend`; and for any order `memorise_general` and `match_general`. `recall`, `read` and `match_unbuilt` give the same
results without building the memory.

`recall_delta` and `recall_replace` overwrite what they stored before; `recall_softmax` matches by a softmax over
objects, and `clean_by_stored` cleans what was found.

Appendix D as functions of an action is in `tpr_attention.functional.action`, which needs no torch: a name is imported
when it is first used.
"""

from tpr_attention.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "attention": ["attend", "extract", "match", "memorise", "rebind"],
        "binding": ["bind", "dual_basis", "superpose", "tag", "unbind"],
        "delta": ["recall_delta"],
        "factored": ["read", "recall", "state_shape"],
        "general": ["match_general", "match_unbuilt", "memorise_general"],
        "replace": ["recall_replace"],
        "softmax_match": ["clean_by_stored", "recall_softmax"],
    },
)
