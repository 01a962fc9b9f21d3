"""The options of tasks and models, checked against their constructors."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from tpr_attention.imports import ImportPathError, is_path, nearest, parameters
from tpr_attention.models import MODELS
from tpr_attention.tasks import TASKS
from tpr_attention.training.values import SpecError, checkable, convert, is_json

__all__ = ["default_options", "option_types", "options_of"]

TABLES = {"task": TASKS, "model": MODELS}
NOT_OPTIONS = {"task": ("seed",), "model": ()}


def option_types(section: str, name: str) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The options of a task or model: their types, the defaults of those that have one, and whether it takes others."""
    table = TABLES[section]
    if not is_path(name) and name not in table:
        raise SpecError(f"{section}: expected one of {list(table)} or a path, got {name!r}{nearest(name, table)}")
    try:
        types, defaults, is_open = parameters(table.get(name, name))
    except ImportPathError as error:
        raise SpecError(f"{section}: {error}") from error
    kept = {key: kind for key, kind in types.items() if key not in NOT_OPTIONS[section]}
    return kept, {key: value for key, value in defaults.items() if key in kept}, is_open


def options_of(section: str, name: str, given: Mapping[str, object]) -> dict[str, Any]:
    """All options of a task or model, checked against its constructor, sorted by name."""
    types, defaults, is_open = option_types(section, name)
    ours = not is_path(name)
    known = [key for key in types if key in defaults or not ours]  # what has no default, the task gives or we require
    nested = _nested(section, given)
    for key in nested:
        if key not in known and not is_open:
            raise SpecError(
                f"{section}.{key}: {name!r} has no such option; expected one of {known}{nearest(key, known)}"
            )
    fields = [(key, checkable(types[key])) for key in nested if key in types]
    checked = msgspec.to_builtins(convert(f"{section}.", nested, msgspec.defstruct(name, fields, kw_only=True)))
    filled = {key: value for key, value in defaults.items() if is_json(value)}
    options: dict[str, Any] = json.loads(json.dumps({**filled, **nested, **checked}, sort_keys=True))
    return options  # as they are read again from JSON


def default_options(section: str, name: str) -> dict[str, Any]:
    """The options of a task or model of this package that are left out; none of a user's own, which is not imported."""
    return {} if is_path(name) or name not in TABLES[section] else options_of(section, name, {})


def _nested(section: str, given: Mapping[str, object]) -> dict[str, Any]:
    """Options with dots in their names as mappings: `a.b` is the entry `b` of the option `a`.

    What comes later overrules what came before: a value the option, an entry only itself.
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        name, _, entry = key.partition(".")
        if not entry:
            found[name] = value
            continue
        before = found.get(name)
        if not isinstance(before, Mapping | None):
            raise SpecError(f"{section}.{key}: expected keys and values for {name!r}, got {before!r} as well")
        found[name] = {**(before or {}), entry: value}
    return found
