"""How the models of many runs are asked together: sorted by action, all at once, or one after the other."""

from collections.abc import Callable

import torch
from jaxtyping import UInt8
from torch import Tensor, nn
from torch.func import functional_call, vmap

from tpr_attention.data import Batch
from tpr_attention.models import CopyAndUpdate

__all__ = ["Answer", "Weights", "at_once", "by_action", "folded", "in_turn", "is_stackable"]

Weights = dict[str, Tensor]
Answer = Callable[[Weights, Batch], Tensor]


def at_once(model: nn.Module) -> Answer:
    """All runs at once. What draws at random is refused: its draws would depend on its company."""

    def one(weights: Weights, reference: Tensor, transform: Tensor, action: Tensor) -> Tensor:
        output: Tensor = functional_call(model, weights, (reference, transform, action))
        return output

    together = vmap(one)

    def answer(weights: Weights, batch: Batch) -> Tensor:
        return together(weights, batch.reference, batch.transform, batch.action)

    return answer


@torch.no_grad()
def is_stackable(model: nn.Module, weights: Weights, batch: Batch) -> bool:
    """Whether a model allows to be asked for all runs at once, in training too."""
    try:
        at_once(model.train())({name: tensor.clone() for name, tensor in weights.items()}, batch)
    except RuntimeError:
        return False
    return True


def in_turn(model: nn.Module, draws: UInt8[Tensor, "n state"]) -> Answer:
    """One run after the other; each has a state of the random generator of its own, which goes on in training."""

    def answer(weights: Weights, batch: Batch) -> Tensor:
        outputs = []
        for k, inputs in enumerate(zip(*batch[:3], strict=True)):
            if model.training:
                torch.set_rng_state(draws[k].clone())  # a view is misread
            outputs.append(functional_call(model, {name: tensor[k] for name, tensor in weights.items()}, inputs))
            if model.training:
                draws[k] = torch.get_rng_state()
        return torch.stack(outputs)

    return answer


class _Folded(nn.Module):
    def __init__(self, model: CopyAndUpdate) -> None:
        super().__init__()
        self.model = model

    def forward(self, reference: Tensor, transform: Tensor) -> Tensor:
        by_action = reference.shape[0], self.model.num_actions, -1, *reference.shape[-2:]
        return self.model.by_action(reference.reshape(by_action), transform.reshape(by_action)).reshape(reference.shape)


def folded(model: CopyAndUpdate) -> Answer:
    """A model that is cheaper for pairs sorted by action, and takes stacked parameters itself."""
    sorted_model = _Folded(model)

    def answer(weights: Weights, batch: Batch) -> Tensor:
        prefixed = {f"model.{name}": tensor for name, tensor in weights.items()}
        output: Tensor = functional_call(sorted_model, prefixed, (batch.reference, batch.transform))
        return output

    return answer


def by_action(batch: Batch) -> Batch:
    """The pairs of each run sorted by action, as many of each: what is filled in has no action and does not count."""
    order = batch.action.argmax(-1).argsort(dim=1, stable=True)  # [n b]
    count = batch.action.sum(1).long()  # [n a]
    most = int(count.max())
    place = torch.arange(most, device=order.device)
    rows = (count.cumsum(1) - count).unsqueeze(-1) + place.minimum((count.unsqueeze(-1) - 1).clamp(min=0))
    rows = order.gather(1, rows.clamp(max=order.shape[1] - 1).flatten(1))
    counted = (place < count.unsqueeze(-1)).flatten(1)
    run = torch.arange(len(rows), device=rows.device).unsqueeze(-1)
    chosen = Batch(*(tensor[run, rows] for tensor in batch))
    return chosen._replace(action=chosen.action * counted.unsqueeze(-1))
