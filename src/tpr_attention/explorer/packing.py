"""Arrays in a page: plain values as JSON, the numbers of all arrays compressed and in base64."""

import zlib
from base64 import b64encode
from typing import Any

import numpy as np
from jaxtyping import Float, Float16

__all__ = ["pack", "shortened"]

DTYPES = ("float64", "float32", "float16", "int32", "uint8")
SPARED = 3  # the last bits of 16 that are zero


def pack(values: Any) -> dict[str, Any]:
    """Take the arrays out of nested dicts and lists; `unpack` in arrays.js puts them back as tensors.

    An array becomes `{"array": [dtype, offset, shape]}`, and its numbers, little endian and in zlib's format, are a
    part of `bytes`.

    >>> packed = pack({"name": "one", "map": np.eye(2, dtype=np.float32)})
    >>> packed["values"]
    {'name': 'one', 'map': {'array': ['float32', 0, [2, 2]]}}
    """
    parts: list[bytes] = []
    kept = _without_arrays(values, parts)
    return {"values": kept, "bytes": b64encode(zlib.compress(b"".join(parts), 9)).decode()}


def _without_arrays(values: Any, parts: list[bytes]) -> Any:
    if isinstance(values, dict):
        return {str(name): _without_arrays(value, parts) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_without_arrays(value, parts) for value in values]
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.name not in DTYPES:
        raise TypeError(f"array: expected one of {', '.join(DTYPES)}, got {values.dtype.name}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("array: expected finite numbers")
    written = values.astype(values.dtype.newbyteorder("<")).tobytes()
    if values.dtype == np.float16:  # first all low bytes, then all high ones, which compress better by themselves
        written = np.frombuffer(written, np.uint8).reshape(-1, 2).T.tobytes()
    offset = sum(map(len, parts))
    parts += [written, bytes(-len(written) % 8)]  # so that every array starts where its numbers may
    return {"array": [values.dtype.name, offset, list(values.shape)]}


def shortened(numbers: Float[np.ndarray, "*shape"]) -> Float16[np.ndarray, "*shape"]:
    """The nearest numbers of 16 bits whose last three are zero, which compress to four fifths.

    >>> shortened(np.array([1.0, 0.1, -3.3])).tolist()
    [1.0, 0.10009765625, -3.296875]
    """
    bits = np.array(numbers, dtype=np.float16, ndmin=1).view(np.uint16).astype(np.uint32)
    rounded = ((bits + (1 << (SPARED - 1))) >> SPARED) << SPARED
    return rounded.astype(np.uint16).view(np.float16).reshape(np.shape(numbers))
