"""TPR-Attention whose queries are read from an action (App. D)."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.readout import READOUTS, WITHOUT_COUNT, expect_readout
from tpr_attention.functional.signature import choose
from tpr_attention.nn.action_heads import ActionHeads
from tpr_attention.nn.initialisation import fill_, orthonormal_

__all__ = ["ActionTPRAttention"]


class ActionTPRAttention(ActionHeads):
    r"""An action decides which role each head reads, from which object, and to which role it writes.

    M = sum_i id^i (x) O_i,    update = sum_h r_n^h(a) (x) (M[id_h, q_h(a)]^T H_h),
    q_h(a) = a^T H^q_h,    r_n^h(a) = a^T H^r_h                                                           (App. D)

    The ids are one-hot tags, so the memory is the stack of the objects itself and is never copied. The layer returns
    the update to be added to a reference; it is linear in the objects.

    Initialisation: role maps start at zero, so that the update is zero and a model that adds it to the reference
    starts at the exact copy; a role whose error stays zero under an action then never receives a gradient and stays
    an exact copy. Filler maps start at the identity. The rest is orthonormal or of unit length, so that what a head
    reads is as large as what is there.

    Args:
        normalise: What is done to the filler that a head reads. "unit" scales it to length one, for fillers that live
            on a sphere: a query that is the sum of two roles then reads the direction between their fillers. "rms"
            scales its entries to mean square one. A layer with either is not linear. None, the default, is the paper's.
        filler_start: How filler maps start: "identity", with which a head passes on what it reads until it learns
            otherwise, or "orthonormal", random ones (decision 0038).

    >>> layer = ActionTPRAttention(num_actions=5, num_roles=6, filler_dim=3, num_heads=4)
    >>> layer(torch.randn(8, 2, 6, 3), torch.eye(5)[torch.zeros(8, dtype=torch.long)]).abs().max()
    tensor(0., grad_fn=<MaxBackward1>)
    """

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        *,
        num_objects: int = 2,
        normalise: str | None = None,
        filler_start: Literal["identity", "orthonormal"] = "identity",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        expect_readout(normalise, WITHOUT_COUNT)
        choose("filler_start", filler_start, FILLER_STARTS)
        self.normalise, self.filler_start = normalise, filler_start
        super().__init__((num_actions, num_roles, filler_dim), num_heads, num_objects, (), device, dtype)

    def reset_filler_map(self, generator: torch.Generator | None) -> None:
        FILLER_STARTS[self.filler_start](self.filler_map, generator)

    def combine(self, fillers: Float[Tensor, "*batch h f"]) -> Float[Tensor, "*batch h f"]:
        return fillers if self.normalise is None else READOUTS[self.normalise](fillers)

    def extra_repr(self) -> str:
        told = {"normalise": self.normalise, "filler_start": self.filler_start}
        changed = {name: value for name, value in told.items() if value not in (None, "identity")}
        return super().extra_repr() + "".join(f", {name}={value!r}" for name, value in changed.items())


def _identity_(filler_map: Tensor, generator: torch.Generator | None) -> Tensor:
    return fill_(filler_map, torch.eye(filler_map.shape[-1], device=filler_map.device).repeat(len(filler_map), 1, 1))


FILLER_STARTS: dict[str, Callable[[Tensor, torch.Generator | None], Tensor]] = {
    "orthonormal": orthonormal_,
    "identity": _identity_,
}
