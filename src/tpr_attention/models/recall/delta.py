"""The delta rule."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.models.recall.encoders import Encoded
from tpr_attention.models.recall.feature_maps import deterministic_features
from tpr_attention.models.recall.pair_memory import PairMemory

__all__ = ["RecallDelta"]


class RecallDelta(PairMemory):
    """A fast-weight memory: each pair corrects what the memory answers for its key (Schlag et al. 2021, sec. 4.2).

    M_t = M_{t-1} + g_t k_t (v_t - k_t^T M_{t-1}),    keys of unit length, a learned gate g_t

    Args:
        encoder: How pairs become keys and values.
        width: Numbers of all heads together.
        num_heads: How many heads there are.
        features: What keys and queries are mapped with: "silu", or "dpfp" with nu = 1.
    """

    def __init__(
        self,
        key_fields: int,
        num_keys: int,
        num_values: int,
        encoder: Literal["published", "block", "roles", "fixed-roles"] = "block",
        width: int = 128,
        num_heads: int = 1,
        features: Literal["silu", "dpfp"] = "silu",
    ) -> None:
        super().__init__(key_fields, num_keys, num_values, encoder, width, num_heads)
        if features not in ("silu", "dpfp"):
            raise ValueError(f"features: expected 'silu' or 'dpfp', got {features!r}")
        self.features = features
        self.gate = nn.Linear(self.encoder.written_dim, num_heads)
        nn.init.zeros_(self.gate.weight)
        nn.init.constant_(self.gate.bias, 4.0)

    def read(self, encoded: Encoded) -> Float[Tensor, "*batch h q v"]:
        """What the memory after the last pair answers; all corrections come from one triangular system."""
        keys, queries = self._mapped(encoded.keys), self._mapped(encoded.queries)
        gate = self.gate(encoded.written).sigmoid().mT.unsqueeze(-1)
        seen_before = (gate * (keys @ keys.mT)).tril(-1)
        same = torch.eye(keys.shape[-2], dtype=keys.dtype, device=keys.device)
        corrections: Tensor = torch.linalg.solve_triangular(
            same + seen_before, gate * encoded.values, upper=False, unitriangular=True
        )
        read: Tensor = queries @ keys.mT @ corrections
        return read

    def _mapped(self, x: Tensor) -> Tensor:
        features = deterministic_features(x, 1) if self.features == "dpfp" else nn.functional.silu(x)
        return nn.functional.normalize(features, dim=-1)
