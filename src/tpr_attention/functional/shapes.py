"""Whether a tensor has the axes that a jaxtyping shape names, and an error that says so where it has not."""

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["FLOATS", "Sizes", "expect", "expect_mask"]

Sizes = dict[str, int | tuple[int, ...]]

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)  # torch cannot compute in those of 8 bits


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
    if isinstance(value, Tensor) and value.dtype in FLOATS and value.layout == torch.strided and not value.is_nested:
        for alternative in alternatives:
            if _fits(value.shape, alternative, sizes):
                return
    wanted = " or ".join(f"[{alternative}]" for alternative in alternatives)
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: expected a tensor {wanted}, got {type(value).__name__}")
    if value.dtype not in FLOATS:
        raise TypeError(f"{name}: expected a floating-point tensor {wanted} of 16, 32 or 64 bits, got {value.dtype}")
    if value.layout != torch.strided or value.is_nested:
        layout = "a nested tensor" if value.is_nested else value.layout
        raise TypeError(f"{name}: expected a dense tensor {wanted}, got {layout}")
    raise _misfit(name, value, alternatives, sizes)


def expect_mask(name: str, value: object, axes: str | Sequence[str], sizes: Sizes) -> None:
    """The same for a tensor of booleans.

    >>> expect_mask("mask", torch.ones(2, 7), "*batch t", {})
    Traceback (most recent call last):
    ...
    TypeError: mask: expected a tensor [*batch t] of torch.bool, got torch.float32
    """
    alternatives = (axes,) if isinstance(axes, str) else axes
    got = value.dtype if isinstance(value, Tensor) else type(value).__name__
    if not isinstance(value, Tensor) or got != torch.bool:
        wanted = " or ".join(f"[{alternative}]" for alternative in alternatives)
        raise TypeError(f"{name}: expected a tensor {wanted} of torch.bool, got {got}")
    if not any(_fits(value.shape, alternative, sizes) for alternative in alternatives):
        raise _misfit(name, value, alternatives, sizes)


def _misfit(name: str, value: Tensor, alternatives: Sequence[str], sizes: Sizes) -> ValueError:
    wanted = " or ".join(f"[{alternative}]" for alternative in alternatives)
    letters = " ".join(alternatives).replace("*", "").split()
    known = ", ".join(f"{k}={_show(v)}" for k, v in sizes.items() if k in letters)
    wanted += f" with {known}" if known else ""
    return ValueError(f"{name}: expected {wanted}, got shape {_show(tuple(value.shape))}")


def _fits(shape: Sequence[int], axes: str, sizes: Sizes) -> bool:
    """Whether the shape has these axes; if so, `sizes` learns them."""
    batch, names = _parsed(axes)
    lead = len(shape) - len(names)
    if lead < 0 or (lead > 0 and batch is None):
        return False
    found: Sizes = {}
    if batch is not None:
        found[batch] = tuple(shape[:lead])
        if sizes.get(batch, found[batch]) != found[batch]:
            return False
    for name, size in zip(names, shape[lead:], strict=True):
        if found.get(name, sizes.get(name, size)) != size:
            return False
        found[name] = size
    sizes.update(found)
    return True


def _parsed(axes: str) -> tuple[str | None, tuple[str, ...]]:
    """The name of the leading axes, if there may be any, and the names of the others."""
    parsed = _PARSED.get(axes)
    if parsed is None:
        first, *others = axes.split()
        parsed = (first[1:], tuple(others)) if first[0] == "*" else (None, (first, *others))
        if not torch.compiler.is_compiling():
            _PARSED[axes] = parsed
    return parsed


_PARSED: dict[str, tuple[str | None, tuple[str, ...]]] = {}


def _show(size: int | tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, size))}]" if isinstance(size, tuple) else str(size)
