"""Laws of objects: what the other roles of an object say about each of its roles."""

from math import prod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.precision import autocasts
from tpr_attention.functional.signature import (
    Sizes,
    expect,
    expect_alike,
    expect_generator,
    expect_parameters,
    expect_positive,
)

__all__ = ["RoleLaws"]

READS = 3  # fillers that the feed-forward of a role is given
SHORT = 1e-3  # a filler much shorter than that has no direction worth keeping


class RoleLaws(nn.Module):
    r"""For each role of an object, the filler that the other roles suggest.

    law(O)_r = b_r + sum_{s != r} L_rs O_s + sum_h P_rh (f_1 (x) f_2) + sum_h U_rh (g / norm(g)) + V_r act(W_r e + c_r)

    f_1, f_2, g, and the three parts of e, are fillers q^T O that heads of the role extract from the object. Their role
    queries q are zero at the role r itself. Heads of four kinds so give a function of what they read: linear, of second
    order (App. C), normalised, and general (a feed-forward). What writes starts at zero, and so do all laws.

    Every object is an example of its laws: they can be learned from objects alone, without a question about them.

    Args:
        num_pairs: Heads of second order for each role.
        num_units: Normalised heads for each role.
        hidden: Units of the feed-forward of each role.

    >>> laws = RoleLaws(num_roles=6, filler_dim=3)
    >>> laws(torch.randn(8, 6, 3)).abs().max()
    tensor(0., grad_fn=<MaxBackward1>)
    """

    def __init__(
        self,
        num_roles: int,
        filler_dim: int,
        *,
        num_pairs: int = 4,
        num_units: int = 4,
        hidden: int = 32,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"num_roles": num_roles, "filler_dim": filler_dim}
        counts = {"num_pairs": num_pairs, "num_units": num_units, "hidden": hidden}
        roles, fillers, pairs, units, hidden = expect_positive(**sizes, **counts)
        self.num_roles, self.filler_dim = roles, fillers
        self.num_pairs, self.num_units, self.hidden = pairs, units, hidden
        shapes = {
            "query_map": (roles, 2 * pairs + units + READS, roles),
            "linear_map": (roles, fillers, roles, fillers),
            "pair_map": (roles, fillers, pairs, fillers, fillers),
            "unit_map": (roles, fillers, units, fillers),
            "hidden_map": (roles, hidden, READS, fillers),
            "hidden_bias": (roles, hidden),
            "output_map": (roles, fillers, hidden),
            "bias": (roles, fillers),
        }
        expect_parameters(sum(map(prod, shapes.values())), device, dtype, **sizes, **counts)
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    query_map: nn.Parameter
    linear_map: nn.Parameter
    pair_map: nn.Parameter
    unit_map: nn.Parameter
    hidden_map: nn.Parameter
    hidden_bias: nn.Parameter
    output_map: nn.Parameter
    bias: nn.Parameter

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew."""
        expect_generator(generator)
        for parameter in (*self.written_maps, self.hidden_bias):
            nn.init.zeros_(parameter)
        nn.init.normal_(self.query_map, generator=generator)
        nn.init.normal_(self.hidden_map, std=(READS * self.filler_dim) ** -0.5, generator=generator)

    def forward(self, objects: Float[Tensor, "*batch r f"]) -> Float[Tensor, "*batch r f"]:
        """What the laws say of every role."""
        sizes: Sizes = {"r": self.num_roles, "f": self.filler_dim}
        expect("objects", objects, "*batch r f", sizes)
        expect_alike({"bias": self.bias, "objects": objects}, dtypes=not autocasts(self.bias.device))
        columns = objects.reshape(-1, self.num_roles, self.filler_dim).movedim(0, -1)
        return self.of_columns(columns).movedim(-1, 0).reshape(objects.shape)

    def of_columns(self, objects: Float[Tensor, "*n r f b"]) -> Float[Tensor, "*n r f b"]:
        """The same for objects along the last axis, where all that is done is a product of few large matrices.

        Parameters may have leading axes, the same as the objects: many models at once. Nothing is checked.
        """
        *lead, roles, fillers, count = objects.shape
        parts = [self.num_pairs, self.num_pairs, self.num_units, READS]
        read = (self.queries.flatten(-3, -2) @ objects.flatten(-2)).reshape(*lead, roles, sum(parts), fillers, count)
        first, second, unit, given = torch.split(read, parts, -3)
        pairs = (first.unsqueeze(-2) * second.unsqueeze(-3)).flatten(-4, -2)
        units = (unit * (unit.square().sum(-2, keepdim=True) + SHORT**2).rsqrt()).flatten(-3, -2)
        hidden = self.hidden_map.flatten(-2) @ given.flatten(-3, -2) + self.hidden_bias.unsqueeze(-1)
        linear = (self.linear_map * self._others[:, None, :, None]).flatten(-2).flatten(-3, -2)
        law: Tensor = self.bias.unsqueeze(-1) + (linear @ objects.flatten(-3, -2)).reshape(objects.shape)
        law = law + self.pair_map.flatten(-3) @ pairs + self.unit_map.flatten(-2) @ units
        return law + self.output_map @ nn.functional.gelu(hidden)

    @property
    def written_maps(self) -> tuple[nn.Parameter, ...]:
        """The parameters that make all laws zero when they are zero."""
        return self.linear_map, self.pair_map, self.unit_map, self.output_map, self.bias

    @property
    def queries(self) -> Float[Tensor, "*n r h s"]:
        """The role queries of the heads of each role, which do not read that role."""
        return self.query_map * self._others.unsqueeze(-2)

    @property
    def _others(self) -> Float[Tensor, "r s"]:
        """One for every other role."""
        return 1 - torch.eye(self.num_roles, device=self.query_map.device, dtype=self.query_map.dtype)

    def query_size(self) -> Float[Tensor, "*n"]:
        """The sum of all absolute values of role queries: as a penalty, it makes heads read few roles."""
        return self.queries.abs().sum((-3, -2, -1))

    def extra_repr(self) -> str:
        return (
            f"num_roles={self.num_roles}, filler_dim={self.filler_dim}, num_pairs={self.num_pairs}, "
            f"num_units={self.num_units}, hidden={self.hidden}"
        )
