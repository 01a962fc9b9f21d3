"""What stored runs answer to the same examples, in numbers and as pictures."""

from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from tpr_attention.generators import named_generator
from tpr_attention.imports import nearest
from tpr_attention.models.build import build
from tpr_attention.runner.store import Store
from tpr_attention.tasks.task import Batch, Pictures, Task
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import RunSpec, SpecError

__all__ = ["Answers", "answers_of", "failures_of"]

PART = 100
"""Examples that are answered at once where failures are sought."""

Images = UInt8[np.ndarray, "n h w 3"]


class Answers(NamedTuple):
    """Answers to some examples of a test.

    Args:
        examples: The groups that each example is in.
        metrics: The mean of each metric over the examples, by label of a run.
        given: Pictures of each part of the inputs.
        answers: Pictures of the answers, by label of a run.
        target: Pictures of the right answers; None if the task has no pictures.
        left_out: The labels of runs whose weights are not those of their model, such as runs of an earlier version.
    """

    test: str
    examples: list[tuple[str, ...]]
    metrics: dict[str, dict[str, float]]
    given: dict[str, Images]
    answers: dict[str, Images]
    target: Images | None
    left_out: list[str]


def answers_of(store: Store, runs: Mapping[str, RunSpec], test: str | None, count: int) -> Answers:
    """Draw examples of a test, and let runs of one task answer. Examples depend on the seed of the first run.

    Args:
        runs: By label.
        test: The task's last one if not given.
    """
    first = next(iter(runs.values()))
    task = make_task(first.task, first.seed)
    test = task.conditions[-1] if test is None else test
    if test not in task.conditions:
        raise SpecError(f"test: expected one of {list(task.conditions)}, got {test!r}{nearest(test, task.conditions)}")
    batch = task.draw(test, count, named_generator(first.seed, f"examples/{test}"), torch.float32)
    found = _without_answers(test, task, batch)
    for label, spec in runs.items():
        model = _model(store, spec, task)
        if model is None:
            found.left_out.append(label)
            continue
        with torch.no_grad():
            _add(found, label, task, batch, model(*batch.inputs))
    return found


def failures_of(store: Store, label: str, spec: RunSpec, test: str, most: int, among: int) -> Answers | None:
    """The first answers of a run that are not exact, as the metric `exact` of its task tells; None if there is none.

    Args:
        most: How many are sought.
        among: How many examples are looked at, at most.
    """
    task = make_task(spec.task, spec.seed)
    model, generator = _model(store, spec, task), named_generator(spec.seed, f"failures/{test}")
    if model is None:
        return None
    parts: list[tuple[Batch, Tensor]] = []
    looked_at = failed = 0
    while looked_at < among and failed < most:
        batch = task.draw(test, min(PART, among - looked_at), generator, torch.float32)
        with torch.no_grad():
            output: Tensor = model(*batch.inputs)
        wrong = (task.measure(output, batch)["exact"] == 0).nonzero().flatten()[: most - failed]
        parts.append((batch.map(itemgetter(wrong)), output[wrong]))
        looked_at, failed = looked_at + batch.size, failed + len(wrong)
    if not failed:
        return None
    batches, outputs = zip(*parts, strict=True)
    every = batches[0].with_tensors([*map(torch.cat, zip(*(batch.tensors() for batch in batches), strict=True))])
    found = _without_answers(test, task, every)
    _add(found, label, task, every, torch.cat(outputs))
    return found


def _without_answers(test: str, task: Task, batch: Batch) -> Answers:
    """The examples of a batch, before anything answers."""
    names = task.group_names
    examples = [tuple(names[name][int(of[row])] for name, of in batch.groups.items()) for row in range(batch.size)]
    pictures: dict[str, Images] = {}
    if isinstance(task, Pictures):
        pictures = {name: images.numpy() for name, images in task.pictures(batch).items()}
    return Answers(test, examples, {}, pictures, {}, pictures.pop("target", None), [])


def _add(found: Answers, label: str, task: Task, batch: Batch, output: Tensor) -> None:
    """Add what a run answers."""
    found.metrics[label] = {name: float(values.mean()) for name, values in task.measure(output, batch).items()}
    if isinstance(task, Pictures):
        found.answers[label] = task.pictures(batch._replace(target=output))["target"].numpy()


def _model(store: Store, spec: RunSpec, task: Task) -> torch.nn.Module | None:
    """The trained model of a run; None if its weights are not those of the model."""
    model = build(spec.model.name, task, spec.seed, **spec.model.options)
    weights = {name: torch.from_numpy(array) for name, array in store.weights(spec.digest).items()}
    shapes, expected = (
        {name: tensor.shape for name, tensor in tensors.items()} for tensors in (weights, model.state_dict())
    )
    if shapes != expected:
        return None
    model.load_state_dict(weights)
    return model.eval()
