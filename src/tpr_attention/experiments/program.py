"""Models of one shape, stacked, and the step of Adam that they take together."""

import math
import os
import shutil
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from tpr_attention.data import Batch, stream
from tpr_attention.experiments.prepare import Prepared
from tpr_attention.models import CopyAndUpdate

__all__ = ["Program", "can_compile"]

Weights = dict[str, Tensor]
Losses = Float[Tensor, "n r"]
Rows = Float[Tensor, "n weights"]
Answer = Callable[[Weights, Batch], Tensor]
Loss = Callable[[Weights], tuple[Tensor, Losses]]

FIRST, SECOND, SMALL = 0.9, 0.999, 1e-8  # Adam's
FEW = 3  # runs that are evaluated at once: with more, what lies between input and output leaves the cache


def can_compile() -> bool:
    """Whether this machine has the C++ compiler that compiled steps need."""
    return any(map(shutil.which, filter(None, (os.environ.get("CXX"), "g++", "clang++"))))


class Program:
    """The state of a group of runs in training; every tensor has a leading axis for the runs."""

    def __init__(self, runs: Sequence[Prepared], *, compiled: bool) -> None:
        self.steps = runs[0].spec.steps
        self.model = runs[0].model
        self.models = [run.model for run in runs]
        stacked, buffers = stack_module_state(self.models)
        self.trained = [name for name, parameter in self.model.named_parameters() if parameter.requires_grad]
        self.fixed = {name: stacked[name].detach() for name in stacked if name not in self.trained} | buffers
        # All that is trained, one row a run: one vector is one kernel, where each parameter would have its own.
        self.weights = _flat([stacked[name].detach() for name in self.trained], len(runs))
        self.mean, self.square = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.shapes = {name: stacked[name].shape for name in self.trained}
        self.pool = _stacked([run.pool for run in runs], 1)
        self.evaluation = {
            condition: _stacked([run.evaluation[condition] for run in runs], 0) for condition in runs[0].evaluation
        }
        self.rates = torch.tensor([run.spec.learning_rate for run in runs], dtype=self.weights.dtype)
        self.role_weights = torch.stack([run.role_weights for run in runs])
        self.seed = runs[0].spec.seed
        self.run_by_run = self._at_once_or_in_turn()
        self.answer, self.gradients, self.step = self.run_by_run, _by_autograd, self._step
        self.asked = self.run_by_run
        if isinstance(self.model, CopyAndUpdate) and self.model.folds and runs[0].spec.balance_actions:
            self.answer = self.asked = _folded(self.model)
            self.evaluation = {condition: _by_action(batch) for condition, batch in self.evaluation.items()}
            if compiled:
                torch._dynamo.reset()  # forget other programs: it gives up after eight shapes of one function
                self.gradients, self.step = _by_function, torch.compile(self._step, fullgraph=True)

    @torch.no_grad()
    def _at_once_or_in_turn(self) -> Answer:
        """How to ask every run's model: all at once, or one after the other where a model does not allow that."""
        condition = next(iter(self.evaluation))
        few = Batch(*(tensor[:, :2] for tensor in self.evaluation[condition]))
        if self.trained:
            try:
                _mapped(self.model.eval())(self._named(self.weights) | self.fixed, few)
            except RuntimeError:
                return _looped(self.model)
        return _mapped(self.model)

    def advance(self, start: int, end: int) -> Losses:
        """Take the steps after `start` up to `end`; the mean loss of each run and role on the way."""
        self.model.train()
        batches = len(self.pool.action)
        total = torch.zeros_like(self.role_weights)
        with torch.random.fork_rng(devices=[]):  # for models that draw in training, such as dropout
            torch.default_generator.manual_seed(stream(self.seed, f"steps/{start}").initial_seed())
            for number in range(start, end):
                batch = Batch(*(tensor[number % batches] for tensor in self.pool))
                rates = self.rates * (1 + math.cos(math.pi * number / self.steps)) / 2
                corrections = torch.tensor([1 - FIRST ** (number + 1), 1 - SECOND ** (number + 1)]).to(rates)
                total += self.step(self.weights, self.mean, self.square, batch, rates, corrections)
        return total / (end - start)

    def _step(
        self, weights: Rows, mean: Rows, square: Rows, batch: Batch, rates: Float[Tensor, "n"], corrections: Tensor
    ) -> Losses:
        def loss(trained: Weights) -> tuple[Tensor, Losses]:
            losses = _losses(self.answer(trained | self.fixed, batch), batch.target)
            return (losses * self.role_weights).sum(), losses

        gradients, losses = self.gradients(loss, self._named(weights))
        gradient = _flat([gradients[name] for name in self.trained], len(rates))
        mean.lerp_(gradient, 1 - FIRST)
        square.lerp_(gradient.square(), 1 - SECOND)
        weights.sub_(rates.unsqueeze(-1) * (mean / corrections[0]) / ((square / corrections[1]).sqrt() + SMALL))
        return losses

    def _named(self, weights: Rows) -> Weights:
        parts = torch.split(weights, [shape[1:].numel() for shape in self.shapes.values()], 1)
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def evaluate(self, condition: str) -> Losses:
        """The losses of every run and role under a condition."""
        counted = self.evaluation[condition].action.sum(-1)
        return torch.einsum("nbr, nb -> nr", self._errors(condition), counted / counted.sum(1, keepdim=True))

    def evaluate_by_action(self, condition: str) -> list[dict[int, tuple[float, ...]]]:
        """For every run the losses of each action the condition has."""
        errors, actions = self._errors(condition), self.evaluation[condition].action
        count = actions.sum(1)
        losses = torch.einsum("nbr, nba -> nar", errors, actions) / count.unsqueeze(-1)
        return [
            {action: tuple(found[action].tolist()) for action in present.nonzero().flatten().tolist()}
            for found, present in zip(losses, count, strict=True)
        ]

    @torch.no_grad()
    def _errors(self, condition: str) -> Float[Tensor, "n b r"]:
        """The mean squared error of every run, pair and role."""
        self.model.eval()
        batch = self.evaluation[condition]
        if self.trained:
            weights, runs = self._named(self.weights) | self.fixed, range(0, len(batch.target), FEW)
            parts = [
                self.asked({name: tensor[k : k + FEW] for name, tensor in weights.items()}, _some(batch, k))
                for k in runs
            ]
            outputs = torch.cat(parts)
        else:  # it may do what cannot be done for many runs at once
            outputs = torch.stack([model(*inputs) for model, *inputs in zip(self.models, *batch[:3], strict=True)])
        return (outputs - batch.target).square().mean(-1)

    def unstacked(self) -> list[Weights]:
        """The weights of each run."""
        everything = self._named(self.weights) | self.fixed
        return [{name: tensor[k].clone() for name, tensor in everything.items()} for k in range(len(self.rates))]


