"""Many specs from one description: a list where a spec has one value means each of these."""

import itertools
import typing
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from tpr_attention.training.options import option_types
from tpr_attention.training.spec import RunSpec, SpecError, component_names, full_key

__all__ = ["MOST_RUNS", "expect_count", "sweep"]

SECTIONS = ("task", "model", "training")

MOST_RUNS = 100_000
"""How many runs a request may have: as many take minutes to list, and months to train."""


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
    if not runs:
        raise SpecError("runs: expected at least one")
    before, after = _flat(common), _flat(changes or {})
    choices = [choice for run in runs for choice in _choices([before, _flat(run), after])]
    expect_count(sum(_count(choice) for choice in choices))
    rows = (dict(zip(choice, row, strict=True)) for choice in choices for row in itertools.product(*choice.values()))
    made: dict[str, RunSpec] = {}
    return list(dict.fromkeys(_spec(row, made) for row in rows))


def _spec(keys: Mapping[str, object], made: dict[str, RunSpec]) -> RunSpec:
    """The spec of these keys. Those that differ in the seed alone are checked once, which takes most of the time."""
    others = {key: value for key, value in keys.items() if key != "seed"}
    name = repr(others)
    if name not in made:
        made[name] = RunSpec.of(others)
    return made[name].changed({"seed": keys["seed"]}) if "seed" in keys else made[name]


def expect_count(runs: int) -> None:
    """Refuse more runs than a request may have."""
    if runs > MOST_RUNS:
        raise SpecError(f"runs: expected at most {MOST_RUNS:,} in one request, got {runs:,}")


def _count(choice: Mapping[str, Sequence[object]]) -> int:
    return prod(map(len, choice.values()))


def _choices(parts: Sequence[Mapping[str, object]]) -> Iterator[dict[str, list[object]]]:
    """The values of each key, for every task and model, which decide what the other keys mean."""
    values = {key: value for part in parts for key, value in part.items()}
    chosen: dict[str, list[object]] = {key: _each(key, values[key]) for key in ("task", "model") if key in values}
    expect_count(_count(chosen))
    for names in itertools.product(*chosen.values()):
        component = dict(zip(chosen, names, strict=True))
        task, model = component_names(component)
        full: dict[str, object] = {}
        for part in parts:
            full |= _with_full_names(part, task, model)
        yield {key: [name] for key, name in component.items()} | {
            key: [value] if _is_one(key, value, task, model) else _each(key, value) for key, value in full.items()
        }


def _with_full_names(part: Mapping[str, object], task: str, model: str) -> dict[str, object]:
    """The keys of one part without task and model, by their full names."""
    given: dict[str, str] = {}
    for key in part:
        if key not in ("task", "model"):
            full = key if key == "seed" else full_key(key, task, model)
            if full in given:
                raise SpecError(f"{full}: given twice, as {given[full]!r} and {key!r}")
            given[full] = key
    return {full: part[key] for full, key in given.items()}


def _flat(values: Mapping[str, object]) -> dict[str, object]:
    """The entries of sections one by one, so that each can have several values."""
    found: dict[str, object] = {}
    for key, value in values.items():
        entries = [(str(key), value)]
        if key in SECTIONS and isinstance(value, Mapping):
            entries = [(key if name == "name" else f"{key}.{name}", entry) for name, entry in value.items()]
        for name, entry in entries:
            if name in found:
                raise SpecError(f"{name}: given twice")
            found[name] = entry
    return found


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
