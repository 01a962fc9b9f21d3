"""Memory for the tiles of one call, and the small operations that write into it."""

import torch
from torch import Tensor

__all__ = ["Room"]


class Room:
    """Memory used again and again: to get fresh memory from the system costs more than to compute with it."""

    def __init__(self, like: Tensor, readers: int, exclude_self: bool) -> None:
        self._like, self._readers, self._exclude_self = like, readers, exclude_self
        self._buffers: dict[tuple[object, ...], Tensor] = {}
        self._masks: dict[int, Tensor] = {}

    def __call__(self, name: str, *shape: int) -> Tensor:
        buffer = self._buffers.get((name, shape))
        if buffer is None:
            buffer = self._buffers[name, shape] = self._like.new_empty(shape)
        return buffer

    def bmm(self, name: str, a: Tensor, b: Tensor) -> Tensor:
        return torch.bmm(a, b, out=self(name, a.shape[0], a.shape[1], b.shape[2]))

    def outer(self, name: str, role: Tensor, filler: Tensor, chunk: int) -> Tensor:
        """role (x) filler of every query, as rows of chunks `[k (c g) (r f)]`."""
        outer = self(name, *role.shape, filler.shape[-1])
        torch.mul(role.unsqueeze(-1), filler.unsqueeze(-2), out=outer)
        return outer.view(-1, chunk * role.shape[2], role.shape[3] * filler.shape[3])

    def mask(self, length: int) -> Tensor:
        """1 where the query of a row may see the object of a column."""
        if length not in self._masks:
            mask = self._like.new_ones(length, length).tril_(-int(self._exclude_self))
            self._masks[length] = mask.repeat_interleave(self._readers, 0)
        return self._masks[length]

    def contract(self, objects: Tensor, other: Tensor, axis: int, found: Tensor) -> None:
        """Sum of a product over one of the axes role (-2) and filler (-1), for objects `[b t g r f]`."""
        products = torch.mul(objects, other, out=self("products", *objects.shape))
        torch.sum(products, axis, out=found)
