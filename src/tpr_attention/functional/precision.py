"""In which precision sums are kept, and other things to know of where a function is called."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

__all__ = ["autocasts", "full_precision", "is_batched", "is_transformed", "sum_dtype"]


def sum_dtype(tensor: Tensor) -> torch.dtype:
    """float64 for float64, else float32: a bfloat16 running sum of equal objects stalls at 256 of them.

    >>> sum_dtype(torch.ones(1, dtype=torch.bfloat16))
    torch.float32
    """
    return torch.promote_types(tensor.dtype, torch.float32)


def autocasts(device: torch.device) -> bool:
    """Whether autocast is on.

    >>> with torch.autocast("cpu"):
    ...     autocasts(torch.device("cpu")), autocasts(torch.device("meta"))
    (True, False)
    """
    if device.type == "meta":
        return False
    try:
        return torch.is_autocast_enabled(device.type)
    except RuntimeError:  # other devices without autocast: asking which they are breaks graphs in torch 2.6
        return False


def full_precision(device: torch.device) -> AbstractContextManager[None]:
    """Without autocast."""
    return torch.autocast(device.type, enabled=False) if autocasts(device) else nullcontext()


def is_transformed() -> bool:
    """Whether a function transform such as `torch.vmap` or forward differentiation is at work; False if torch hides it.

    >>> seen = []
    >>> _ = torch.vmap(lambda x: seen.append(is_transformed()) or x)(torch.ones(2))
    >>> seen, is_transformed()
    ([True], False)
    """
    if torch.compiler.is_compiling():
        return False
    transforms = getattr(torch._C, "_are_functorch_transforms_active", None)
    if transforms is not None and transforms():
        return True
    return bool(getattr(torch.autograd.forward_ad, "_current_level", -1) >= 0)


def is_batched(tensor: Tensor | None) -> bool:
    """Whether a gradient stands for many, as with `is_grads_batched`, which is no transform."""
    functorch = getattr(torch._C, "_functorch", None)
    asks = getattr(functorch, "is_legacy_batchedtensor", None)
    return tensor is not None and asks is not None and bool(asks(tensor))
