"""Shapes are written once, in the signature; this module holds callers to them.

jaxtyping annotations are free at run time and check nothing. `checked` reads them when the function is defined and
compares every tensor argument with them at each call, so that a size-one axis never broadcasts unnoticed and an error
names the argument, what was expected and what came.
"""

import difflib
import functools
import inspect
import math
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from tpr_attention.functional.shapes import FLOATS, Sizes, expect, expect_mask

__all__ = [
    "Sizes",
    "checked",
    "choose",
    "expect",
    "expect_alike",
    "expect_bool",
    "expect_generator",
    "expect_mask",
    "expect_number",
    "expect_parameters",
    "expect_positive",
    "expect_room",
    "expect_some",
    "expect_whole",
    "nearest",
    "value_of",
]

_MOST_CALLS = 1000  # kinds of calls that a function remembers to have checked

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

ADDRESSES = 2**63 - 1  # the bytes that torch can count
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else ADDRESSES


def expect_alike(tensors: Mapping[str, Tensor | None], *, dtypes: bool = True) -> None:
    """Check that all tensors given share one dtype and one device.

    Args:
        dtypes: False under autocast, which brings them to one dtype; but it leaves float64 as it is.

    >>> expect_alike({"role": torch.zeros(2), "filler": torch.zeros(3).double()})
    Traceback (most recent call last):
    ...
    TypeError: filler: expected torch.float32 on cpu as role has, got torch.float64 on cpu
    """
    first: tuple[str, Tensor] | None = None
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if tensor.dtype not in FLOATS:
            raise TypeError(f"{name}: expected a floating-point tensor of 16, 32 or 64 bits, got {tensor.dtype}")
        if first is None:
            first = name, tensor
        elif tensor.device != first[1].device or (
            tensor.dtype != first[1].dtype and (dtypes or torch.float64 in (tensor.dtype, first[1].dtype))
        ):
            raise TypeError(
                f"{name}: expected {first[1].dtype} on {first[1].device} as {first[0]} has, "
                f"got {tensor.dtype} on {tensor.device}"
            )


def expect_whole(name: str, count: object, least: int, most: int | None = None) -> int:
    """Check that a count is a whole number between two others, and return it as Python's own."""
    if isinstance(count, bool) or not isinstance(count, Integral):
        raise TypeError(f"{name}: expected a whole number, got {count!r}")
    whole = int(count)
    if whole < least:
        raise ValueError(f"{name}: expected at least {least}, got {whole}")
    if most is not None and whole > most:
        raise ValueError(f"{name}: expected at most {most}, got {whole}")
    return whole


def expect_positive(**counts: object) -> tuple[int, ...]:
    """Check that all counts are whole numbers of at least one, and return them as Python's own.

    >>> expect_positive(num_heads=0)
    Traceback (most recent call last):
    ...
    ValueError: num_heads: expected at least 1, got 0
    """
    return tuple(expect_whole(name, count, 1) for name, count in counts.items())


def expect_bool(**flags: object) -> None:
    """Check that all flags are True or False: a word such as "no" would count as True."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name}: expected True or False, got {flag!r}")


def expect_number(name: str, number: object, most: float | None = None) -> float:
    """Check that a number is finite and above zero, or if it has an upper limit at least zero, and return it.

    >>> expect_number("temperature", 0)
    Traceback (most recent call last):
    ...
    ValueError: temperature: expected a finite number above 0, got 0
    """
    wanted = "a finite number above 0" if most is None else f"a number from 0 to {most:g}"
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"{name}: expected {wanted}, got {number!r}")
    value = float(number)
    if not (0 < value < math.inf if most is None else 0 <= value <= most):
        raise ValueError(f"{name}: expected {wanted}, got {number!r}")
    return value


def expect_some(**sizes: int) -> None:
    """Check that no axis of what is asked is empty.

    >>> expect_some(t=3, r=0)
    Traceback (most recent call last):
    ...
    ValueError: objects and queries: expected at least one entry along r, got none
    """
    for axis, size in sizes.items():
        if size == 0:
            raise ValueError(f"objects and queries: expected at least one entry along {axis}, got none")


def expect_generator(generator: object) -> None:
    """Check that this can be drawn from: a seed cannot."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"generator: expected a torch.Generator or None, got {generator!r}")


