"""From factors of variation to batches of objects.

A `Grid` has columns and actions, `Factors` are rows of it; a split of `SPLITS` says which combinations are held out,
`Pairing` draws pairs under `CONDITIONS`, an `Encoding` turns factors into objects, and a `Composition` is all of it.
`dsprites_composition` makes the paper's task, `random_composition` one of any size, and `floors` says how low a loss on
a task can be.
"""

from tpr_attention.data.composition import Batch, Composition, dsprites_composition
from tpr_attention.data.encoding import Encoding, FillerTable
from tpr_attention.data.factors import Column, Factors, Grid, dsprites, substitute
from tpr_attention.data.fillers import INTERACTIONS, MIXINGS, dsprites_fillers
from tpr_attention.data.floors import Floors, floors
from tpr_attention.data.pairs import CONDITIONS, Condition, Pairing, Pairs
from tpr_attention.data.splits import SPLITS, HeldOut, Split
from tpr_attention.data.streams import stream
from tpr_attention.data.worlds import random_composition

__all__ = [
    "CONDITIONS",
    "INTERACTIONS",
    "MIXINGS",
    "SPLITS",
    "Batch",
    "Column",
    "Composition",
    "Condition",
    "Encoding",
    "Factors",
    "FillerTable",
    "Floors",
    "Grid",
    "HeldOut",
    "Pairing",
    "Pairs",
    "Split",
    "dsprites",
    "dsprites_composition",
    "dsprites_fillers",
    "floors",
    "random_composition",
    "stream",
    "substitute",
]
