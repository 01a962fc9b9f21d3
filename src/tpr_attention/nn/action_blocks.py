"""Blocks of action-conditioned heads with a residual copy, and stacks of them."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.signature import expect
from tpr_attention.nn.action_heads import ActionHeads

__all__ = ["ActionTPRBlock", "ActionTPRStack"]

Objects = Float[Tensor, "*batch t r f"]
Update = Float[Tensor, "*batch r f"]


class ActionTPRBlock(nn.Module):
    """Heads side by side: the first object becomes itself plus their updates, the others stay.

    Any mixture of action-conditioned heads (`ActionHeads`) for the same sizes: `ActionTPRAttention`, with or without
    normalisation, and `HigherOrderActionTPRAttention` of any order.

    >>> from tpr_attention.nn import ActionTPRAttention, HigherOrderActionTPRAttention
    >>> linear, bilinear = ActionTPRAttention(5, 6, 3, num_heads=4), HigherOrderActionTPRAttention(5, 6, 3, num_heads=2)
    >>> block = ActionTPRBlock(linear, bilinear)
    >>> objects, action = torch.randn(8, 2, 6, 3), torch.eye(5)[[0] * 8]
    >>> torch.equal(block(objects, action), objects)  # every block starts at the exact copy
    True
    """

    def __init__(self, *heads: ActionHeads) -> None:
        super().__init__()
        _expect_all("heads", heads, ActionHeads)
        _expect_one_size("heads", [_size(one) for one in heads])
        self.heads: Sequence[ActionHeads] = nn.ModuleList(heads)  # type: ignore[assignment]

    def forward(self, objects: Objects, action: Float[Tensor, "*batch a"]) -> Objects:
        """The objects, the first of them changed as the action asks."""
        return _changed(objects, self.write_found(self.read(objects, action), action))

    def read(self, objects: Objects, action: Float[Tensor, "*batch a"]) -> list[Float[Tensor, "*batch h p"]]:
        """What each kind of heads finds in the objects."""
        return [heads.read(objects, action) for heads in self.heads]

    def write(self, found: Sequence[Tensor], action: Float[Tensor, "*batch a"], *, learn_roles: bool = True) -> Update:
        """What was found, mapped and bound to the new roles; see `ActionHeads.write`."""
        if not isinstance(found, Sequence):
            raise TypeError(f"found: expected a list of what `read` found, got {type(found).__name__}")
        if len(found) != len(self.heads):
            raise ValueError(
                f"found: expected one tensor for each of {len(self.heads)} kinds of heads, got {len(found)}"
            )
        pairs = zip(self.heads, found, strict=True)
        return _total([heads.write(one, action, learn_roles=learn_roles) for heads, one in pairs])

    def write_found(self, found: Sequence[Tensor], action: Tensor, *, learn_roles: bool = True) -> Tensor:
        """`write` of what `read` has found under the same action, which needs no check."""
        pairs = zip(self.heads, found, strict=True)
        return _total([heads.write_found(one, action, learn_roles=learn_roles) for heads, one in pairs])


class ActionTPRStack(nn.Module):
    r"""Blocks one after the other: each reads the first object as the blocks before have left it.

    O^0 = O_1,    O^(k+1) = O^k + update_k(O^k, O_2, ..., a)

    What a block reads and how it maps it learns from all that follows; the role that it writes to learns from the
    answer alone. So a role whose error stays zero under an action is written by no block, not even to tell something to
    the next one: it is copied exactly, for any objects that do not overflow (decision 0021). The values are those of
    the blocks in turn.

    >>> from tpr_attention.nn import ActionTPRAttention
    >>> substitute = ActionTPRBlock(ActionTPRAttention(5, 6, 3, 4))
    >>> recompute = ActionTPRBlock(ActionTPRAttention(5, 6, 3, 4, normalise="unit"))
    >>> ActionTPRStack(substitute, recompute)(torch.randn(8, 2, 6, 3), torch.eye(5)[[0] * 8]).shape
    torch.Size([8, 2, 6, 3])
    """

    def __init__(self, *blocks: ActionTPRBlock) -> None:
        super().__init__()
        _expect_all("blocks", blocks, ActionTPRBlock)
        _expect_one_size("blocks", [_size(block.heads[0]) for block in blocks])
        self.blocks: Sequence[ActionTPRBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]

    def forward(self, objects: Objects, action: Float[Tensor, "*batch a"]) -> Objects:
        """The objects, the first of them changed as the action asks."""
        return _changed(objects, self.update(objects, action))

    def update(self, objects: Objects, action: Float[Tensor, "*batch a"]) -> Update:
        """What all blocks together add to the first object."""
        _, roles, fillers, count = _size(self.blocks[0].heads[0])
        expect("objects", objects, "*batch t r f", {"t": count, "r": roles, "f": fillers})
        update = torch.zeros_like(objects[..., 0, :, :])
        for block in self.blocks:
            found = block.read(objects, action)
            update = update + block.write_found(found, action)
            objects = _changed(objects, block.write_found(found, action, learn_roles=False))
        return update


def _total(updates: list[Tensor]) -> Tensor:
    return torch.stack(updates).sum(0)


def _changed(objects: Objects, update: Update) -> Objects:
    return torch.cat([(objects[..., 0, :, :] + update).unsqueeze(-3), objects[..., 1:, :, :]], -3)


def _size(heads: ActionHeads) -> tuple[int, ...]:
    return heads.num_actions, heads.num_roles, heads.filler_dim, heads.num_objects


def _expect_all(name: str, parts: Sequence[object], kind: type[nn.Module]) -> None:
    for part in parts:
        if not isinstance(part, kind):
            raise TypeError(f"{name}: expected {kind.__name__} modules, got {type(part).__name__}")


def _expect_one_size(name: str, sizes: Sequence[tuple[int, ...]]) -> None:
    if not sizes or len(set(sizes)) > 1:
        raise ValueError(
            f"{name}: expected one or more, all for the same numbers of actions, roles, fillers and objects, "
            f"got {[list(size) for size in sizes]}"
        )
