"""Models of one shape, stacked, and the step that they take together."""

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import stack_module_state
from torch.fx.experimental.proxy_tensor import make_fx

from tpr_attention.generators import named_generator
from tpr_attention.models.contract import Finishes, Folds, Penalised
from tpr_attention.tasks.task import Batch, FinalMeasure, LossAlone, StackedMeasure
from tpr_attention.training.calls import Call, Weights, folded, one_by_one, sorted_by_group, stacked
from tpr_attention.training.evaluation import Evaluation, Measure, group_sums, measure_one_by_one, measure_stacked
from tpr_attention.training.examples import Pool
from tpr_attention.training.optimisers import OPTIMISERS, SCHEDULES
from tpr_attention.training.prepare import Prepared

__all__ = ["Divergence", "Stack", "can_compile"]

Rows = Float[Tensor, "n weights"]
Values = Float[Tensor, "n b k"]

LARGE_BATCH = 2**18  # numbers in the inputs of one run: more leave the cache, and runs gain nothing together
RUNS_AT_ONCE = 3  # in evaluation: with more, what lies between input and output leaves the cache


class Divergence(NamedTuple):
    """Where a run stopped: the step it could not take, and the first tensor on the way that was not finite."""

    step: int
    tensor: str


def can_compile() -> bool:
    """Whether this machine has the C++ compiler that compiled steps need."""
    return any(map(shutil.which, filter(None, (os.environ.get("CXX"), "g++", "clang++"))))


