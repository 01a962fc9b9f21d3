"""How many numbers a contestant keeps of a sequence: a function of its options and of the task's."""

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from tpr_attention.training.spec import RunSpec

__all__ = ["state_size"]

Options = Mapping[str, Any]


def state_size(spec: RunSpec, length: int | None = None) -> int:
    """The numbers in the state after so many pairs or objects; as many as in training if not given.

    >>> state_size(RunSpec.of({"task": "recall-compositional", "model": "recall-tpr"}))
    32768
    """
    task, model = spec.task.options, spec.model.options
    length = _length(spec.task.name, task) if length is None else length
    return STATES[spec.model.name](model, _num_values(spec.task.name, task), length)


def _num_values(task: str, options: Options) -> int:
    return {
        "recall-capacity": lambda: int(options["num_pairs"]),
        "recall-compositional": lambda: int(options["num_values"]),
        "recall-contextual": lambda: int(options["searches"] + options["values"]),
        "recall-hops": lambda: int(options["filler_dim"]),
        "recall-sar": lambda: 2 * int(options["each"]),
    }[task]()


def _length(task: str, options: Options) -> int:
    return {
        "recall-capacity": lambda: int(options["num_pairs"]) * (2 if options["setting"] == "replacement" else 1),
        "recall-compositional": lambda: int(options["pairs"]),
        "recall-contextual": lambda: int(options["objects"]),
        "recall-hops": lambda: int(options["items"]),
        "recall-sar": lambda: int(options["pairs"]),
    }[task]()


def _tpr(options: Options, values: int, length: int) -> int:
    size, matches = options["filler_dim"], options["num_matches"]
    heads = ceil(values / size) if options["values"] == "one-hot" else 1
    width = int((matches + heads) * size)
    if options["match"] == "softmax":
        return length * width
    if options["write"] == "replace":
        return width**2
    return int(heads * size**matches * size)


def _key_and_value(options: Options, values: int) -> tuple[int, int]:
    """The numbers of a head's key and value."""
    width, half = int(options["width"]) // int(options["num_heads"]), int(options["width"]) // 2
    value = {
        "published": values,
        "block": width,
        "roles": half,
        "fixed-roles": ceil(values / half) * half,
    }[options["encoder"]]
    return width, value


def _softmax(options: Options, values: int, length: int) -> int:
    return length * int(options["num_heads"]) * sum(_key_and_value(options, values))


def _sum(features: Callable[[Options], int]) -> Callable[[Options, int, int], int]:
    def size(options: Options, values: int, length: int) -> int:
        key, value = _key_and_value(options, values)
        return int(options["num_heads"]) * key * features(options) * (value + 1)  # and the normaliser

    return size


def _delta(options: Options, values: int, length: int) -> int:
    key, value = _key_and_value(options, values)
    return int(options["num_heads"]) * key * (2 if options["features"] == "dpfp" else 1) * value


def _contextual(options: Options, fields: int, length: int) -> int:
    return length * (fields + 1) * int(options["filler_dim"])


def _contextual_attention(options: Options, fields: int, length: int) -> int:
    return 2 * length * int(options["num_heads"]) * int(options["head_dim"])


def _hops(options: Options, size: int, length: int) -> int:
    if options["match"] == "softmax" or options["clean_up"] == "stored":
        return 2 * length * size
    return size**2 + (length * size if options["clean_up"] == "items" else 0)


STATES: dict[str, Callable[[Options, int, int], int]] = {
    "recall-tpr": _tpr,
    "recall-softmax": _softmax,
    "recall-linear": _sum(lambda options: 1),
    "recall-dpfp": _sum(lambda options: 2 * int(options["nu"])),
    "recall-delta": _delta,
    "contextual-tpr": _contextual,
    "contextual-attention": _contextual_attention,
    "hops-tpr": _hops,
}
"""Model to its options, the number of values and the length, to the numbers of its state."""