def choose(argument: str, name: str, table: Mapping[str, V]) -> V:
    """The entry of this name; an error tells the names there are, and the nearest of them.

    >>> choose("split", "square_rad", {"square_red": 1, "square_pos": 2})
    Traceback (most recent call last):
    ...
    ValueError: split: expected one of ['square_red', 'square_pos'], got 'square_rad'; did you mean 'square_red'?
    """
    if isinstance(name, str) and name in table:
        return table[name]
    raise ValueError(f"{argument}: expected one of {list(table)}, got {name!r}{nearest(name, table)}")


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of an error: the nearest of the names there are, if one is near."""
    near = difflib.get_close_matches(str(name), list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def expect_parameters(numbers: int, device: torch.device | str | None, dtype: torch.dtype | None, **sizes: int) -> None:
    """Check that so many parameters can be made there, in a dtype in which they can be trained.

    >>> expect_parameters(1, None, torch.int64)
    Traceback (most recent call last):
    ...
    TypeError: dtype: expected a floating-point dtype of 16, 32 or 64 bits such as torch.float32, got torch.int64
    """
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype in FLOATS):
        wanted = "a floating-point dtype of 16, 32 or 64 bits such as torch.float32"
        raise TypeError(f"dtype: expected {wanted}, got {dtype!r}")
    if device is not None:
        try:
            torch.device(device)
        except (RuntimeError, TypeError, ValueError):
            raise ValueError(f"device: expected a device of torch such as 'cpu' or 'cuda:0', got {device!r}") from None
    expect_room(numbers, device, dtype, **sizes)


def expect_room(numbers: int, device: torch.device | str | None, dtype: torch.dtype | None, **sizes: int) -> None:
    """Check that so many numbers fit into memory: that of this machine, or on other devices what can be addressed.

    >>> expect_room(10**30, "meta", torch.float32, num_heads=10**30)
    Traceback (most recent call last):
    ...
    ValueError: num_heads=1000000000000000000000000000000: expected sizes whose numbers fit into 9.2e+09 GB of memory,
    got 1e+30 numbers that need 4e+21 GB
    """
    like = torch.empty(0, device=device, dtype=dtype)
    need = numbers * like.element_size()
    have = MEMORY if like.device.type == "cpu" and type(like) is Tensor else ADDRESSES  # fake tensors have no numbers
    if need > have:
        given = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise ValueError(
            f"{given}: expected sizes whose numbers fit into {_rounded(have, 10**9)} GB of memory, "
            f"got {_rounded(numbers)} numbers that need {_rounded(need, 10**9)} GB"
        )


def value_of(tensor: Tensor) -> int | None:
    """The number that a tensor holds, or None where it holds none to be read: traced, fake, meta or under vmap."""
    if torch.compiler.is_compiling():
        return None
    try:
        return int(tensor)
    except RuntimeError:
        return None


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Hold every call of `function` to the shapes of its signature.

    Its tensors share one dtype and one device, except those that may be None: a state has the precision of the sum.
    """
    specs: dict[str, tuple[tuple[str, ...], bool, bool]] = {}
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        arrays = tuple(_arrays(parameter.annotation))
        if arrays:
            axes = tuple(array.dim_str for array in arrays)
            specs[name] = axes, parameter.default is None, "bool" in arrays[0].dtypes
    names = tuple(parameters)
    fitting: set[tuple[object, ...]] = set()  # calls that were found to fit, by what was looked at

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        call = _looks((*args, *kwargs.values())) if len(args) + len(kwargs) > 1 else None
        if call is not None:
            call = (*call, len(args), *kwargs)
            if call in fitting:
                return function(*args, **kwargs)
        given = {**{name: args[k] for k, name in enumerate(names[: len(args)])}, **kwargs}
        sizes: Sizes = {}
        tensors: dict[str, Tensor] = {}
        for name, (axes, optional, mask) in specs.items():
            value = given.get(name)
            if value is None and (optional or name not in given):
                continue  # a missing argument is Python's own error
            (expect_mask if mask else expect)(name, value, axes, sizes)
            if not optional:
                tensors[name] = typing.cast(Tensor, value)
        expect_alike(tensors)
        if call is not None and len(fitting) < _MOST_CALLS:
            fitting.add(call)
        return function(*args, **kwargs)

    return wrapper


def _looks(values: tuple[object, ...]) -> tuple[object, ...] | None:
    """All that a check looks at, to be found again; None where sizes may be symbols."""
    if torch.compiler.is_compiling():
        return None
    found: list[object] = []
    for value in values:
        if type(value) is Tensor or type(value) is torch.nn.Parameter:
            if value.layout != torch.strided or value.is_nested:
                return None
            found += (value.shape, value.dtype, value.device)
        elif isinstance(value, Tensor):
            return None
        else:
            found.append(None if value is None else type(value))
    return tuple(found)


def _arrays(annotation: object) -> Iterator[Any]:
    """The annotations of jaxtyping in a union, or the only one."""
    if hasattr(annotation, "dim_str"):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _arrays(part)


def _rounded(number: int, unit: int = 1) -> str:
    """Two digits, also of numbers that no float holds.

    >>> _rounded(36 * 10**9, 10**9), _rounded(10**400)
    ('36', 'over 1e+308')
    """
    return f"{number / unit:.2g}" if number // unit < 10**308 else "over 1e+308"
