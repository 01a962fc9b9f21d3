"""The recall contestants as they are held to the contract."""

from ..conformance import Case

PAIRS = {"num_keys": 8, "num_values": 6, "pairs": 4, "queries": 3, "lengths": [1, 4]}
TASKS = {
    "recall-dpfp": ("recall-capacity", {"num_pairs": 9, "queries": 2}, {"width": 8}),
    "contextual-tpr": ("recall-contextual", {}, {"filler_dim": 9, "hidden": 8}),
    "contextual-attention": ("recall-contextual", {}, {"width": 16}),
    "hops-tpr": ("recall-hops", {"items": 5, "filler_dim": 7}, {}),
}
FIXED = ("hops-tpr",)
"""Contestants that are told all their weights."""


def recall(name):
    """The case of a recall contestant."""
    task, task_options, options = TASKS.get(name, ("recall-compositional", PAIRS, {}))
    return Case(name, task, task_options, options, random_start=name not in FIXED)
