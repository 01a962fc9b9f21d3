"""Keys and values of specs, as they are typed or written in a file: YAML, as far as it is JSON.

Numbers, texts, true, false, null, lists and mappings are values; dates and other types are not. What YAML 1.1 takes for
something else than it seems (`no`, `010`, `1:30`, `2020-01-01`) is a text.
"""

import re
from collections.abc import Hashable, Sequence
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import yaml  # type: ignore[import-untyped]

from tpr_attention.training.spec import SpecError
from tpr_attention.training.values import MOST_NESTED

__all__ = ["parse_file", "parse_line"]

MOST_BYTES = 250_000  # of a file; to read more takes seconds, and it would describe more runs than can be trained
MOST_VALUES = 100_000  # of a file or a typed value, with every alias written out
LONGEST_NUMBER = 400  # characters; more digits have no meaning, and Python does not read them
TAG = "tag:yaml.org,2002:"
PLAIN: dict[str, tuple[str, str]] = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?(0|[1-9][0-9_]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    "merge": (r"<<", "<"),
}
"""What is no text without quotes: the pattern of each type, and the characters it may begin with."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads values of JSON, and says where there is anything else."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}
    yaml_constructors: ClassVar[dict[str, Any]] = {
        TAG + name: yaml.SafeLoader.yaml_constructors[TAG + name]
        for name in ("null", "bool", "int", "float", "str", "seq", "map")
    }

    def __init__(self, stream: str | bytes) -> None:
        super().__init__(stream)
        self.depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise _refusal(f"nested deeper than {MOST_NESTED} levels", self.peek_event().start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None:
            values, depth = _extent(node, {})
            if values > MOST_VALUES or depth > MOST_NESTED:
                raise _refusal(
                    f"expected at most {MOST_VALUES:,} values in {MOST_NESTED} levels, "
                    f"got {f'{values:,.0f} in {depth:.0f}' if values < inf else 'one that contains itself'}",
                    node.start_mark,
                )
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        if node.tag not in self.yaml_constructors:
            kind = node.tag.replace(TAG, "!!")
            raise _refusal(f"expected a value of JSON, not one of type {kind}", node.start_mark)
        if node.tag in (TAG + "int", TAG + "float") and len(str(node.value)) > LONGEST_NUMBER:
            raise _refusal(f"a number of {len(node.value):,} digits", node.start_mark)
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError) as error:  # of its constructors, for !!int abc
            said = f"not of type {node.tag.replace(TAG, '!!')}: {node.value!r}"
            raise _refusal(said, node.start_mark) from error

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, object]:
        seen = set[str]()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key.tag not in (TAG + "str", TAG + "merge"):
                raise _refusal(f"expected a text as key, got {_source(key)}", key.start_mark)
            if key.value in seen:
                raise _refusal(f"the key {key.value!r} is given twice", key.start_mark)
            seen.add(key.value)
        found: dict[Hashable, object] = super().construct_mapping(node, deep)
        return found


for _name, (_pattern, _first) in PLAIN.items():
    _Loader.add_implicit_resolver(TAG + _name, re.compile(f"(?:{_pattern})$"), [*_first, *([""] * (_name == "null"))])


def _extent(node: yaml.Node, known: dict[int, tuple[float, float]]) -> tuple[float, float]:
    """How many values a node stands for, and in how many levels, if every alias is written out."""
    if id(node) not in known:
        known[id(node)] = inf, inf  # while it is counted: so has what contains itself
        parts = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        inside = [_extent(part, known) for part in parts]
        known[id(node)] = (
            1.0 + sum(values for values, _ in inside),
            1.0 + max((depth for _, depth in inside), default=0.0),
        )
    return known[id(node)]


def _source(node: yaml.Node) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else "a list or keys and values"


def _refusal(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _said(error: yaml.YAMLError) -> str:
    """What is wrong, in one line."""
    if isinstance(error, yaml.MarkedYAMLError):
        return " ".join(part for part in (error.context, error.problem) if part)
    if isinstance(error, yaml.reader.ReaderError):
        return f"the character {chr(error.character)!r} at position {error.position} is no text"
    return str(error)


def parse_file(path: str) -> dict[str, object]:
    """Read the keys and values of a YAML file."""
    text = _read(path)
    try:
        found = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise SpecError(f"{path}: {'' if mark is None else f'line {mark.line + 1}: '}{_said(error)}") from error
    if not isinstance(found, dict):
        raise SpecError(f"{path}: expected keys and values")
    return found


def _read(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) <= MOST_BYTES:
            return data.decode("utf-8-sig")
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: cannot be read: byte {error.start} is not UTF-8") from error
    except ValueError as error:  # a name that no file can have
        raise SpecError(f"{path}: cannot be read: {error}") from error
    raise SpecError(f"{path}: expected at most {MOST_BYTES:,} bytes that describe runs, got more")


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
        if key in described:
            raise SpecError(f"{key}: given twice; a list such as {key}=[1,2] means each of its values")
        if not text.strip():
            raise SpecError(f"{key}: expected a value after the sign =; null for none")
        try:
            described[key] = yaml.load(text, _Loader)
        except yaml.YAMLError as error:
            raise SpecError(f"{change}: not a value: {_said(error)}") from error
    return described
