"""Values of options and keys: what they may be, and errors that name the key."""

import re
import typing
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from typing import Any

import msgspec

__all__ = ["MOST_NESTED", "SURROGATES", "SpecError", "checkable", "convert", "is_json"]

MOST_NESTED = 50
"""How many levels of lists and mappings a value may have."""

SURROGATES = re.compile("[\ud800-\udfff]")
"""What a text cannot have that is written as UTF-8; Python has them for bytes of paths that are no UTF-8."""


class SpecError(ValueError):
    """A request that cannot be run; the message begins with the key."""


def convert(prefix: str, values: Mapping[str, object], kind: type[Any]) -> Any:
    """Values as a struct; an error begins with the key and ends with the value."""
    for key, value in values.items():
        if not is_json(value):
            raise SpecError(
                f"{prefix}{key}: expected finite numbers of 64 bits, texts, true, false or null, got {value!r}"
            )
    with suppress(msgspec.ValidationError):
        return msgspec.convert(values, kind)
    try:
        return msgspec.convert({key: _whole(value) for key, value in values.items()}, kind)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$.")
        key = place.rstrip("`")
        name = key.partition(".")[0].partition("[")[0]
        choices = typing.get_args(typing.get_type_hints(kind).get(name)) if "enum" in said else ()
        wanted = f"expected one of {list(choices)}" if choices else _plain(said)
        raise SpecError(f"{prefix}{key}: {wanted}, got {values.get(name)!r}") from error


KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "keys and values",
}
LIMITS = {" >= ": " of at least ", " <= ": " of at most ", " > ": " above "}


def _plain(said: str) -> str:
    """A message of msgspec in our words.

    >>> _plain("Expected `int | null`, got `str`")
    'expected a whole number or null'
    """
    kinds = re.sub("`(.*?)`", lambda found: " or ".join(KINDS.get(kind, kind) for kind in found[1].split(" | ")), said)
    for sign, words in LIMITS.items():
        kinds = kinds.replace(sign, words)
    return kinds[0].lower() + kinds[1:].split(", got")[0]


def _whole(value: object) -> object:
    """A whole number as people write it: 1e4 is 10000."""
    if isinstance(value, list | tuple):
        return [_whole(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value


def checkable(kind: Any) -> Any:
    """A type that msgspec can check; others are taken as they are."""
    try:
        msgspec.json.Decoder(kind)
    except Exception:
        return Any
    return kind


def is_json(value: object, levels: int = MOST_NESTED) -> bool:
    """Whether a value survives JSON: finite 64-bit numbers, texts, true, false, null, lists and mappings of these."""
    if isinstance(value, Mapping):
        keys = all(isinstance(key, str) and is_json(key) for key in value)
        return levels > 0 and keys and all(is_json(entry, levels - 1) for entry in value.values())
    if isinstance(value, list | tuple):
        return levels > 0 and all(is_json(entry, levels - 1) for entry in value)
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return value is None or (isinstance(value, str) and SURROGATES.search(value) is None)
