"""Small runs that tests of training share, and what they do with the events of a training."""

from math import cos, pi

import torch

from tpr_attention.training.points import Point
from tpr_attention.training.prepare import prepare
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.train import Finished, Pause, train

from . import components

VALUES = {"steps": 30, "train_examples": 500, "test_examples": 100, "batch_size": 50}
SMALL = RunSpec.of({**VALUES, "interaction": "shape_col"})
LINES = RunSpec.of({**VALUES, "task": components.TASK, "model": components.MODEL, "learning_rate": 0.05})


def own(name, spec=LINES):
    """A model of `components` on its task, or one of `contestants`."""
    return spec.changed({"model": f"{components.__name__}:{name}"})


def curve(specs, **fields):
    """The metrics of every run, step and condition."""
    points = (event for event in train(specs, **fields) if isinstance(event, Point))
    return {point[:3]: point.values for point in points if point.group is None}


def weights(events):
    return {event.run: event.weights for event in events if isinstance(event, Finished)}


def alone(spec, dtype=torch.float32):
    """The loop that everyone writes: one model, an optimiser of torch, a schedule."""
    run, training = prepare(spec, dtype), spec.training
    model = run.model.train()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if training.optimiser == "adam":
        optimiser = torch.optim.Adam(parameters, lr=training.learning_rate)
    else:
        optimiser = torch.optim.SGD(parameters, lr=training.learning_rate, momentum=0.9)
    share = {
        "cosine": lambda step: (1 + cos(pi * step / training.steps)) / 2,
        "constant": lambda step: 1.0,
        "late-decay": lambda step: min(1, 4 - 4 * step / training.steps),
    }
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, share[training.schedule])
    for step in range(training.steps):
        batch = run.pool.map(lambda tensor, step=step: tensor[step % len(tensor)])
        output, penalty = (
            model.with_penalty(*batch.inputs)
            if hasattr(model, "with_penalty")
            else (
                model(*batch.inputs),
                0.0,
            )
        )
        loss = next(iter(run.task.measure(output, batch).values())).mean()
        optimiser.zero_grad()
        (loss + penalty).backward()
        optimiser.step()
        schedule.step()
    return model.eval(), run


def without_pauses(events):
    """Pauses come as time passes."""
    return [event for event in events if not isinstance(event, Pause)]


def of_run(events, spec):
    return [event for event in without_pauses(events) if event.run == spec.digest]


def check_equal(first, again):
    for one, other in zip(without_pauses(first), without_pauses(again), strict=True):
        if isinstance(one, Point):
            assert one == other
        else:
            assert (one.run, one.names, one.parameters) == (other.run, other.names, other.parameters)
            assert one.weights.keys() == other.weights.keys()
            assert all(torch.equal(tensor, other.weights[key]) for key, tensor in one.weights.items())
