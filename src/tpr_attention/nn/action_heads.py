"""What all heads share whose queries and new roles are read from an action: read, combine, map, bind."""

from abc import ABC, abstractmethod
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.action import read_fitting, write_fitting
from tpr_attention.functional.precision import autocasts
from tpr_attention.functional.signature import (
    Sizes,
    expect,
    expect_alike,
    expect_bool,
    expect_generator,
    expect_parameters,
    expect_positive,
)

__all__ = ["ActionHeads"]


class ActionHeads(nn.Module, ABC):
    r"""Heads that read fillers from a tagged memory, combine them, and bind what they make of it to new roles.

    M = sum_i id^i (x) O_i,    update = sum_h r_n^h(a) (x) (c_h^T H_h),    r_n^h(a) = a^T H^r_h              (App. D)

    c_h are the numbers that head h makes of the fillers it reads, M[id_h, q_h(a)] with q_h(a) = a^T H^q_h.

    The ids are one-hot tags, so the memory is the stack of the objects itself and is never copied. The layer returns
    the update to be added to a reference.

    Initialisation: role maps start at zero, so that the update is zero and a model that adds it to the reference
    starts at the exact copy; a role whose error stays zero under an action then never receives a gradient and stays
    an exact copy.

    Args:
        reads: How many fillers each head reads, as axes of its query map and its ids.
    """

    def __init__(
        self,
        sizes: tuple[int, int, int],
        num_heads: int,
        num_objects: int,
        reads: tuple[int, ...],
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        names = "num_actions", "num_roles", "filler_dim", "num_heads", "num_objects"
        counts = dict(zip(names, (*sizes, num_heads, num_objects), strict=True))
        num_actions, num_roles, filler_dim, num_heads, num_objects = expect_positive(**counts)
        self.num_actions, self.num_roles, self.filler_dim = num_actions, num_roles, filler_dim
        self.num_heads, self.num_objects, self.reads = num_heads, num_objects, reads
        shapes = {
            "query_map": (num_heads, *reads, num_actions, num_roles),
            "role_map": (num_heads, num_actions, num_roles),
            "filler_map": (num_heads, *[filler_dim] * max(1, sum(reads)), filler_dim),
            "id_query": (num_heads, *reads, num_objects),
        }
        reading = {"order": sum(reads)} if reads else {}
        expect_parameters(sum(map(prod, shapes.values())), device, dtype, **counts, **reading)
        self.query_map, self.role_map, self.filler_map, self.id_query = (
            nn.Parameter(torch.empty(shape, device=device, dtype=dtype)) for shape in shapes.values()
        )
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew."""
        expect_generator(generator)
        nn.init.normal_(self.query_map, std=self.num_roles**-0.5, generator=generator)
        nn.init.zeros_(self.role_map)
        self.reset_filler_map(generator)
        nn.init.normal_(self.id_query, std=self.num_objects**-0.5, generator=generator)

    @abstractmethod
    def reset_filler_map(self, generator: torch.Generator | None) -> None:
        """Draw the filler maps anew, so that what a head writes is about as large as what it reads."""

    @abstractmethod
    def combine(self, fillers: Float[Tensor, "*batch q f"]) -> Float[Tensor, "*batch h p"]:
        """What each head makes of the fillers it reads, those of the first head first."""

    def forward(
        self, objects: Float[Tensor, "*batch t r f"], action: Float[Tensor, "*batch a"]
    ) -> Float[Tensor, "*batch r f"]:
        """The update that the action asks for."""
        return self.write_found(self.read(objects, action), action)

    def read(
        self, objects: Float[Tensor, "*batch t r f"], action: Float[Tensor, "*batch a"]
    ) -> Float[Tensor, "*batch h p"]:
        """What each head finds in the objects under an action."""
        sizes: Sizes = {"t": self.num_objects, "r": self.num_roles, "f": self.filler_dim, "a": self.num_actions}
        expect("objects", objects, "*batch t r f", sizes)
        expect("action", action, "*batch a", sizes)
        self._expect_alike(objects=objects, action=action)
        return self.combine(read_fitting(objects, action, self.ids, self.queries))

    def write(
        self, found: Float[Tensor, "*batch h p"], action: Float[Tensor, "*batch a"], *, learn_roles: bool = True
    ) -> Float[Tensor, "*batch r f"]:
        """What was found, mapped and bound to the new roles.

        Args:
            learn_roles: Whether the new roles receive gradients from this update.
        """
        expect_bool(learn_roles=learn_roles)
        made = self.filler_dim ** max(1, sum(self.reads))
        sizes: Sizes = {"h": self.num_heads, "p": made, "a": self.num_actions}
        expect("found", found, "*batch h p", sizes)
        expect("action", action, "*batch a", sizes)
        self._expect_alike(found=found, action=action)
        return self.write_found(found, action, learn_roles=learn_roles)

    def write_found(self, found: Tensor, action: Tensor, *, learn_roles: bool = True) -> Tensor:
        """`write` of what `read` has found under the same action, which needs no check."""
        role_map = self.role_map if learn_roles else self.role_map.detach()
        update: Tensor = write_fitting(found, action, self.maps, role_map)
        return update

    def _expect_alike(self, **inputs: Tensor) -> None:
        expect_alike({"filler_map": self.filler_map, **inputs}, dtypes=not autocasts(self.filler_map.device))

    @property
    def queries(self) -> Float[Tensor, "*n q a r"]:
        """The role query of each filler that is read, those of the first head first."""
        return self.query_map.flatten(-3 - len(self.reads), -3)

    @property
    def ids(self) -> Float[Tensor, "*n q t"]:
        """The id query of each filler that is read."""
        return self.id_query.flatten(-2 - len(self.reads), -2)

    @property
    def maps(self) -> Float[Tensor, "*n h p f_out"]:
        """The filler map of each head as a matrix."""
        return self.filler_map.flatten(-1 - max(1, sum(self.reads)), -2)

    def extra_repr(self) -> str:
        return (
            f"num_actions={self.num_actions}, num_roles={self.num_roles}, filler_dim={self.filler_dim}, "
            f"num_heads={self.num_heads}, num_objects={self.num_objects}"
        )
