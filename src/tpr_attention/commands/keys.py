"""Keys and values of specs, as they are typed or written in a file."""

import re
from collections.abc import Sequence
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from tpr_attention.training.spec import SpecError

__all__ = ["parse_file", "parse_line"]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML in which 1e-3 is a number."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def parse_file(path: str) -> dict[str, object]:
    """Read the keys and values of a YAML file."""
    try:
        found = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise SpecError(f"{path}: expected keys and values")
    return found


def parse_line(changes: Sequence[str]) -> dict[str, object]:
    """Read keys and values as they are typed.

    >>> parse_line(["model=tpr", "seed=[0, 1]", "learning_rate=1e-3"])
    {'model': 'tpr', 'seed': [0, 1], 'learning_rate': 0.001}
    """
    described: dict[str, object] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not key or not equals:
            raise SpecError(f"{change}: expected key=value")
        try:
            described[key] = yaml.load(text, _Loader)
        except yaml.YAMLError as error:
            raise SpecError(f"{change}: not a value: {error}") from error
    return described
