"""What a layer remembers between two stretches of a sequence."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tpr_attention.functional.signature import expect, value_of

__all__ = ["History", "State", "expect_state"]


class State(NamedTuple):
    """The memory of the objects seen so far, of constant size, and how many of them count in each sequence.

    A tuple of tensors: `State(**load_file(path))` reads what `save_file(state._asdict(), path)` of safetensors wrote.
    """

    memory: Float[Tensor, "*state p v"]
    length: Int[Tensor, "*batch"]

    def detach(self) -> "State":
        """The same state without its past, for truncated backpropagation through time."""
        return State(self.memory.detach(), self.length)


class History(NamedTuple):
    """The objects seen so far, with their gates: the state of a layer that matches by softmax. It grows."""

    objects: Float[Tensor, "*batch s r f"]
    gate: Float[Tensor, "*batch s g"]
    length: Int[Tensor, "*batch"]

    def detach(self) -> "History":
        """The same state without its past, for truncated backpropagation through time."""
        return History(self.objects.detach(), self.gate.detach(), self.length)


def expect_state(state: object, kind: type[State] | type[History], objects: Tensor) -> None:
    """Check a state, but for the shape of a memory, which the functions that read it know."""
    if not isinstance(state, kind):
        article = "a State" if kind is State else "a History"
        raise TypeError(f"state: expected {article} from this layer's stream or step, got {type(state).__name__}")
    batch = tuple(objects.shape[:-3])
    if isinstance(state, History):
        sizes: dict[str, int | tuple[int, ...]] = {"batch": batch, "r": objects.shape[-2], "f": objects.shape[-1]}
        expect("state.objects", state.objects, "*batch s r f", sizes)
        expect("state.gate", state.gate, "*batch s g", sizes)
    elif not isinstance(state.memory, Tensor):
        raise TypeError(f"state.memory: expected a tensor, got {type(state.memory).__name__}")
    length = state.length
    wanted = f"whole numbers as a torch.int64 tensor of shape {list(batch)} on {objects.device}"
    if not isinstance(length, Tensor):
        raise TypeError(f"state.length: expected {wanted}, got {length!r}")
    if length.dtype != torch.int64 or tuple(length.shape) != batch or length.device != objects.device:
        raise TypeError(
            f"state.length: expected {wanted}, got {length.dtype} of shape {list(length.shape)} on {length.device}"
        )
    if length.device.type == "cpu" and length.numel():  # others would have to be waited for
        for end in (length.amin(), length.amax()):
            seen = value_of(end)
            if seen is not None and not 0 <= seen <= _LONGEST - objects.shape[-3]:
                raise ValueError(f"state.length: expected 0 to {_LONGEST} objects with those to come, got {seen}")


_LONGEST = torch.iinfo(torch.int64).max
