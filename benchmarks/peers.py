"""Layers of other kinds with the width and the heads of a TPR layer: what it is compared with."""

import torch
from torch import Tensor, nn


class SoftmaxLayer(nn.Module):
    """Causal softmax attention by the fused kernel, between one projection to queries, keys and values and one back."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        query, key, value = self.project(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        read = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.back(read.transpose(1, 2).reshape(b, t, d))


class LinearLayer(nn.Module):
    """Causal linear attention (Katharopoulos et al., 2020: features ELU + 1, normalised) in chunks, in plain torch.

    Scores inside chunks, the sum of key (x) value before them, all chunks at once. The normaliser is one more column of
    the values.
    """

    def __init__(self, width: int, heads: int, chunk: int) -> None:
        super().__init__()
        self.heads, self.chunk = heads, chunk
        self.project, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        chunk = min(self.chunk, t)
        projected = self.project(x).view(b, t // chunk, chunk, 3, self.heads, d // self.heads)
        query, key, value = projected.permute(3, 0, 4, 1, 2, 5)
        query, key = nn.functional.elu(query) + 1, nn.functional.elu(key) + 1
        value = torch.cat([value, torch.ones_like(value[..., :1])], -1)
        read = (query @ key.mT).tril() @ value
        if t > chunk:
            memory = (key.mT @ value)[:, :, :-1].cumsum(2)
            read = torch.cat([read[:, :, :1], read[:, :, 1:] + query[:, :, 1:] @ memory], 2)
        read = read[..., :-1] / (read[..., -1:] + 1e-6)
        return self.back(read.permute(0, 2, 3, 1, 4).reshape(b, t, d))
