"""How the models of many runs are called together: stacked, one by one, or folded over groups of examples."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor, nn
from torch.func import functional_call, vmap

from tpr_attention.models.contract import Folds
from tpr_attention.tasks.task import Batch

__all__ = ["Call", "Weights", "folded", "one_by_one", "sorted_by_group", "stacked"]

Weights = dict[str, Tensor]
Call = Callable[[Weights, tuple[Tensor, ...]], Tensor]
"""Weights and inputs with a leading axis for the runs, to outputs with the same."""


def stacked(model: nn.Module) -> Call:
    """Call all runs at once. What draws at random is refused: its draws would depend on the other runs."""

    def one(weights: Weights, *inputs: Tensor) -> Tensor:
        output: Tensor = functional_call(model, weights, inputs)
        return output

    together = vmap(one)
    return lambda weights, inputs: together(weights, *inputs)


def one_by_one(model: nn.Module, random_states: UInt8[Tensor, "n state"], device: torch.device) -> Call:
    """Call one run after the other. In training each draws from a seed of its own generator, on whatever device."""
    generator = torch.Generator()
    others = [] if device.type == "cpu" else [device]  # whose global states must be kept as well

    def call(weights: Weights, inputs: tuple[Tensor, ...]) -> Tensor:
        outputs = []
        with torch.random.fork_rng(others, enabled=model.training, device_type=device.type):
            for run, own in enumerate(zip(*inputs, strict=True)):
                if model.training:
                    generator.set_state(random_states[run].clone())  # a view is misread
                    seed = torch.randint(2**62, (), generator=generator, device="cpu")
                    random_states[run] = generator.get_state()
                    torch.manual_seed(int(seed))
                outputs.append(functional_call(model, {name: tensor[run] for name, tensor in weights.items()}, own))
        return torch.stack(outputs)

    return call


class _Folded(nn.Module):
    def __init__(self, model: nn.Module, groups: int) -> None:
        super().__init__()
        self.model, self.groups = model, groups

    def forward(self, *inputs: Tensor) -> Tensor:
        assert isinstance(self.model, Folds)
        runs, examples = inputs[0].shape[:2]
        shape = runs, self.groups, examples // self.groups
        by_group = (tensor.reshape(*shape, *tensor.shape[2:]) for tensor in inputs)
        return self.model.by_group(*by_group).flatten(1, 2)


def folded(model: nn.Module, groups: int) -> Call:
    """Call a model that is cheaper for examples sorted by group, and takes stacked parameters itself."""
    sorted_model = _Folded(model, groups)

    def call(weights: Weights, inputs: tuple[Tensor, ...]) -> Tensor:
        prefixed = {f"model.{name}": tensor for name, tensor in weights.items()}
        output: Tensor = functional_call(sorted_model, prefixed, inputs)
        return output

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
