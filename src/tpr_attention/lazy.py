"""Packages that import their public names when these are first used (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence

__all__ = ["lazy_exports"]


def lazy_exports(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` of a package, from the names that each of its modules exports.

    A name is looked up once; then it is an ordinary attribute of the package. Type checkers read the stub beside it.

    >>> find, _, names = lazy_exports("tpr_attention.nn", {"initialisation": ["orthonormal_"]})
    >>> names, find("orthonormal_").__module__
    (['orthonormal_'], 'tpr_attention.nn.initialisation')
    """
    modules = {name: f"{package}.{module}" for module, names in homes.items() for name in names}

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(modules[name]), name)
        vars(sys.modules[package])[name] = found
        return found

    def every_name() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return find, every_name, sorted(modules)
