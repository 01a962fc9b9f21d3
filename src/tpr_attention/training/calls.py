"""How the models of many runs are called together: stacked, one by one, or folded over groups of examples."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor, nn
from torch.func import functional_call, vmap

from tpr_attention.tasks.task import Batch

__all__ = ["Call", "Weights", "folded", "one_by_one", "sorted_by_group", "stacked"]

Weights = dict[str, Tensor]
Call = Callable[[Weights, tuple[Tensor, ...]], Any]
"""Weights and inputs with a leading axis for the runs, to outputs with the same; with penalties if asked for."""


class _Method(nn.Module):
    """A method of a model as a module, which can be called with other weights."""

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, *inputs: Tensor) -> Any:
        return getattr(self.model, self.name)(*inputs)


def _caller(model: nn.Module, name: str) -> Call:
    method = _Method(model, name)

    def call(weights: Weights, inputs: tuple[Tensor, ...]) -> Any:
        return functional_call(method, {f"model.{name}": tensor for name, tensor in weights.items()}, inputs)

    return call


def stacked(model: nn.Module, method: str = "forward") -> Call:
    """Call all runs at once. What draws at random is refused: its draws would depend on the other runs."""
    call = _caller(model, method)
    together = vmap(lambda weights, *inputs: call(weights, inputs))
    return lambda weights, inputs: together(weights, *inputs)


def one_by_one(
    model: nn.Module, random_states: UInt8[Tensor, "n state"], device: torch.device, method: str = "forward"
) -> Call:
    """Call one run after the other. In training each draws from a seed of its own generator, on whatever device."""
    one = _caller(model, method)
    generator = torch.Generator()
    others = [] if device.type == "cpu" else [device]  # whose global states must be kept as well

    def call(weights: Weights, inputs: tuple[Tensor, ...]) -> Any:
        outputs = []
        with torch.random.fork_rng(others, enabled=model.training, device_type=device.type):
            for run, own in enumerate(zip(*inputs, strict=True)):
                if model.training:
                    generator.set_state(random_states[run].clone())  # a view is misread
                    seed = torch.randint(2**62, (), generator=generator, device="cpu")
                    random_states[run] = generator.get_state()
                    torch.manual_seed(int(seed))
                outputs.append(one({name: tensor[run] for name, tensor in weights.items()}, own))
        if isinstance(outputs[0], tuple):
            return tuple(map(torch.stack, zip(*outputs, strict=True)))
        return torch.stack(outputs)

    return call


def folded(model: nn.Module, groups: int, method: str = "by_group") -> Call:
    """Call a model that is cheaper for examples sorted by group, and takes stacked parameters itself."""
    by_group = _caller(model, method)

    def call(weights: Weights, inputs: tuple[Tensor, ...]) -> Any:
        runs, examples = inputs[0].shape[:2]
        shape = runs, groups, examples // groups
        found = by_group(weights, tuple(tensor.reshape(*shape, *tensor.shape[2:]) for tensor in inputs))
        if isinstance(found, tuple):
            output, penalty = found
            return output.flatten(1, 2), penalty
        return found.flatten(1, 2)

    return call


def sorted_by_group(batch: Batch, numbers: Int[Tensor, "n b"], groups: int) -> tuple[Batch, Bool[Tensor, "n b_sorted"]]:
    """The examples of each run sorted by group, as many of each, and which of them are not filled in."""
    order = numbers.argsort(dim=1, stable=True)
    count = nn.functional.one_hot(numbers.long(), groups).sum(1)
    place = torch.arange(int(count.max()), device=order.device)
    rows = (count.cumsum(1) - count).unsqueeze(-1) + place.minimum((count.unsqueeze(-1) - 1).clamp(min=0))
    rows = order.gather(1, rows.clamp(max=order.shape[1] - 1).flatten(1))
    run = torch.arange(len(rows), device=rows.device).unsqueeze(-1)
    return batch.map(lambda tensor: tensor[run, rows]), (place < count.unsqueeze(-1)).flatten(1)
