"""The general TPR-SAM: objects of any order, several copies, several queries (App. C)."""

from collections.abc import Sequence
from math import prod
from string import ascii_letters

import torch
from torch import Tensor

from tpr_attention.functional.signature import expect, expect_alike, expect_room, expect_whole

__all__ = ["match_general", "match_unbuilt", "memorise_general"]

_MOST_MODES = len(ascii_letters)


def memorise_general(objects: Tensor, *, order: int, copies: int) -> Tensor:
    r"""Store objects `[*batch t d_1 ... d_s]` of order s as the sum of their j-fold tensor power.

    M = sum_t O_t^{(x) j}                                                                       (App. C)

    The modes of the memory are those of the first copy, then those of the second, and so on.

    >>> memorise_general(torch.tensor([[1.0, 2.0]]), order=1, copies=3).shape
    torch.Size([2, 2, 2])
    """
    order, copies = _expect_counts(order, copies)
    modes = _modes(objects, order)
    expect_room(prod(modes) ** copies, objects.device, objects.dtype, order=order, copies=copies)
    batch = objects.shape[: -order - 1]
    flat = objects.flatten(-order)
    power = flat
    for _ in range(copies - 1):
        power = (power.unsqueeze(-1) * flat.unsqueeze(-2)).flatten(-2)
    return power.sum(-2).reshape(*batch, *modes * copies)


def match_general(
    memory: Tensor,
    queries: Sequence[Tensor],
    *,
    order: int,
    copies: int,
    free: int,
    modes: Sequence[int] | None = None,
) -> Tensor:
    r"""Contract m query vectors `[*batch d]` with a memory and keep its n free modes.

    M_obj(M, q_1 (x) ... (x) q_m), where j s - m = n                                            (App. C)

    Args:
        memory: Sum of j = `copies` copies of objects of order s = `order`.
        free: n, how many modes the answer shall have.
        modes: The mode of the memory that each query contracts; the last m modes, in order, if not given.

    >>> objects = torch.eye(3)[:, :, None] * torch.tensor([5.0, 7.0])  # three objects, role i holds (5, 7)
    >>> memory = memorise_general(objects, order=2, copies=1)
    >>> match_general(memory, [torch.tensor([0.0, 1.0, 0.0])], order=2, copies=1, free=1, modes=[0])
    tensor([5., 7.])
    """
    order, copies = _expect_counts(order, copies)
    chosen = _chosen(order * copies, queries, free, modes)
    expect("memory", memory, "*batch " + " ".join([f"d_{k + 1}" for k in range(order)] * copies), {})
    sizes = memory.shape[memory.ndim - order * copies :]
    batch = tuple(memory.shape[: memory.ndim - order * copies])
    _expect_queries(queries, batch, [sizes[mode] for mode in chosen], memory=memory)
    letters = ascii_letters[: order * copies]
    operands = ",".join(["..." + letters, *("..." + letters[mode] for mode in chosen)])
    kept = "".join(letter for mode, letter in enumerate(letters) if mode not in chosen)
    return torch.einsum(f"{operands}->...{kept}", memory, *queries)


def match_unbuilt(
    objects: Tensor,
    queries: Sequence[Tensor],
    *,
    order: int,
    copies: int,
    free: int,
    modes: Sequence[int] | None = None,
) -> Tensor:
    r"""`match_general(memorise_general(objects), queries)` without the memory.

    Every copy of an object meets its own queries; what is left of the copies is multiplied and summed over objects:
    T (j d^s + d^n) numbers instead of d^(j s).

    >>> objects = torch.eye(3)[:, :, None] * torch.tensor([5.0, 7.0])
    >>> match_unbuilt(objects, [torch.tensor([0.0, 1.0, 0.0])], order=2, copies=1, free=1, modes=[0])
    tensor([5., 7.])
    """
    order, copies = _expect_counts(order, copies)
    sizes = _modes(objects, order)
    chosen = _chosen(order * copies, queries, free, modes)
    batch = tuple(objects.shape[: -order - 1])
    _expect_queries(queries, batch, [sizes[mode % order] for mode in chosen], objects=objects)
    by_mode = dict(zip(chosen, queries, strict=True))
    letters = ascii_letters[: order + 1]
    rest: Tensor | None = None
    kept: list[int] = []
    for copy in range(copies):
        own = {mode % order: by_mode[mode] for mode in sorted(by_mode) if mode // order == copy}
        operands = ",".join(["..." + letters, *("..." + letters[1 + mode] for mode in own)])
        left = [mode for mode in range(order) if mode not in own]
        answer = torch.einsum(
            f"{operands}->...{letters[0]}{''.join(letters[1 + mode] for mode in left)}", objects, *own.values()
        )
        answer = answer.reshape(*objects.shape[:-order], prod(sizes[mode] for mode in left))
        rest = answer if rest is None else (rest.unsqueeze(-1) * answer.unsqueeze(-2)).flatten(-2)
        kept += [sizes[mode] for mode in left]
    assert rest is not None
    return rest.sum(-2).reshape((*batch, *kept))


def _expect_counts(order: int, copies: int) -> tuple[int, int]:
    """Check that the memory has no more modes than einsum has letters."""
    order = expect_whole("order", order, 1, _MOST_MODES)
    return order, expect_whole("copies", copies, 1, _MOST_MODES // order)


def _modes(objects: Tensor, order: int) -> tuple[int, ...]:
    expect("objects", objects, "*batch t " + " ".join(f"d_{k + 1}" for k in range(order)), {})
    return tuple(objects.shape[-order:])


def _chosen(total: int, queries: Sequence[Tensor], free: int, modes: Sequence[int] | None) -> tuple[int, ...]:
    """Modes met by queries; refuses counts for which j s - m = n does not hold."""
    for name, given in (("queries", queries), ("modes", modes)):
        if not isinstance(given, Sequence) and not (given is None and name == "modes"):
            raise TypeError(f"{name}: expected a list, got {type(given).__name__}")
    matched = len(queries)
    if total - matched != expect_whole("free", free, 0):
        raise ValueError(
            f"free: expected copies * order - queries = {total} - {matched} = {total - matched}, got {free}"
        )
    chosen = tuple(range(total - matched, total)) if modes is None else tuple(modes)
    for k, mode in enumerate(chosen):
        expect_whole(f"modes[{k}]", mode, 0)
    if len(chosen) != matched or len(set(chosen)) != matched or not all(0 <= mode < total for mode in chosen):
        raise ValueError(f"modes: expected {matched} different numbers from 0 to {total - 1}, got {list(chosen)}")
    return chosen


def _expect_queries(queries: Sequence[Tensor], batch: tuple[int, ...], sizes: Sequence[int], **like: Tensor) -> None:
    for k, (query, size) in enumerate(zip(queries, sizes, strict=True)):
        expect(f"queries[{k}]", query, "*batch d", {"batch": batch, "d": size})
    expect_alike(like | {f"queries[{k}]": query for k, query in enumerate(queries)})
