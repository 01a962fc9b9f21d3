"""The recall contestants as they are held to the contract."""

from ..conformance import Case

PAIRS = {"num_keys": 8, "num_values": 6, "pairs": 4, "queries": 3, "lengths": [1, 4]}
TASKS = {
    "recall-dpfp": ("recall-capacity", {"num_pairs": 9, "queries": 2}, {"width": 8}),
}


def recall(name):
    """The case of a recall contestant."""
    task, task_options, options = TASKS.get(name, ("recall-compositional", PAIRS, {}))
    return Case(name, task, task_options, options)
