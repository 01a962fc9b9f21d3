"""A task of a user's own: the parity of a sequence of bits, tested on longer ones. No file of the package knows it.

It differs from the composition task in all that the contract leaves free: inputs of whole numbers with padding, classes
as targets, other metrics, conditions and groups. It has no protocol besides `Task`.
"""

import torch
from torch import Tensor, nn

from tpr_attention.tasks.task import Batch


class Parity:
    """Draw sequences of bits, and ask whether the number of ones is odd.

    Args:
        length: The most bits in training.
        longer: The most bits in the test on longer sequences.
    """

    conditions = ("same_length", "longer")

    def __init__(self, length: int = 3, longer: int = 5) -> None:
        if not 0 < length < longer:
            raise ValueError(f"longer: expected more than {length}, got {longer}")
        self.length, self.longer = length, longer
        self.sizes = {"num_symbols": 2, "num_classes": 2}
        self.group_names = {"ones": tuple(f"{count} ones" for count in range(longer + 1))}

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype) -> Batch:
        if condition not in ("train", *self.conditions):
            raise ValueError(f"condition: expected one of {self.conditions}, got {condition!r}")
        low, high = (self.length + 1, self.longer) if condition == "longer" else (1, self.length)
        lengths = torch.randint(low, high + 1, (count,), generator=generator)
        present = torch.arange(self.longer) < lengths[:, None]
        bits = torch.randint(2, (count, self.longer), generator=generator) * present
        ones = bits.sum(1)
        return Batch((bits, present.to(dtype)), ones % 2, {"ones": ones}, present)

    def measure(self, output: Tensor, batch: Batch) -> dict[str, Tensor]:
        if output.shape != (len(batch.target), 2):
            raise ValueError(f"output: expected [{len(batch.target)}, 2], got {list(output.shape)}")
        cross_entropy = nn.functional.cross_entropy(output, batch.target, reduction="none")
        return {"cross_entropy": cross_entropy, "accuracy": (output.argmax(-1) == batch.target).to(output.dtype)}


class Recurrent(nn.Module):
    """A small recurrent network, written out so that many can be called at once."""

    def __init__(self, num_symbols: int, num_classes: int, hidden: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(num_symbols, hidden))
        self.hidden, self.output = nn.Linear(hidden, hidden), nn.Linear(hidden, num_classes)

    def forward(self, bits: Tensor, present: Tensor) -> Tensor:
        state = torch.zeros_like(self.embedding[0]).expand(*bits.shape[:-1], -1)
        for place in range(bits.shape[-1]):
            symbol = nn.functional.one_hot(bits[..., place], len(self.embedding)).to(present.dtype) @ self.embedding
            is_present = present[..., place, None]
            state = is_present * (self.hidden(state) + symbol).tanh() + (1 - is_present) * state
        answer: Tensor = self.output(state)
        return answer