class Stack:
    """The state of a group of runs in training; every tensor has a leading axis for the runs."""

    def __init__(self, runs: Sequence[Prepared], *, compiled: bool) -> None:
        self.training, self.task, self.model = runs[0].spec.training, runs[0].task, runs[0].model
        self.models, self.device = [run.model for run in runs], torch.device(self.training.device)
        self.seeds = [run.spec.seed for run in runs]
        stacked_weights, buffers = stack_module_state(self.models)
        self.trained = [name for name, parameter in self.model.named_parameters() if parameter.requires_grad]
        self.fixed = {
            name: tensor.detach() for name, tensor in stacked_weights.items() if name not in self.trained
        } | buffers
        # All that is trained, one row a run: one vector is one kernel, where each parameter would have its own.
        self.weights = _rows([stacked_weights[name].detach() for name in self.trained], len(runs), self.device)
        self.shapes = {name: stacked_weights[name].shape for name in self.trained}
        self.optimiser, self.schedule = OPTIMISERS[self.training.optimiser], SCHEDULES[self.training.schedule]
        self.slots = [torch.zeros_like(self.weights) for _ in self.optimiser.slots]
        self.pool = Pool([run.pool for run in runs], self.device)
        self.tests = {name: Pool([run.tests[name] for run in runs], self.device) for name in runs[0].tests}
        rates = [run.spec.training.learning_rate for run in runs]
        self.rates = torch.tensor(rates, dtype=self.weights.dtype, device=self.device)
        self.total = torch.zeros_like(self.rates)
        self.alive = torch.ones(len(runs), dtype=torch.bool, device=self.device)
        self.taken = torch.zeros(len(runs), dtype=torch.long, device=self.device)
        self.random_states = torch.stack([named_generator(seed, "steps").get_state() for seed in self.seeds])
        self.measure_runs: Measure = (
            self.task.measure_stack if isinstance(self.task, StackedMeasure) else measure_stacked(self.task.measure)
        )
        self.sorted_tests: dict[tuple[str, int], tuple[Batch, Tensor]] = {}
        self.step: Callable[..., Tensor] = self._step
        self.even_group = runs[0].even_group
        self.folds = isinstance(self.model, Folds) and self.model.folds and self.even_group is not None
        self.is_penalised = isinstance(self.model, Penalised)
        together = self.folds or not self.trained or self._is_stackable()
        if not together:
            self.measure_runs = measure_one_by_one(self.task.measure)
        self.call = self.train_call = self._call("by_group" if self.folds else "forward", together)
        if self.is_penalised:
            self.train_call = self._call("by_group_with_penalty" if self.folds else "with_penalty", together)
        if self.folds and compiled:  # traced before, so that only what is done with tensors is looked at, and once
            self.step = _compiled(make_fx(self._step, tracing_mode="fake")(*self._inputs(0)))

    def advance(self, start: int, end: int, seconds: float = math.inf) -> int:
        """Take the steps after `start` up to `end`, or as many as fit in the seconds. Returns the step reached."""
        self.model.train()
        deadline = time.monotonic() + seconds
        with torch.random.fork_rng(devices=[]):  # models that are called one by one may draw
            for number in range(start, end):
                self.total += self.step(*self._inputs(number))
                if time.monotonic() > deadline:
                    return number + 1
        return end

    def mean_losses(self, steps: int) -> Float[Tensor, "n"]:
        """The mean training loss of each run over the steps since the last call."""
        losses = self.total / steps
        self.total.zero_()
        return losses

    def _call(self, method: str, together: bool) -> Call:
        """How a method of the models of all runs is called."""
        if self.folds:
            assert self.even_group is not None
            return folded(self.model, len(self.task.group_names[self.even_group]), method)
        if together:
            return stacked(self.model, method)
        return one_by_one(self.model, self.random_states, self.device, method)

    @torch.no_grad()
    def _is_stackable(self) -> bool:
        """Whether the model and the measure can be called for all runs at once, also in training, and gain by it."""
        if sum(tensor[0].numel() for tensor in self.pool.batch(0).inputs) > LARGE_BATCH:
            return False
        batch = self.pool.batch(0).map(lambda tensor: tensor[:, :2])
        weights = {name: tensor.clone() for name, tensor in (self._named(self.weights) | self.fixed).items()}
        try:
            for training in (False, True):
                self.model.train(training)
                self.measure_runs(stacked(self.model)(weights, batch.inputs), batch)
        except RuntimeError:
            return False
        return True

    def _inputs(self, number: int) -> list[Tensor]:
        rates = self.rates * self.schedule(number / self.training.steps)
        scalars = torch.tensor(self.optimiser.scalars(number), dtype=rates.dtype, device=self.device)
        state = [self.weights, self.alive, self.taken, rates, scalars, *self.slots]
        return [*state, *self.pool.batch(number).tensors(), *self.fixed.values()]

    def _step(
        self,
        weights: Rows,
        alive: Bool[Tensor, "n"],
        taken: Tensor,
        rates: Float[Tensor, "n"],
        scalars: Tensor,
        *slots_batch_and_fixed: Tensor,
    ) -> Float[Tensor, "n"]:
        """One step of every run that lives. A run stops at what is not finite, before it changes its weights."""
        batch_at, fixed_at = len(self.slots), len(slots_batch_and_fixed) - len(self.fixed)
        slots, fixed = slots_batch_and_fixed[:batch_at], slots_batch_and_fixed[fixed_at:]
        trained = {name: tensor.detach().requires_grad_() for name, tensor in self._named(weights).items()}
        batch = self.pool.structure.with_tensors(slots_batch_and_fixed[batch_at:fixed_at])
        answer = self.train_call(trained | dict(zip(self.fixed, fixed, strict=True)), batch.inputs)
        output, *penalty = answer if self.is_penalised else (answer,)
        losses = self._losses(output, batch).mean(1)
        objective = sum(penalty, losses).sum()
        found = torch.autograd.grad(objective, list(trained.values()), materialize_grads=True)
        losses, gradient = losses.detach(), _rows(found, len(weights), self.device)
        alive.logical_and_((gradient.square().sum(1) + losses).isfinite())
        taken.add_(alive)
        update = self.optimiser.step(rates.unsqueeze(1), gradient, slots, scalars)
        weights.sub_(torch.where(alive.unsqueeze(1), update, 0))
        return losses

    def _losses(self, output: Tensor, batch: Batch) -> Float[Tensor, "n b"]:
        """The loss of every run and example."""
        if isinstance(self.task, LossAlone):
            return self.task.loss(output, batch)
        return next(iter(self.measure_runs(output, batch).values()))

    def _named(self, weights: Rows) -> Weights:
        parts = torch.split(weights, [shape[1:].numel() for shape in self.shapes.values()], 1)
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def divergence(self, run: int) -> Divergence | None:
        """Why a run has stopped, if it has: found again, since it still has the weights it had."""
        if self.alive[run]:
            return None
        number, one = int(self.taken[run]), slice(run, run + 1)
        batch = self.pool.batch(number).map(lambda tensor: tensor[one])
        named = {name: tensor[one] for name, tensor in self._named(self.weights).items()}
        fixed = {name: tensor[one] for name, tensor in self.fixed.items()}
        trained = {name: tensor.detach().requires_grad_() for name, tensor in named.items()}
        with torch.random.fork_rng(devices=[]):
            output = self.call(trained | fixed, batch.inputs)
        loss = self._losses(output, batch)
        found = torch.autograd.grad(loss.mean(), list(trained.values()), materialize_grads=True)
        inputs = {f"input {place}": tensor for place, tensor in enumerate(batch.inputs, 1)}
        seen = {**inputs, "target": batch.target, **named, **fixed, "output": output, "loss": loss} | {
            f"gradient of {name}": gradient for name, gradient in zip(trained, found, strict=True)
        }
        bad = (name for name, tensor in seen.items() if not tensor.isfinite().all())
        return Divergence(number + 1, next(bad, "norm of the gradient"))

    def evaluate_finally(self) -> dict[str, Evaluation]:
        """All metrics of every run under every condition, also for every group of examples."""
        return {condition: self.evaluate(condition, at_end=True) for condition in self.tests}

    def evaluate(self, condition: str, *, at_end: bool = False) -> Evaluation:
        """The metrics of every run under a condition; at the end with all examples, and for every group of them."""
        groupings = list(self.task.group_names) if at_end else []
        measure, count = self.measure_runs, self.tests[condition].count
        if isinstance(self.task, FinalMeasure):
            if at_end:
                measure = measure_one_by_one(self.task.measure_finally)
            else:
                count = min(count, -(-self.task.quick_examples // self.training.batch_size))
        sums: dict[str | None, Tensor] = {}
        counts: dict[str | None, Tensor] = {}
        for number in range(count):
            batch, present = self._test_batch(condition, number)
            values = self._values(batch, measure)
            members: dict[str | None, Tensor] = {None: present.unsqueeze(-1)}
            for name in groupings:
                numbers = torch.arange(len(self.task.group_names[name]), device=self.device)
                members[name] = present.unsqueeze(-1) & (batch.groups[name].unsqueeze(-1) == numbers)
            for grouping, chosen in members.items():
                of_runs = [group_sums(*one) for one in zip(values, chosen, strict=True)]  # alike whatever the company
                sums[grouping] = torch.stack(of_runs) + sums.get(grouping, 0)
                counts[grouping] = chosen.sum(1) + counts.get(grouping, 0)
        return Evaluation(sums, counts)

    def _test_batch(self, condition: str, number: int) -> tuple[Batch, Bool[Tensor, "n b"]]:
        """A batch of a test, and which of its examples count; sorted by group for a model that folds."""
        if (condition, number) in self.sorted_tests:
            return self.sorted_tests[condition, number]
        batch = self.tests[condition].batch(number)
        if self.folds and self.even_group is not None:
            names = self.task.group_names[self.even_group]
            found = sorted_by_group(batch, batch.groups[self.even_group], len(names))
        else:
            found = batch, torch.ones(batch.target.shape[:2], dtype=torch.bool, device=self.device)
        if not self.tests[condition].compact:
            self.sorted_tests[condition, number] = found
        return found

    @torch.no_grad()
    def _values(self, batch: Batch, measure: Measure) -> Values:
        """Every metric of every run and example."""
        self.model.eval()
        found = []
        weights = self._named(self.weights) | self.fixed
        for start in range(0, len(self.models), RUNS_AT_ONCE):
            some = slice(start, start + RUNS_AT_ONCE)
            part = batch.map(lambda tensor, some=some: tensor[some])  # type: ignore[misc]
            if self.trained:
                output = self.call({name: tensor[some] for name, tensor in weights.items()}, part.inputs)
            else:  # it may do what cannot be done for many runs at once
                models = zip(self.models[some], *part.inputs, strict=True)
                output = torch.stack([model(*inputs) for model, *inputs in models])
            found.append(torch.stack(list(measure(output, part).values()), -1))
        return torch.cat(found)

    @property
    def finishing_steps(self) -> Sequence[int]:
        """The steps of each stage that models have after training."""
        return self.model.finishing_steps if isinstance(self.model, Finishes) else ()

    def finish(self, stage: int) -> Iterator[None]:
        """Let every model that lives go through a stage; nothing changes here before all have."""
        finished: dict[int, Weights] = {}
        for run, (model, weights) in enumerate(zip(self.models, self.unstacked(), strict=True)):
            if self.alive[run] and isinstance(model, Finishes):
                tensors = dict((*model.named_parameters(), *model.named_buffers()))
                for name, tensor in tensors.items():
                    tensor.detach().copy_(weights[name])
                draws = named_generator(self.seeds[run], f"finish/{stage}")
                yield from model.eval().finish(stage, self.pool.batches(run), draws)
                finished[run] = tensors
        for run, tensors in finished.items():
            self.weights[run] = torch.cat([tensors[name].detach().flatten() for name in self.trained])
            for name, of_runs in self.fixed.items():
                of_runs[run] = tensors[name].detach()

    def state(self) -> Weights:
        """All that changes in training, to be given back to `restore`."""
        own = {name: getattr(self, name) for name in ("weights", "total", "alive", "taken", "random_states")}
        slots = dict(zip(self.optimiser.slots, self.slots, strict=True))
        return own | slots | {f"fixed.{name}": tensor for name, tensor in self.fixed.items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])

    def unstacked(self) -> list[Weights]:
        """The weights of each run, on the CPU."""
        everything = self._named(self.weights) | self.fixed
        return [
            {name: tensor[run].to("cpu", copy=True) for name, tensor in everything.items()}
            for run in range(len(self.models))
        ]


def _compiled(step: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Compile a step. The compiler need not try what the processor says it can do, which takes seconds."""
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")  # read when torch loads its compiler
    return torch.compile(step, fullgraph=True)


def _rows(tensors: Sequence[Tensor], runs: int, device: torch.device) -> Rows:
    if not tensors:
        return torch.empty(runs, 0, device=device)
    return torch.cat([tensor.reshape(runs, -1) for tensor in tensors], 1)
