"""A family of laws of interaction beside the paper's two, by the contract of `laws`.

`interactions` names them with their factors, in two parts: those that a model may be developed on, and those that are
held out until its options are chosen.

A law that draws something counts as unknown wherever training shows no object with the combination of its factors; see
`laws`. That is too strict for a law of smooth fillers: enough other combinations determine what was drawn, and so the
fillers of all others. It makes no difference with a split that holds out no combination of the law's own factors, since
training then shows all of them.
"""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor

from tpr_attention.tasks.composition.laws import Fillers, random_bilinear

__all__ = [
    "conditional",
    "largest",
    "mixture",
    "product",
    "saturating",
    "scaled_bilinear",
    "sine",
    "smallest",
    "soft_difference",
    "softsign",
    "squared_sum",
    "switch",
    "threshold",
    "trilinear",
]


def saturating(first: Fillers, second: Fillers, *, generator: torch.Generator) -> Fillers:
    """A squashed bilinear form.

    tanh(2 b),    b[k] = sum_ij f_1[i] M[k, i, j] f_2[j]
    """
    return torch.tanh(2 * random_bilinear(first, second, generator=generator))


def softsign(first: Fillers, second: Fillers, *, generator: torch.Generator) -> Fillers:
    """A bilinear form, squashed more slowly.

    2 b / (1 + 2 |b|),    b[k] = sum_ij f_1[i] M[k, i, j] f_2[j]
    """
    return torch.nn.functional.softsign(2 * random_bilinear(first, second, generator=generator))


def conditional(first: Fillers, second: Fillers, third: Fillers) -> Fillers:
    """The first filler decides which of the others is shown.

    f_1[1] f_2 + (1 - f_1[1]) f_3

    >>> ones, twos = torch.ones(2, 3), torch.full((2, 3), 2.0)
    >>> conditional(torch.eye(3)[:2], ones, twos).tolist()
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """
    return torch.lerp(third, second, first[:, :1].expand_as(second))


def switch(first: Fillers, second: Fillers, third: Fillers) -> Fillers:
    """The first filler chooses one of the others, or their difference.

    f_1[1] f_2 + f_1[2] f_3 + f_1[3] (f_2 - f_3)

    >>> ones, twos = torch.ones(3, 3), torch.full((3, 3), 2.0)
    >>> switch(torch.eye(3), ones, twos)[:, 0].tolist()
    [1.0, 2.0, -1.0]
    """
    shown = torch.stack([second, third, second - third], 1)
    chosen: Tensor = einsum(first[:, :3], shown, "n c, n c f -> n f")
    return chosen


def scaled_bilinear(first: Fillers, second: Fillers, third: Fillers, *, generator: torch.Generator) -> Fillers:
    """A bilinear form of two fillers, times a third entry by entry.

    f[k] = f_3[k] sum_ij f_1[i] M[k, i, j] f_2[j]
    """
    return random_bilinear(first, second, generator=generator) * third


def trilinear(first: Fillers, second: Fillers, third: Fillers, *, generator: torch.Generator) -> Fillers:
    """A form that is linear in each of three fillers.

    f[k] = sum_ijl M[k, i, j, l] f_1[i] f_2[j] f_3[l],    M normal
    """
    tensor = _normal((first.shape[-1],) * 4, generator)
    shared: Tensor = einsum(tensor, first, second, third, "k i j l, n i, n j, n l -> n k")
    return shared


def largest(first: Fillers, second: Fillers) -> Fillers:
    """The larger of two entries.

    f[k] = max(f_1[k], f_2[k])

    >>> largest(torch.tensor([[1.0, 0.0, 2.0]]), torch.tensor([[0.0, 3.0, 1.0]])).tolist()
    [[1.0, 3.0, 2.0]]
    """
    return torch.maximum(first, second)


def smallest(first: Fillers, second: Fillers) -> Fillers:
    """The smaller of two entries.

    f[k] = min(f_1[k], f_2[k])

    >>> smallest(torch.tensor([[1.0, 0.0, 2.0]]), torch.tensor([[0.0, 3.0, 1.0]])).tolist()
    [[0.0, 0.0, 1.0]]
    """
    return torch.minimum(first, second)


def sine(first: Fillers, second: Fillers, *, generator: torch.Generator) -> Fillers:
    """The sine of a linear form.

    sin(f_1 W + f_2 V),    W and V normal
    """
    return torch.sin(_linear_form(first, second, generator))


def squared_sum(first: Fillers, second: Fillers, *, generator: torch.Generator) -> Fillers:
    """The squares of a linear form, halved.

    (f_1 W + f_2 V)^2 / 2,    W and V normal
    """
    return _linear_form(first, second, generator).square() / 2


def product(first: Fillers, second: Fillers) -> Fillers:
    """The product of two fillers, entry by entry.

    f[k] = f_1[k] f_2[k]

    >>> product(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[0.0, 0.5, 2.0]])).tolist()
    [[0.0, 1.0, 6.0]]
    """
    return first * second


def soft_difference(first: Fillers, second: Fillers) -> Fillers:
    """The direction of a difference, shorter where fillers are close: their distance decides the length.

    (f_1 - f_2) / sqrt(|f_1 - f_2|^2 + 1/4)

    >>> soft_difference(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])).tolist()
    [[0.0, 0.0]]
    """
    difference = first - second
    return difference / (difference.square().sum(-1, keepdim=True) + 0.25).sqrt()


def threshold(first: Fillers, second: Fillers) -> Fillers:
    """Which of two entries is larger, as a sign with a smooth step.

    f[k] = tanh(4 (f_1[k] - f_2[k]))

    >>> threshold(torch.tensor([[9.0, 0.0, 1.0]]), torch.tensor([[0.0, 9.0, 1.0]])).tolist()
    [[1.0, -1.0, 0.0]]
    """
    return torch.tanh(4 * (first - second))


def mixture(first: Fillers, second: Fillers, *, generator: torch.Generator) -> Fillers:
    """A weighted mean of two fillers, whose weights are a softmax of scores.

    (e^a f_1 + e^b f_2) / (e^a + e^b),    a = 2 f_1 . u,    b = 2 f_2 . v,    u and v normal
    """
    queries = _normal((2, first.shape[-1]), generator)
    fillers = torch.stack([first, second], 1)
    weights = torch.softmax(2 * einsum(fillers, queries, "n c f, c f -> n c"), -1)
    mixed: Tensor = einsum(weights, fillers, "n c, n c f -> n f")
    return mixed


def _linear_form(first: Fillers, second: Fillers, generator: torch.Generator) -> Fillers:
    """f_1 W + f_2 V, with W and V drawn in this order."""
    one, other = (_normal((first.shape[-1],) * 2, generator) for _ in range(2))
    return first @ one + second @ other


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Float[Tensor, "..."]:
    return torch.randn(shape, generator=generator, dtype=torch.float64)
