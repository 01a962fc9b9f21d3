"""TPR-Attention whose queries are read from an action (App. D)."""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.precision import autocasts
from tpr_attention.functional.signature import Sizes, expect, expect_alike, expect_floating, expect_positive
from tpr_attention.nn.initialisation import orthonormal_

__all__ = ["ActionTPRAttention"]


class ActionTPRAttention(nn.Module):
    r"""An action decides which role each head reads, from which object, and to which role it writes.

    M = sum_i id^i (x) O_i,    update = sum_h r_n^h(a) (x) (M[id_h, q_h(a)]^T H_h),
    q_h(a) = a^T H^q_h,    r_n^h(a) = a^T H^r_h                                                           (App. D)

    The ids are one-hot tags, so the memory is the stack of the objects itself and is never copied. The layer returns
    the update to be added to a reference; it is linear in the objects.

    Initialisation: role maps start at zero, so that the update is zero and a model that adds it to the reference
    starts at the exact copy; a role whose error stays zero under an action then never receives a gradient and stays
    an exact copy. The rest is orthonormal or of unit length, so that what a head reads is as large as what is there.

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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        expect_positive(
            num_actions=num_actions,
            num_roles=num_roles,
            filler_dim=filler_dim,
            num_heads=num_heads,
            num_objects=num_objects,
        )
        expect_floating(dtype)
        self.num_actions, self.num_roles, self.filler_dim = num_actions, num_roles, filler_dim
        self.num_heads, self.num_objects = num_heads, num_objects
        self.query_map = nn.Parameter(torch.empty(num_heads, num_actions, num_roles, device=device, dtype=dtype))
        self.role_map = nn.Parameter(torch.empty(num_heads, num_actions, num_roles, device=device, dtype=dtype))
        self.filler_map = nn.Parameter(torch.empty(num_heads, filler_dim, filler_dim, device=device, dtype=dtype))
        self.id_query = nn.Parameter(torch.empty(num_heads, num_objects, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew."""
        nn.init.normal_(self.query_map, std=self.num_roles**-0.5, generator=generator)
        nn.init.zeros_(self.role_map)
        orthonormal_(self.filler_map, generator)
        nn.init.normal_(self.id_query, std=self.num_objects**-0.5, generator=generator)

    def forward(
        self, objects: Float[Tensor, "*batch t r f"], action: Float[Tensor, "*batch a"]
    ) -> Float[Tensor, "*batch r f"]:
        """The update that the action asks for."""
        sizes: Sizes = {"t": self.num_objects, "r": self.num_roles, "f": self.filler_dim, "a": self.num_actions}
        expect("objects", objects, "*batch t r f", sizes)
        expect("action", action, "*batch a", sizes)
        alike = {"filler_map": self.filler_map, "objects": objects, "action": action}
        expect_alike(alike, dtypes=not autocasts(objects.device))
        query = einsum(action, self.query_map, "... a, h a r -> ... h r")
        new_role = einsum(action, self.role_map, "... a, h a r -> ... r h")
        tagged_query = einsum(self.id_query, query, "h t, ... h r -> ... h t r")
        fillers = tagged_query.flatten(-2) @ objects.flatten(-3, -2)
        return new_role @ einsum(fillers, self.filler_map, "... h f, h f f_out -> ... h f_out")

    def extra_repr(self) -> str:
        return (
            f"num_actions={self.num_actions}, num_roles={self.num_roles}, filler_dim={self.filler_dim}, "
            f"num_heads={self.num_heads}, num_objects={self.num_objects}"
        )
