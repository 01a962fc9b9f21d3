"""Many specs from one description: a list where a spec has one value means each of these."""

import itertools
from collections.abc import Iterator, Mapping

from tpr_attention.experiments.spec import RunSpec, SpecError

__all__ = ["sweep"]

LISTS = ("position_range", "scale_angles")
"""Keys whose value is itself a list: several are a list of lists."""


def sweep(description: Mapping[str, object], changes: Mapping[str, object] | None = None) -> list[RunSpec]:
    """All specs of a description: keys of a spec, lists for several values, and `runs` for changes that go together.

    Args:
        changes: Keys that overrule those of the description, also within `runs`.

    >>> several = sweep({"steps": 100, "seed": [0, 1], "runs": [{"model": "tpr"}, {"model": "resnet"}]})
    >>> [(spec.model, spec.seed, spec.steps) for spec in several]
    [('tpr', 0, 100), ('tpr', 1, 100), ('resnet', 0, 100), ('resnet', 1, 100)]
    >>> sweep({"options.num_heads": [4, 8]})[1].options
    {'num_heads': 8}
    """
    common = {key: value for key, value in description.items() if key != "runs"}
    runs = description.get("runs", [{}])
    if not isinstance(runs, list) or not all(isinstance(run, Mapping) for run in runs):
        raise SpecError(f"runs: expected a list of keys and values, got {runs!r}")
    specs = [spec for run in runs for spec in _product({**_flat(common), **_flat(run), **_flat(changes or {})})]
    if not specs:
        raise SpecError("runs: expected at least one")
    return list(dict.fromkeys(specs))


def _product(values: Mapping[str, object]) -> Iterator[RunSpec]:
    several = {key: _each(key, value) for key, value in values.items()}
    for chosen in itertools.product(*several.values()):
        fields: dict[str, object] = {}
        options: dict[str, object] = {}
        for key, value in zip(several, chosen, strict=True):
            if key.startswith("options."):
                options[key.removeprefix("options.")] = value
            else:
                fields[key] = value
        yield RunSpec.of(fields | ({"options": options} if options else {}))


def _flat(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for key, value in values.items() for name, value in _entries(str(key), value)}


def _entries(key: str, value: object) -> Iterator[tuple[str, object]]:
    """Options one by one, so that each can have several values."""
    if key == "options" and isinstance(value, Mapping):
        yield from ((f"options.{name}", entry) for name, entry in value.items())
    else:
        yield key, value


def _each(key: str, value: object) -> list[object]:
    if not isinstance(value, list):
        return [value]
    if key in LISTS and not any(isinstance(entry, list) for entry in value):
        return [value]
    if not value:
        raise SpecError(f"{key}: expected at least one value, got an empty list")
    return value
