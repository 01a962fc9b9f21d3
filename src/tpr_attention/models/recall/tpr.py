"""TPR-Attention over pairs: an object matches by the fillers of its key, and its value is read."""

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from tpr_attention.models.recall.role_objects import RoleObjects
from tpr_attention.nn.attention import TPRAttention
from tpr_attention.nn.queries import OwnFillerQueries

__all__ = ["RecallTPR"]


class RecallTPR(nn.Module):
    """One layer of TPR-Attention that starts with the right roles: match the key's, read and write the value's.

    Args:
        filler_dim: Numbers of a filler.
        num_matches: Roles of a key, all of which have to match.
        match: "linear" or "softmax".
        write: "sum", "delta" or "replace".
        normalise: How what is read is normalised; see `TPRAttention`.
        values: "one-hot" for fixed values, "learned" for fillers.
        keys: Where the fillers of keys come from: "table", a wide normal table and a linear map, as in the published
            protocol for capacity; or "orthonormal" or "random" unit vectors.
        learn: "all"; "fillers" if the layer stays as it starts; or "nothing".

    >>> RecallTPR(key_fields=2, num_keys=8, num_values=6, filler_dim=8, values="learned").layer.num_roles
    3
    """

    def __init__(
        self,
        key_fields: int,
        num_keys: int,
        num_values: int,
        filler_dim: int = 32,
        num_matches: int = 2,
        match: Literal["linear", "softmax"] = "linear",
        write: Literal["sum", "delta", "replace"] = "sum",
        normalise: Literal["rms", "unit", "count"] | None = None,
        values: Literal["one-hot", "learned"] = "learned",
        keys: Literal["table", "orthonormal", "random"] = "orthonormal",
        learn: Literal["all", "fillers", "nothing"] = "all",
    ) -> None:
        super().__init__()
        self.objects = RoleObjects(key_fields, num_keys, num_values, filler_dim, num_matches, values, keys)
        roles, heads = self.objects.num_roles, self.objects.value_roles
        key_roles, value_roles = [*range(num_matches)], [*range(num_matches, roles)]
        self.layer = TPRAttention(
            roles,
            filler_dim,
            heads,
            num_matches=num_matches,
            queries=OwnFillerQueries(
                roles, filler_dim, heads, num_matches, match_roles=[key_roles] * heads, target_roles=value_roles
            ),
            match=match,
            write=write,
            unit_fillers=write != "replace",
            normalise=normalise,
            new_roles=value_roles,
        ).requires_grad_(learn == "all")
        self.needs_training = learn != "nothing"
        if learn == "nothing":
            self.requires_grad_(False)

    def forward(
        self, pairs: Int[Tensor, "*batch t c_and_value"], queries: Int[Tensor, "*batch q c"]
    ) -> Float[Tensor, "*batch q n"]:
        """An entry for each value, for each query. Queries only ask: they are not written."""
        read: Tensor = self.layer(self.objects.queries(queries), memory=self.objects.pairs(pairs))
        return self.objects.answer(read[..., self.objects.matches :, :])
