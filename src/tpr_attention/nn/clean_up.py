"""Clean-up of fillers, by a code book or by what is stored: a memory that is asked with a sharpened match."""

from math import prod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tpr_attention.functional.precision import autocasts
from tpr_attention.functional.signature import (
    Sizes,
    expect,
    expect_alike,
    expect_generator,
    expect_number,
    expect_parameters,
    expect_positive,
)
from tpr_attention.functional.softmax_match import clean_by_stored

__all__ = ["CleanUp", "StoredCleanUp"]

SHARPNESS = 2.0  # at the start, as a logarithm


class CleanUp(nn.Module):
    r"""The mean of the codes of a role, weighted by how near they are to the filler that it has.

    clean(O)_r = sum_c p_c k_rc,    p = softmax_c(-e^{s_r} |O_r - k_rc|^2)

    For fillers that are codes with normal noise of variance v, all equally likely, this is the best guess if
    e^{s_r} = 1 / (2 v). The codes k and the sharpness s are learned.

    Args:
        num_codes: Codes of each role.

    >>> clean_up = CleanUp(num_roles=6, filler_dim=3, num_codes=16)
    >>> clean_up(torch.randn(8, 6, 3)).shape
    torch.Size([8, 6, 3])
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        num_codes: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        counts = {"num_roles": num_roles, "filler_dim": filler_dim, "num_codes": num_codes}
        self.num_roles, self.filler_dim, self.num_codes = expect_positive(**counts)
        shape = self.num_roles, self.num_codes, self.filler_dim
        expect_parameters(prod(shape), device, dtype, **counts)
        self.codes = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.sharpness = nn.Parameter(torch.empty(self.num_roles, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew: codes of about unit length."""
        expect_generator(generator)
        nn.init.normal_(self.codes, std=self.filler_dim**-0.5, generator=generator)
        nn.init.constant_(self.sharpness, SHARPNESS)

    def forward(self, objects: Float[Tensor, "*batch r f"]) -> Float[Tensor, "*batch r f"]:
        """The objects with cleaned fillers."""
        sizes: Sizes = {"r": self.num_roles, "f": self.filler_dim}
        expect("objects", objects, "*batch r f", sizes)
        expect_alike({"codes": self.codes, "objects": objects}, dtypes=not autocasts(self.codes.device))
        columns = objects.reshape(-1, self.num_roles, self.filler_dim).movedim(0, -1)
        return self.of_columns(columns).movedim(-1, 0).reshape(objects.shape)

    def of_columns(self, objects: Float[Tensor, "*n r f b"]) -> Float[Tensor, "*n r f b"]:
        """The same for objects along the last axis; parameters may have leading axes. Nothing is checked."""
        nearness = 2 * self.codes @ objects - self.codes.square().sum(-1, keepdim=True)  # |O_r|^2 changes nothing
        return self.codes.mT @ torch.softmax(self.sharpness.exp()[..., None, None] * nearness, dim=-2)

    def extra_repr(self) -> str:
        return f"num_roles={self.num_roles}, filler_dim={self.filler_dim}, num_codes={self.num_codes}"


class StoredCleanUp(nn.Module):
    r"""Clean-up by what is stored: the mean of the fillers in memory, weighted by how near they are.

    clean(f) = sum_s p_s v_s,    p = softmax_s(-sharpness |f - v_s|^2),    v_s = r_t^T O_s

    An option of `TPRAttention` with fixed roles. It needs the objects themselves, so its state grows.

    >>> StoredCleanUp(40.0)
    StoredCleanUp(sharpness=40.0)
    """

    def __init__(self, sharpness: float = 40.0) -> None:
        super().__init__()
        self.sharpness = expect_number("sharpness", sharpness)

    def forward(
        self,
        fillers: Float[Tensor, "*batch q h f"],
        stored: Float[Tensor, "*batch s h f"],
        *,
        gate: Float[Tensor, "*batch s g"] | None = None,
        visible: Bool[Tensor, "q s"] | Bool[Tensor, "*batch q s"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "*batch q h f"]:
        """The fillers, cleaned by those of the objects that each position sees."""
        return clean_by_stored(fillers, stored, sharpness=self.sharpness, gate=gate, visible=visible, causal=causal)

    def extra_repr(self) -> str:
        return f"sharpness={self.sharpness}"
