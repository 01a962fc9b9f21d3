"""Named streams of random numbers, independent of each other and of torch's global state."""

import hashlib

import torch

__all__ = ["stream"]


def stream(seed: int, name: str) -> torch.Generator:
    """The generator of this name for this seed: the same numbers every time, others for every other name.

    >>> torch.equal(torch.randn(3, generator=stream(0, "mixing")), torch.randn(3, generator=stream(0, "mixing")))
    True
    """
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or not 0 <= seed < 2**63:
        raise ValueError(f"seed: expected a whole number from 0 to 2**63 - 1, got {seed!r}")
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