def _flat(tensors: Sequence[Tensor], runs: int) -> Rows:
    return torch.cat([tensor.reshape(runs, -1) for tensor in tensors], 1) if tensors else torch.empty(runs, 0)


def _losses(output: Float[Tensor, "n b r f"], target: Float[Tensor, "n b r f"]) -> Losses:
    return (output - target).square().mean((1, 3))


def _by_autograd(loss: Loss, weights: Weights) -> tuple[Weights, Losses]:
    """Gradients as usual: also for models that change buffers on the way."""
    weights = {name: tensor.detach().requires_grad_() for name, tensor in weights.items()}
    total, losses = loss(weights)
    found = torch.autograd.grad(total, list(weights.values()), materialize_grads=True)
    return dict(zip(weights, found, strict=True)), losses.detach()


def _by_function(loss: Loss, weights: Weights) -> tuple[Weights, Losses]:
    """Gradients in a form that can be compiled together with what uses them."""
    gradients, (_, losses) = grad_and_value(loss, has_aux=True)(weights)
    return gradients, losses


def _looped(model: nn.Module) -> Answer:
    """One run after the other."""

    def answer(weights: Weights, batch: Batch) -> Tensor:
        return torch.stack(
            [
                functional_call(model, {name: tensor[k] for name, tensor in weights.items()}, inputs)
                for k, inputs in enumerate(zip(*batch[:3], strict=True))
            ]
        )

    return answer


def _mapped(model: nn.Module) -> Answer:
    """All runs at once."""

    def one(weights: Weights, reference: Tensor, transform: Tensor, action: Tensor) -> Tensor:
        output: Tensor = functional_call(model, weights, (reference, transform, action))
        return output

    together = vmap(one, randomness="different")

    def answer(weights: Weights, batch: Batch) -> Tensor:
        return together(weights, batch.reference, batch.transform, batch.action)

    return answer


class _ByAction(nn.Module):
    def __init__(self, model: CopyAndUpdate) -> None:
        super().__init__()
        self.model = model

    def forward(self, reference: Tensor, transform: Tensor) -> Tensor:
        by_action = reference.shape[0], self.model.num_actions, -1, *reference.shape[-2:]
        return self.model.by_action(reference.reshape(by_action), transform.reshape(by_action)).reshape(reference.shape)


def _folded(model: CopyAndUpdate) -> Answer:
    """A model that is cheaper for pairs sorted by action, and takes stacked parameters itself."""
    sorted_model = _ByAction(model)

    def answer(weights: Weights, batch: Batch) -> Tensor:
        prefixed = {f"model.{name}": tensor for name, tensor in weights.items()}
        output: Tensor = functional_call(sorted_model, prefixed, (batch.reference, batch.transform))
        return output

    return answer


def _some(batch: Batch, start: int) -> Batch:
    return Batch(*(tensor[start : start + FEW] for tensor in batch))


def _by_action(batch: Batch) -> Batch:
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


def _stacked(batches: Sequence[Batch], axis: int) -> Batch:
    return Batch(*(torch.stack(tensors, axis) for tensors in zip(*batches, strict=True)))
