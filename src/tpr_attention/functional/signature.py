"""Shapes are written once, in the signature; this module holds callers to them.

jaxtyping annotations are free at run time and check nothing. `checked` reads them when the function is defined and
compares every tensor argument with them at each call, so that a size-one axis never broadcasts unnoticed and an error
names the argument, what was expected and what came.
"""

import difflib
import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

__all__ = ["Sizes", "checked", "choose", "expect", "expect_alike", "expect_floating", "expect_positive", "nearest"]

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

Sizes = dict[str, int | tuple[int, ...]]


def expect(name: str, value: object, axes: str | Sequence[str], sizes: Sizes) -> None:
    """Check that `value` is a floating-point tensor with these axes, and learn the sizes that are new.

    `axes` reads as a jaxtyping shape (`"*batch t r f"`); alternatives are a sequence of them. A name that `sizes`
    already holds must have that size; other names are added to it.

    >>> expect("objects", torch.zeros(2, 7, 6, 3), "*batch t r f", {"r": 6, "f": 4})
    Traceback (most recent call last):
    ...
    ValueError: objects: expected [*batch t r f] with r=6, f=4, got shape [2, 7, 6, 3]
    """
    alternatives = (axes,) if isinstance(axes, str) else axes
    if isinstance(value, Tensor) and value.is_floating_point() and value.layout == torch.strided:
        for alternative in alternatives:
            if _fits(value.shape, alternative, sizes):
                return
    wanted = " or ".join(f"[{alternative}]" for alternative in alternatives)
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: expected a tensor {wanted}, got {type(value).__name__}")
    if not value.is_floating_point():
        raise TypeError(f"{name}: expected a floating-point tensor {wanted}, got {value.dtype}")
    if value.layout != torch.strided:
        raise TypeError(f"{name}: expected a dense tensor {wanted}, got {value.layout}")
    letters = " ".join(alternatives).replace("*", "").split()
    known = ", ".join(f"{k}={_show(v)}" for k, v in sizes.items() if k in letters)
    raise ValueError(
        f"{name}: expected {wanted}{' with ' + known if known else ''}, got shape {_show(tuple(value.shape))}"
    )


def expect_alike(tensors: Mapping[str, Tensor | None], *, dtypes: bool = True) -> None:
    """Check that all tensors given share one dtype and one device, or only the device.

    >>> expect_alike({"role": torch.zeros(2), "filler": torch.zeros(3).double()})
    Traceback (most recent call last):
    ...
    TypeError: filler: expected torch.float32 on cpu as role has, got torch.float64 on cpu
    """
    first: tuple[str, Tensor] | None = None
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if first is None:
            first = name, tensor
        elif (dtypes and tensor.dtype != first[1].dtype) or tensor.device != first[1].device:
            raise TypeError(
                f"{name}: expected {first[1].dtype} on {first[1].device} as {first[0]} has, "
                f"got {tensor.dtype} on {tensor.device}"
            )


def expect_positive(**counts: object) -> None:
    """Check that all counts are whole numbers of at least one.

    >>> expect_positive(num_heads=0)
    Traceback (most recent call last):
    ...
    ValueError: num_heads: expected at least 1, got 0
    """
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, Integral):
            raise TypeError(f"{name}: expected a whole number, got {count!r}")
        if count < 1:
            raise ValueError(f"{name}: expected at least 1, got {count}")


def choose(argument: str, name: str, table: Mapping[str, V]) -> V:
    """The entry of this name; an error tells the names there are, and the nearest of them.

    >>> choose("split", "square_rad", {"square_red": 1, "square_pos": 2})
    Traceback (most recent call last):
    ...
    ValueError: split: expected one of ['square_red', 'square_pos'], got 'square_rad'; did you mean 'square_red'?
    """
    if name in table:
        return table[name]
    raise ValueError(f"{argument}: expected one of {list(table)}, got {name!r}{nearest(name, table)}")


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of an error: the nearest of the names there are, if one is near."""
    near = difflib.get_close_matches(str(name), list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def expect_floating(dtype: torch.dtype | None) -> None:
    """Check that parameters of this dtype can be trained."""
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"dtype: expected a floating-point dtype, got {dtype}")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Hold every call of `function` to the shapes of its signature.

    Its tensors share one dtype and one device, except those that may be None: a state has the precision of the sum.
    """
    specs: dict[str, tuple[tuple[str, ...], bool]] = {}
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        axes = tuple(_shapes(parameter.annotation))
        if axes:
            specs[name] = axes, parameter.default is None
    names = tuple(parameters)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        given = {**{name: args[k] for k, name in enumerate(names[: len(args)])}, **kwargs}
        sizes: Sizes = {}
        tensors: dict[str, Tensor] = {}
        for name, (axes, optional) in specs.items():
            value = given.get(name)
            if value is None and (optional or name not in given):
                continue  # a missing argument is Python's own error
            expect(name, value, axes, sizes)
            if not optional:
                tensors[name] = typing.cast(Tensor, value)
        expect_alike(tensors)
        return function(*args, **kwargs)

    return wrapper


def _shapes(annotation: object) -> Iterator[str]:
    if hasattr(annotation, "dim_str"):
        yield annotation.dim_str
    for part in typing.get_args(annotation):
        yield from _shapes(part)


def _fits(shape: Sequence[int], axes: str, sizes: Sizes) -> bool:
    """Whether the shape has these axes; if so, `sizes` learns them."""
    names = axes.split()
    lead = len(shape) - len(names) + 1 if names[0][0] == "*" else 0
    if lead < 0 or len(shape) - lead != len(names) - (names[0][0] == "*"):
        return False
    found: Sizes = {}
    if names[0][0] == "*":
        batch, names = names[0][1:], names[1:]
        found[batch] = tuple(shape[:lead])
        if sizes.get(batch, found[batch]) != found[batch]:
            return False
    for name, size in zip(names, shape[lead:], strict=True):
        if found.get(name, sizes.get(name, size)) != size:
            return False
        found[name] = size
    sizes.update(found)
    return True


def _show(size: int | tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, size))}]" if isinstance(size, tuple) else str(size)
