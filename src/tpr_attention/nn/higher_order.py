"""Action-conditioned heads on a memory of higher order (App. C and D)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.signature import expect_whole
from tpr_attention.nn.action_heads import ActionHeads

__all__ = ["HigherOrderActionTPRAttention"]


class HigherOrderActionTPRAttention(ActionHeads):
    r"""Each head reads several fillers and maps their tensor product: for order two it is bilinear in the objects.

    M = (sum_i id^i (x) O_i)^{(x) j},    update = sum_h r_n^h(a) (x) H_h[f_1^h(a), ..., f_j^h(a)],
    f_k^h(a) = q_k^h(a)^T sum_i id_k^h[i] O_i                                                    (App. C, D)

    The memory of order j is the j-fold tensor power of the tagged memory. It is never built: every copy of it meets its
    own role query and its own id, which leaves j fillers. H_h has j + 1 axes of fillers, one of them for the result.

    Role maps start at zero, as those of `ActionTPRAttention` do.

    Args:
        order: j, how many fillers each head reads.

    >>> layer = HigherOrderActionTPRAttention(num_actions=5, num_roles=6, filler_dim=3, num_heads=4, order=2)
    >>> layer.filler_map.shape, layer(torch.randn(8, 2, 6, 3), torch.eye(5)[[0] * 8]).abs().max()
    (torch.Size([4, 3, 3, 3]), tensor(0., grad_fn=<MaxBackward1>))
    """

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        filler_dim: int,
        num_heads: int,
        *,
        order: int = 2,
        num_objects: int = 2,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.order = expect_whole("order", order, 1, 62)  # torch has no tensors of more than 64 axes
        super().__init__((num_actions, num_roles, filler_dim), num_heads, num_objects, (self.order,), device, dtype)

    def reset_filler_map(self, generator: torch.Generator | None) -> None:
        nn.init.normal_(self.filler_map, std=self.filler_dim ** (-self.order / 2), generator=generator)

    def combine(self, fillers: Float[Tensor, "*batch q f"]) -> Float[Tensor, "*batch h p"]:
        """The tensor product of the fillers of each head, flattened."""
        product, *others = (fillers[..., k :: self.order, :] for k in range(self.order))
        for other in others:
            product = (product.unsqueeze(-1) * other.unsqueeze(-2)).flatten(-2)
        return product

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, order={self.order}"
