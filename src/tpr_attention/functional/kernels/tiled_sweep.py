"""Where attention may be computed in tiles, and its gradients with it."""

from typing import Any

import torch
from torch import Tensor

from tpr_attention.functional.kernels.sweep import sweep
from tpr_attention.functional.kernels.tiles import Asked, Kept, read_tiles, tile_gradients
from tpr_attention.functional.precision import is_batched, is_transformed

__all__ = ["can_tile", "tiled_sweep"]

_KEEP_READOUT = 16  # for sequences up to this many times the width: a fifth of the work, for the memory it takes
_NARROW = 32  # up to this width there is little to keep in a cache


def can_tile(key: Tensor) -> bool:
    """Whether numbers are computed here and now, on a processor with caches: not traced, nor under a transform."""
    return (
        key.shape[-1] > _NARROW
        and not torch.compiler.is_compiling()
        and type(key) is Tensor
        and key.device.type == "cpu"
        and not is_transformed()
    )


def tiled_sweep(asked: Asked, *, by_scores: bool, exclude_self: bool) -> tuple[Tensor, Tensor | None]:
    """Read every position's memory; also return the memory after the last, unless by scores, which need none."""
    length, width = asked.key.shape[1:]
    needed = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in asked)
    if not needed:
        return read_tiles(asked, by_scores=by_scores, exclude_self=exclude_self, keep=False)[:2]
    keep = length <= _KEEP_READOUT * width
    fillers, after = _TiledSweep.apply(*asked, by_scores, exclude_self, keep)  # type: ignore[no-untyped-call]
    return fillers, after


class _TiledSweep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor | None]:
        *tensors, by_scores, exclude_self, keep = inputs
        asked = Asked(*tensors)
        fillers, after, kept = read_tiles(asked, by_scores=by_scores, exclude_self=exclude_self, keep=keep)
        ctx.save_for_backward(*asked, kept.readouts, *kept.scores, *kept.memories)
        ctx.scores, ctx.exclude_self = len(kept.scores), exclude_self
        past = any(ctx.needs_input_grad[i] for i in (2, 3, 5))
        if after is not None and not past:
            ctx.mark_non_differentiable(after)
        ctx.set_materialize_grads(False)
        return fillers, after

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        saved, flags = ctx.saved_tensors, (None, None, None)
        asked = Asked(*saved[:6])
        d_fillers, d_after = gradients
        if d_fillers is None:
            d_fillers = torch.zeros_like(asked.match_filler)
        if torch.is_grad_enabled() or is_transformed() or any(map(is_batched, gradients)):
            return (*_differentiably(asked, d_fillers, d_after, ctx.exclude_self), *flags)
        kept = Kept(saved[6], list(saved[7 : 7 + ctx.scores]), list(saved[7 + ctx.scores :]))
        past = any(ctx.needs_input_grad[i] for i in (2, 3, 5))
        found = tile_gradients(asked, d_fillers, d_after, kept, exclude_self=ctx.exclude_self, past=past)
        wanted = zip(found, ctx.needs_input_grad, strict=False)
        return (*(gradient if needed else None for gradient, needed in wanted), *flags)


def _differentiably(
    asked: Asked, d_fillers: Tensor, d_after: Tensor | None, exclude_self: bool
) -> tuple[Tensor | None, ...]:
    """The same gradients by operations that have gradients themselves, and that can be batched."""
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        # views: an input that depends on another is an input of its own
        own = Asked(*(x if x is None or not x.requires_grad else x.view_as(x) for x in asked))  # type: ignore[arg-type]
        role, filler, key, value, target_role, state = own
        start = key.new_zeros(len(key), key.shape[2], own.values().shape[2]) if state is None else state
        outputs = sweep(role, filler, key, value, target_role, start, exclude_self=exclude_self)
    inputs = [x for x in own if x is not None and x.requires_grad]
    pairs = [(y, d) for y, d in zip(outputs, (d_fillers, d_after), strict=True) if d is not None and y.requires_grad]
    found = iter(
        torch.autograd.grad(
            [y for y, _ in pairs], inputs, [d for _, d in pairs], create_graph=create_graph, allow_unused=True
        )
    )
    return tuple(None if x is None or not x.requires_grad else next(found) for x in asked)
