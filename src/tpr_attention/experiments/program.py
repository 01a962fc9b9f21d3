"""Models of one shape, stacked, and the step of Adam that they take together."""

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import stack_module_state
from torch.fx.experimental.proxy_tensor import make_fx

from tpr_attention.data import Batch, stream
from tpr_attention.experiments.answers import Weights, at_once, by_action, folded, in_turn, is_stackable
from tpr_attention.experiments.prepare import Prepared
from tpr_attention.models import CopyAndUpdate

__all__ = ["Divergence", "Program", "can_compile"]

Losses = Float[Tensor, "n r"]
Rows = Float[Tensor, "n weights"]

FIRST, SECOND, SMALL = 0.9, 0.999, 1e-8  # Adam's
FEW = 3  # runs that are evaluated at once: with more, what lies between input and output leaves the cache


class Divergence(NamedTuple):
    """Where a run stopped: the step it could not take, and the first tensor on the way that was not finite."""

    step: int
    tensor: str


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
        pairs, fillers = self.pool.target.shape[2], self.pool.target.shape[-1]
        role_weights = torch.stack([run.role_weights for run in runs])
        # How much each number of an answer counts: spread out, so that the step reads it in order.
        self.counts = (role_weights.unsqueeze(-1) / (pairs * fillers)).repeat(1, 1, fillers)
        self.total = torch.zeros_like(role_weights)
        self.alive, self.taken = torch.ones(len(runs), dtype=torch.bool), torch.zeros(len(runs), dtype=torch.long)
        self.draws = torch.stack([stream(run.spec.seed, "steps").get_state() for run in runs])
        self.step: Callable[..., Losses] = self._step
        if isinstance(self.model, CopyAndUpdate) and self.model.folds and runs[0].spec.balance_actions:
            self.answer = folded(self.model)
            self.evaluation = {condition: by_action(batch) for condition, batch in self.evaluation.items()}
            if compiled:
                # Traced before it is compiled, so that only what is done with tensors is looked at, and once.
                traced = make_fx(self._step, tracing_mode="fake")(*self._inputs(0))
                torch._inductor.config.cpp.vec_isa_ok = True  # no trial of what the processor says it can: 4 seconds
                self.step = torch.compile(traced, fullgraph=True)
        else:
            few = Batch(*(tensor[0, :, :2] for tensor in self.pool))
            stackable = not self.trained or is_stackable(self.model, self._named(self.weights) | self.fixed, few)
            self.answer = at_once(self.model) if stackable else in_turn(self.model, self.draws)

    def advance(self, start: int, end: int, seconds: float = math.inf) -> int:
        """Take the steps after `start` up to `end`, or as many as fit in the seconds; the step that was reached."""
        self.model.train()
        deadline = time.monotonic() + seconds
        with torch.random.fork_rng(devices=[]):  # models that are asked in turn may draw
            for number in range(start, end):
                self.total += self.step(*self._inputs(number))
                if time.monotonic() > deadline:
                    return number + 1
        return end

    def mean_losses(self, steps: int) -> Losses:
        """The mean loss of each run and role over the steps since it was asked last."""
        losses = self.total / steps
        self.total.zero_()
        return losses

    def _inputs(self, number: int) -> list[Tensor]:
        rates = self.rates * (1 + math.cos(math.pi * number / self.steps)) / 2
        corrections = torch.tensor([1 - FIRST ** (number + 1), 1 - SECOND ** (number + 1)]).to(rates)
        state = [self.weights, self.mean, self.square, self.alive, self.taken]
        return [*state, rates, corrections, self.counts, *self._batch(number), *self.fixed.values()]

    def _batch(self, number: int) -> Batch:
        return Batch(*(tensor[number % len(self.pool.action)] for tensor in self.pool))

    def _step(
        self,
        weights: Rows,
        mean: Rows,
        square: Rows,
        alive: Bool[Tensor, "n"],
        taken: Tensor,
        rates: Float[Tensor, "n"],
        corrections: Tensor,
        counts: Float[Tensor, "n r f"],
        *batch_and_fixed: Tensor,
    ) -> Losses:
        """One step of every run that lives. A run dies of what is not finite, before it changes its weights."""
        batch, fixed = Batch(*batch_and_fixed[:4]), dict(zip(self.fixed, batch_and_fixed[4:], strict=True))
        trained = {name: tensor.detach().requires_grad_() for name, tensor in self._named(weights).items()}
        errors = (self.answer(trained | fixed, batch) - batch.target).square()
        loss = (errors * counts.unsqueeze(1)).sum()
        found = torch.autograd.grad(loss, list(trained.values()), materialize_grads=True)
        losses, gradient = errors.detach().mean((1, 3)), _flat(found, len(weights))
        alive.logical_and_((gradient.square().sum(1) + losses.sum(1)).isfinite())
        taken.add_(alive)
        mean.lerp_(gradient, 1 - FIRST)
        square.lerp_(gradient.square(), 1 - SECOND)
        update = rates.unsqueeze(1) * (mean / corrections[0]) / ((square / corrections[1]).sqrt() + SMALL)
        weights.sub_(torch.where(alive.unsqueeze(1), update, 0))
        return losses

    def _named(self, weights: Rows) -> Weights:
        parts = torch.split(weights, [shape[1:].numel() for shape in self.shapes.values()], 1)
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def divergence(self, run: int) -> Divergence | None:
        """Why a run has stopped, if it has: found again, since it still has the weights it had."""
        if self.alive[run]:
            return None
        number = int(self.taken[run])
        batch = Batch(*(tensor[run : run + 1] for tensor in self._batch(number)))
        named = {name: tensor[run : run + 1] for name, tensor in self._named(self.weights).items()}
        fixed = {name: tensor[run : run + 1] for name, tensor in self.fixed.items()}
        trained = {name: tensor.detach().requires_grad_() for name, tensor in named.items()}
        with torch.random.fork_rng(devices=[]):
            output = self.answer(trained | fixed, batch)
        losses = (output - batch.target).square()
        found = torch.autograd.grad((losses * self.counts[run]).sum(), list(trained.values()), materialize_grads=True)
        looked_at = {**batch._asdict(), **named, **fixed, "output": output, "loss": losses} | {
            f"gradient of {name}": gradient for name, gradient in zip(trained, found, strict=True)
        }
        bad = (name for name, tensor in looked_at.items() if not tensor.isfinite().all())
        return Divergence(number + 1, next(bad, "norm of the gradient"))

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
                self.answer({name: tensor[k : k + FEW] for name, tensor in weights.items()}, _some(batch, k))
                for k in runs
            ]
            outputs = torch.cat(parts)
        else:  # it may do what cannot be done for many runs at once
            outputs = torch.stack([model(*inputs) for model, *inputs in zip(self.models, *batch[:3], strict=True)])
        return (outputs - batch.target).square().mean(-1)

    def state(self) -> Weights:
        """All that changes in training, to be given back to `restore`."""
        own = {name: getattr(self, name) for name in OWN}
        return own | {f"fixed.{name}": tensor for name, tensor in self.fixed.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])

    def unstacked(self) -> list[Weights]:
        """The weights of each run."""
        everything = self._named(self.weights) | self.fixed
        return [{name: tensor[k].clone() for name, tensor in everything.items()} for k in range(len(self.rates))]


OWN = ("weights", "mean", "square", "total", "alive", "taken", "draws")


def _flat(tensors: Sequence[Tensor], runs: int) -> Rows:
    return torch.cat([tensor.reshape(runs, -1) for tensor in tensors], 1) if tensors else torch.empty(runs, 0)


def _some(batch: Batch, start: int) -> Batch:
    return Batch(*(tensor[start : start + FEW] for tensor in batch))


def _stacked(batches: Sequence[Batch], axis: int) -> Batch:
    return Batch(*(torch.stack(tensors, axis) for tensors in zip(*batches, strict=True)))
