"""Many specs from one description: a list where a spec has one value means each of these."""

import itertools
import typing
from collections.abc import Iterator, Mapping, Sequence

from tpr_attention.training.spec import RunSpec, SpecError, component_names, full_key, option_types

__all__ = ["sweep"]

SECTIONS = ("task", "model", "training")


def sweep(description: Mapping[str, object], changes: Mapping[str, object] | None = None) -> list[RunSpec]:
    """All specs of a description: keys of a spec, lists for several values, and `runs` for changes that go together.

    A section may be a mapping: `model: {name: tpr, num_heads: 8}`. A list for an option that is itself a list, and one
    inside an option, is one value.

    Args:
        changes: Keys that overrule those of the description, also within `runs`.

    >>> several = sweep({"steps": 100, "seed": [0, 1], "runs": [{"model": "tpr"}, {"model": "resnet"}]})
    >>> [(spec.model.name, spec.seed, spec.training.steps) for spec in several]
    [('tpr', 0, 100), ('tpr', 1, 100), ('resnet', 0, 100), ('resnet', 1, 100)]
    >>> sweep({"model.num_heads": [4, 8]})[1].model.options["num_heads"]
    8
    """
    common = {key: value for key, value in description.items() if key != "runs"}
    runs = description.get("runs", [{}])
    if not isinstance(runs, list) or not all(isinstance(run, Mapping) for run in runs):
        raise SpecError(f"runs: expected a list of keys and values, got {runs!r}")
    parts = [[_flat(common), _flat(run), _flat(changes or {})] for run in runs]
    specs = [spec for part in parts for spec in _product(part)]
    if not specs:
        raise SpecError("runs: expected at least one")
    return list(dict.fromkeys(specs))


def _product(parts: Sequence[Mapping[str, object]]) -> Iterator[RunSpec]:
    """First every task and model, which decide what the other keys mean; then every value of these."""
    values = {key: value for part in parts for key, value in part.items()}
    chosen: dict[str, list[object]] = {key: _each(key, values[key]) for key in ("task", "model") if key in values}
    for names in itertools.product(*chosen.values()):
        component = dict(zip(chosen, names, strict=True))
        task, model = component_names(component)
        full: dict[str, object] = {}
        for part in parts:
            full |= {
                key if key == "seed" else full_key(key, task, model): value
                for key, value in part.items()
                if key not in ("task", "model")
            }
        several = {
            key: [value] if _is_one(key, value, task, model) else _each(key, value) for key, value in full.items()
        }
        for row in itertools.product(*several.values()):
            yield RunSpec.of({**component, **dict(zip(several, row, strict=True))})


def _flat(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for key, value in values.items() for name, value in _entries(str(key), value)}


def _entries(key: str, value: object) -> Iterator[tuple[str, object]]:
    """The entries of a section one by one, so that each can have several values."""
    if key in SECTIONS and isinstance(value, Mapping):
        yield from ((key if name == "name" else f"{key}.{name}", entry) for name, entry in value.items())
    else:
        yield key, value


def _is_one(key: str, value: object, task: str, model: str) -> bool:
    """Whether a list is one value: that of an option that is a list, or of an entry inside an option."""
    section, _, name = key.partition(".")
    if "." in name:
        return True
    if section not in ("task", "model") or not isinstance(value, list) or any(isinstance(one, list) for one in value):
        return False
    kind = option_types(section, task if section == "task" else model)[0].get(name)
    return any(_is_list(one) for one in (kind, *typing.get_args(kind)))


def _is_list(kind: object) -> bool:
    return (typing.get_origin(kind) or kind) in (tuple, list, Sequence)


def _each(key: str, value: object) -> list[object]:
    if not isinstance(value, list):
        return [value]
    if not value:
        raise SpecError(f"{key}: expected at least one value, got an empty list")
    return value
