# What type checkers read: the names that `__init__.py` imports lazily. A test compares the two.

from tpr_attention.functional.attention import attend as attend
from tpr_attention.functional.attention import extract as extract
from tpr_attention.functional.attention import match as match
from tpr_attention.functional.attention import memorise as memorise
from tpr_attention.functional.attention import rebind as rebind
from tpr_attention.functional.binding import bind as bind
from tpr_attention.functional.binding import dual_basis as dual_basis
from tpr_attention.functional.binding import superpose as superpose
from tpr_attention.functional.binding import tag as tag
from tpr_attention.functional.binding import unbind as unbind
from tpr_attention.functional.delta import recall_delta as recall_delta
from tpr_attention.functional.factored import read as read
from tpr_attention.functional.factored import recall as recall
from tpr_attention.functional.factored import state_shape as state_shape
from tpr_attention.functional.general import match_general as match_general
from tpr_attention.functional.general import match_unbuilt as match_unbuilt
from tpr_attention.functional.general import memorise_general as memorise_general
from tpr_attention.functional.replace import recall_replace as recall_replace
from tpr_attention.functional.softmax_match import clean_by_stored as clean_by_stored
from tpr_attention.functional.softmax_match import recall_softmax as recall_softmax
