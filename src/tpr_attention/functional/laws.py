"""Fillers that other roles decide: what an input carries is preferred to what its law says."""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["carried"]


def carried(
    law: Float[Tensor, "*batch f b"],
    inputs: Float[Tensor, "t *batch f b"],
    laws: Float[Tensor, "t *batch f b"],
    sharpness: float,
) -> Float[Tensor, "*batch f b"]:
    r"""What inputs have beyond their own laws, as far as the law says the same of the answer as of them.

    sum_t m_t prod_{u < t} (1 - m_u) (O_t - law(O_t)),    m_t = exp(-sharpness |law(answer) - law(O_t)|^2)

    Added to the law of the answer, it makes a filler that an input carries the answer's own, exactly, whether its law
    is known or not. It is a sharpened match by role and filler: the filler that the law expects is matched with those
    that it expects of the inputs. Earlier inputs come first.

    Args:
        law: What the law says of the answer. Examples are along the last axis.
        inputs, laws: The same fillers of each input, and what the law says of them.

    >>> law, same, other = torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1)
    >>> inputs, laws = torch.tensor([[[0.3]], [[5.0]]]), torch.stack([same, other])
    >>> carried(law, inputs, laws, 100.0)  # the first input has the filler that is asked for: 0.3, where the law says 0
    tensor([[0.3000]])
    """
    left, total = torch.ones_like(law[..., :1, :]), torch.zeros_like(law)
    for obj, expected in zip(inputs, laws, strict=True):
        match = torch.exp(-sharpness * (law - expected).square().sum(-2, keepdim=True))
        total = total + left * match * (obj - expected)
        left = left * (1 - match)
    return total
