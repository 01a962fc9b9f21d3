"""Classes and functions by import path, and what their constructors take.

Signatures of this package are read from its source, so that a wrong key is told before torch is loaded. What a user
brings is imported, and only when it is named in a request.
"""

import ast
import functools
import hashlib
import importlib
import importlib.util
import inspect
import operator
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

__all__ = [
    "ImportPathError",
    "Parameters",
    "file_hash",
    "is_path",
    "load",
    "loaded_hash",
    "nearest",
    "parameters",
    "source_hash",
]

PACKAGE = "tpr_attention"
HASH_DIGITS = 12
_HASHES: dict[str, str | None] = {}  # of the files of modules, when they were first loaded here
NAMES = {kind.__name__: kind for kind in (bool, int, float, str, tuple, list, dict)} | {
    "Any": Any,
    "Literal": Literal,
    "Mapping": Mapping,
    "Sequence": Sequence,
}


class ImportPathError(ValueError):
    """A path that names nothing that can be called; the message names the path."""


class Parameters(NamedTuple):
    """What a constructor takes.

    Args:
        types: The type of each parameter; `Any` where none is stated.
        defaults: The parameters that may be left out.
        open: Whether it takes any further keyword.
    """

    types: dict[str, Any]
    defaults: dict[str, Any]
    open: bool = False


def is_path(name: str) -> bool:
    """Whether a name is an import path such as `package.module:Name`."""
    return ":" in name


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of an error: the nearest of the names there are, if one is near.

    >>> nearest("modle", ["model", "task"])
    "; did you mean 'model'?"
    """
    near = get_close_matches(str(name), list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def load(path: str) -> Callable[..., Any]:
    """Import what `package.module:Name` names.

    >>> load("math:hypot")(3, 4)
    5.0
    """
    module_name, colon, name = path.partition(":")
    if not (module_name and colon and name):
        raise ImportPathError(f"{path!r}: expected a path like 'package.module:Name'")
    try:
        module = importlib.import_module(module_name)
        _HASHES.setdefault(module_name, source_hash(path))
    except (Exception, SystemExit) as error:  # a script may end where it should only define
        raise ImportPathError(f"{path!r}: cannot import {module_name!r}: {type(error).__name__}: {error}") from error
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ImportPathError(
            f"{path!r}: expected a class or function {name!r} in {module_name!r}, got {found!r}"
            + nearest(name, vars(module))
        )
    return found


def file_hash(path: str | Path) -> str | None:
    """The first digits of the SHA-256 of a file; None if it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:HASH_DIGITS]
    except (OSError, ValueError):  # the latter for a name that no file can have
        return None


def source_hash(path: str) -> str | None:
    """The hash of the file that defines the module of `package.module:Name`; None if no file does.

    The module is not imported, but the packages around it are. Modules of this package have none: their version is
    stored with every run.
    """
    module_name = path.partition(":")[0]
    if module_name.partition(".")[0] == PACKAGE:
        return None
    module = sys.modules.get(module_name)
    if module is not None:
        file = getattr(module, "__file__", None)
    else:
        try:
            found = importlib.util.find_spec(module_name)
        except (Exception, SystemExit):  # a package around it may do anything
            return None
        file = found.origin if found is not None and found.has_location else None
    return file_hash(file) if file else None


def loaded_hash(path: str) -> str | None:
    """The hash that the file of a module had when it was loaded here."""
    load(path)
    return _HASHES[path.partition(":")[0]]


@functools.cache
def parameters(path: str) -> Parameters:
    """What the constructor at a path takes: read from the source if it is of this package, else imported."""
    return _stated(path) if path.startswith(f"{PACKAGE}.") else _imported(path)


def _imported(path: str) -> Parameters:
    made = load(path)
    try:
        found = inspect.signature(made).parameters
    except (TypeError, ValueError) as error:
        raise ImportPathError(f"{path!r}: cannot tell what it takes: {error}") from error
    try:
        hints = typing.get_type_hints(made.__init__ if inspect.isclass(made) else made)
    except Exception:  # for example names that only a type checker imports
        hints = {}
    keywords = {name: one for name, one in found.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    return Parameters(
        {name: hints.get(name, Any) for name in keywords},
        {name: one.default for name, one in keywords.items() if one.default is not one.empty},
        any(one.kind is one.VAR_KEYWORD for one in found.values()),
    )


def _stated(path: str) -> Parameters:
    module, _, name = path.partition(":")
    source = files(PACKAGE).joinpath(*module.split(".")[1:-1], f"{module.rpartition('.')[2]}.py")
    defined = {
        node.name: node
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    found = defined[name]
    if isinstance(found, ast.ClassDef):
        found = next(node for node in found.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    arguments = found.args
    named = [argument for argument in (*arguments.args, *arguments.kwonlyargs) if argument.arg != "self"]
    last = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    defaults = [*zip(last, arguments.defaults, strict=True)]
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    defaults += [(argument, default) for argument, default in keyword_only if default is not None]
    return Parameters(
        {argument.arg: _type(argument.annotation) for argument in named},
        {argument.arg: ast.literal_eval(default) for argument, default in defaults},
    )


def _type(annotation: ast.expr | None) -> Any:
    """The type that an annotation states, without parts of a union that no option can have; `Any` if none is left."""
    if annotation is None:
        return Any
    if isinstance(annotation, ast.BinOp):
        parts = [kind for kind in (_type(annotation.left), _type(annotation.right)) if kind is not Any]
        return functools.reduce(operator.or_, parts) if parts else Any
    try:
        return eval(ast.unparse(annotation), {"__builtins__": {}}, dict(NAMES))
    except NameError:
        return Any
