"""Two heads, trained without interaction, find the substitution of appendix D.

What they find is determined up to what leaves the function as it is:

- the order of heads;
- size and sign, which move between the factors of a head, and under every action by itself between its query and its
  new role. `inspect_weights` puts them into the id;
- how heads that read and write the same share the work: only the sum of id (x) filler map over heads is determined. In
  appendix D one head erases, with -1 for the reference, and one writes, with +1 for the transform. A single head with
  the id (-1, +1) does both, and so do two that have this id and filler maps that add up to the identity;
- what the fillers of the task cannot tell. One-hot fillers add up to 1, so a filler map that is the same for every
  component reads a constant, which cancels between two objects; the third component of orientations is zero; two
  components of scales are equal.
"""

import jaxtyping
import numpy as np
import pytest
import torch
from einops import einsum, rearrange

from tpr_attention.generators import named_generator
from tpr_attention.report.inspection import inspect_weights
from tpr_attention.tasks.composition.task import dsprites_composition
from tpr_attention.training.points import Point
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.train import Finished, train

SEEDS = (0, 2, 5, 8)
ALIKE = (2, 5, 8)
"""Seeds of which nothing is left to what fillers cannot tell."""


@pytest.fixture(scope="module", params=[True, False], ids=["ids are learned", "ids are given"])
def trained(request):
    """Whether ids were learned, and the weights of each seed, all of which have solved the task."""
    values = {"num_heads": 2, "learn_ids": request.param, "steps": 2000, "train_examples": 5000, "learning_rate": 0.03}
    specs = [RunSpec.of({**values, "seed": seed}) for seed in SEEDS]
    jaxtyping.config.update("jaxtyping_disable", True)  # as users run it: checks of shapes take half of the time
    events = list(train(specs, compiled=False, dtype=torch.float64))
    jaxtyping.config.update("jaxtyping_disable", False)
    assert max(max(event.values) for event in events if isinstance(event, Point) and event.step == 2000) < 1e-6
    found = {event.run: event.weights for event in events if isinstance(event, Finished)}
    return request.param, {spec.seed: {k: np.asarray(v) for k, v in found[spec.digest].items()} for spec in specs}


def blocks(weights):
    """What all heads do together, [action, object, role read, component read, role written, component written]."""
    parts = (weights[f"attention.{name}"] for name in ("id_query", "query_map", "filler_map", "role_map"))
    return einsum(*parts, "h t, h a r, h f g, h a s -> a t r f s g")


def substitution():
    """Erase the acted role of the reference, write there what the transform has."""
    acted = einsum(np.eye(5), np.eye(5), "a r, a s -> a r s")
    return einsum(np.array([-1.0, 1.0]), acted, np.eye(3), "t, a r s, f g -> a t r f s g")


def visible():
    """A basis of all that fillers of reference and transform can be, in one column each."""
    batch = dsprites_composition("square_red").draw("train", 5000, named_generator(0, "visible"), torch.float64)
    objects = torch.stack(batch.inputs[:2], 1).flatten(1)
    _, sizes, directions = torch.linalg.svd(objects, full_matrices=False)
    return directions[sizes > 1e-9 * sizes[0]].numpy()


def test_what_fillers_cannot_tell():
    """Three sums of one-hot fillers that equal a fourth, and for each object a zero and a difference that is zero."""
    assert len(visible()) == 2 * 5 * 3 - (3 + 2 + 2)


def test_together_they_substitute_as_far_as_fillers_can_tell(trained):
    _, runs = trained
    for weights in runs.values():
        wrong = rearrange(blocks(weights) - substitution(), "a t r f s g -> a (t r f) (s g)")
        assert np.abs(visible() @ wrong).max() < 1e-2


def test_together_they_substitute_to_the_letter(trained):
    ids_are_learned, runs = trained
    for seed in ALIKE if ids_are_learned else SEEDS:
        np.testing.assert_allclose(blocks(runs[seed]), substitution(), atol=1e-2)


def test_each_head_reads_and_writes_the_acted_role(trained):
    ids_are_learned, runs = trained
    for seed in ALIKE if ids_are_learned else SEEDS:
        (layer,) = inspect_weights(runs[seed]).layers
        working = [head for head in layer.heads if np.abs(head.ids).max() > 0.01]
        assert working
        for head in working:
            np.testing.assert_allclose(head.queries[0], np.eye(5), atol=1e-2)
            np.testing.assert_allclose(head.new_role, np.eye(5), atol=1e-2)
        shared = sum(np.multiply.outer(head.ids[0], head.filler_map) for head in working)
        np.testing.assert_allclose(shared, [-np.eye(3), np.eye(3)], atol=1e-2)


def test_a_head_with_its_own_object_erases_or_writes(trained):
    """With given ids this is appendix D itself. Learned ones read the difference of the two objects instead."""
    ids_are_learned, runs = trained
    for weights in runs.values():
        (layer,) = inspect_weights(weights).layers
        erase, write = (head.ids[0] for head in layer.heads)
        if ids_are_learned:
            np.testing.assert_allclose([erase.sum(), write.sum()], 0, atol=1e-2)
        else:
            np.testing.assert_allclose([erase, write], [[-1, 0], [0, 1]], atol=1e-2)
            for head in layer.heads:
                np.testing.assert_allclose(head.filler_map, np.eye(3), atol=1e-2)
