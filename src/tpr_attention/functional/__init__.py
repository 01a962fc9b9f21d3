"""The algebra of TPR-Attention: pure functions on tensors, without parameters or state.

The definitions of the paper are `bind`, `superpose`, `unbind` and `tag`; `memorise`, `match`, `extract`, `rebind` and
`attend`; and for any order `memorise_general` and `match_general`. `recall` and `match_unbuilt` give the same results
without building the memory.
"""

from tpr_attention.functional.attention import attend, extract, match, memorise, rebind
from tpr_attention.functional.binding import bind, dual_basis, superpose, tag, unbind
from tpr_attention.functional.factored import recall, state_shape
from tpr_attention.functional.general import match_general, match_unbuilt, memorise_general

__all__ = [
    "attend",
    "bind",
    "dual_basis",
    "extract",
    "match",
    "match_general",
    "match_unbuilt",
    "memorise",
    "memorise_general",
    "rebind",
    "recall",
    "state_shape",
    "superpose",
    "tag",
    "unbind",
]
