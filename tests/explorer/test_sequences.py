"""The room "Sequences": its memories against torch, its data, and what it leaves out."""

import numpy as np
import pytest
import torch

from tpr_attention.explorer.page import write_page
from tpr_attention.explorer.rooms.sequences import data
from tpr_attention.explorer.trained import Trained, label_of
from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.studies.recall.state_sizes import state_size
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import RunSpec

COMPOSITIONAL = {"task": "recall-compositional", "num_keys": 6, "num_values": 5, "pairs": 3, "lengths": [1, 4]}
CAPACITY = {"task": "recall-capacity", "num_pairs": 5, "setting": "replacement"}
SAR = {"task": "recall-sar", "each": 4, "pairs": 3, "test_pairs": 4}
TPR = {"model": "recall-tpr", "filler_dim": 4}
MODELS = {
    "tpr": TPR,
    "tpr-delta": {**TPR, "write": "delta"},
    "tpr-softmax": {**TPR, "match": "softmax"},
    "tpr-one-hot": {**TPR, "values": "one-hot", "keys": "table", "normalise": "rms"},
    "tpr-one-hot-delta": {**TPR, "values": "one-hot", "write": "delta", "normalise": "count", "keys": "random"},
    "tpr-unit": {**TPR, "num_matches": 4, "normalise": "unit"},
    "softmax": {"model": "recall-softmax", "width": 12, "num_heads": 3},
    "linear": {"model": "recall-linear", "width": 10, "num_heads": 2},
    "dpfp": {"model": "recall-dpfp", "width": 6, "nu": 2},
    "delta": {"model": "recall-delta", "width": 12, "num_heads": 2},
    "delta-dpfp": {"model": "recall-delta", "encoder": "published", "width": 6, "features": "dpfp"},
    "softmax-published": {"model": "recall-softmax", "encoder": "published", "width": 6},
    "linear-roles": {"model": "recall-linear", "encoder": "roles", "width": 8},
    "delta-fixed-roles": {"model": "recall-delta", "encoder": "fixed-roles", "width": 6},
    "softmax-roles": {"model": "recall-softmax", "encoder": "roles", "width": 8},
}
ONE_MATCH = {"tpr-replace": {**TPR, "num_matches": 1, "write": "replace", "values": "one-hot", "keys": "random"}}


def made(keys):
    """A model whose weights are all other than at the start, in float64, and the same as a trained one."""
    spec = RunSpec.of(keys)
    model = build(spec.model.name, make_task(spec.task, spec.seed), spec.seed, **spec.model.options)
    generator = named_generator(1, "weights")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    weights = {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}
    return model.double().eval(), Trained(spec, weights, label_of(spec))


def batch_of(spec, condition, count=3):
    task = make_task(spec.task, spec.seed)
    return task.draw(condition, count, named_generator(2, "batch"), torch.float64)


def answered(engine, trained, pairs, queries):
    """What the page makes of queries: outputs, and match weights and shares `[h q t]`."""
    found = data([trained])
    task = found["tasks"][0]
    told = {"values": task["values"], "fields": task["fields"]}
    script = "queries.map(storedPairs(model, task, pairs))"
    answers = engine.run(script, model=task["models"][0], task=told, pairs=pairs.tolist(), queries=queries.tolist())
    weights = [np.array([answer[name] for answer in answers]).swapaxes(0, 1) for name in ("match", "share")]
    return np.array([answer["output"] for answer in answers]), *weights


def compared(engine, keys, condition):
    model, trained = made(keys)
    batch = batch_of(trained.spec, condition)
    for pairs, queries in zip(*batch.inputs, strict=True):
        output, match, share = answered(engine, trained, pairs, queries)
        with torch.no_grad():
            np.testing.assert_allclose(output, model(pairs, queries).numpy(), rtol=1e-5, atol=1e-5)
        yield model, pairs, queries, match, share


@pytest.mark.parametrize("name", MODELS)
def test_memories_of_compound_keys_answer_as_in_torch(engine, name):
    for model, pairs, queries, match, _ in compared(engine, {**COMPOSITIONAL, **MODELS[name]}, "ood_x4"):
        if hasattr(model, "layer"):
            objects = model.objects
            seen = model.layer.inspect(objects.queries(queries), memory=objects.pairs(pairs))
            np.testing.assert_allclose(match, seen.match_weights.numpy(), atol=1e-5)


@pytest.mark.parametrize("name", {**MODELS, **ONE_MATCH})
def test_memories_of_keys_that_are_written_again_answer_as_in_torch(engine, name):
    for model, pairs, queries, match, _ in compared(engine, {**CAPACITY, **{**MODELS, **ONE_MATCH}[name]}, "draws_x8"):
        if hasattr(model, "layer"):
            objects = model.objects
            seen = model.layer.inspect(objects.queries(queries), memory=objects.pairs(pairs))
            np.testing.assert_allclose(match, seen.match_weights.numpy(), atol=1e-5)


@pytest.mark.parametrize("name", ["tpr", "softmax", "linear", "delta"])
def test_memories_of_kinds_answer_as_in_torch(engine, name):
    assert [*compared(engine, {**SAR, **MODELS[name]}, "ood_long")]


@pytest.mark.parametrize("name", ["tpr-delta", "delta", "tpr-replace"])
def test_shares_tell_what_a_value_changes(engine, name):
    """A share is the derivative of what a head reads: one-hot values are read as their shares."""
    keys = {"model": "recall-delta", "encoder": "published", "width": 6}
    tpr = {"model": "recall-tpr", "num_matches": 1, "values": "one-hot", "filler_dim": 5, "learn": "nothing"}
    options = {"delta": keys, "tpr-delta": {**tpr, "write": "delta"}, "tpr-replace": {**tpr, "write": "replace"}}[name]
    spec = RunSpec.of({**CAPACITY, **options})
    model = build(spec.model.name, make_task(spec.task, spec.seed), spec.seed, **spec.model.options).double()
    weights = {name: value.detach().float().numpy() for name, value in model.state_dict().items()}
    trained = Trained(spec, weights, "model")
    pairs, queries = (one[0] for one in batch_of(spec, "in_distribution").inputs)
    _, match, share = answered(engine, trained, pairs, queries)
    one_hot = np.eye(5)[pairs[:, -1].numpy()]
    with torch.no_grad():
        np.testing.assert_allclose(share[0] @ one_hot, model(pairs, queries).numpy(), atol=1e-5)
    assert np.abs(share - match).max() > 0.1


def trained_on(keys):
    return made(keys)[1]


def test_state_against_length_is_that_of_the_study():
    for keys in MODELS.values():
        one = trained_on({**COMPOSITIONAL, **keys})
        state = data([one])["tasks"][0]["models"][0]["state"]
        for length in (3, 48):
            assert state["constant"] + state["each"] * length == state_size(one.spec, length)
        assert (state["each"] > 0) == ("softmax" in (one.spec.model.name + str(one.spec.model.options.get("match"))))


def test_pairings_that_training_never_shows():
    found = data([trained_on({**COMPOSITIONAL, **TPR})])["tasks"][0]
    table = found["held_out"]["table"]
    task = make_task(RunSpec.of(COMPOSITIONAL).task, 0)
    pairs = torch.cat([task.draw("train", 500, named_generator(0, "x"), torch.float32).inputs[0]]).flatten(0, 1)
    shown = np.zeros((6, 6), bool)
    shown[pairs[:, 0], pairs[:, 1]] = True
    assert (shown == (table == 0)).all()


def test_kinds_that_training_never_shows():
    found = data([trained_on({**SAR, **TPR})])["tasks"][0]
    pairs = make_task(RunSpec.of(SAR).task, 0).draw("train", 500, named_generator(0, "x"), torch.float32).inputs[0]
    shown = np.zeros((8, 8), bool)
    shown[pairs[..., 0].flatten(), pairs[..., 1].flatten()] = True
    assert (shown == (found["held_out"]["table"] == 0)).all()


def test_tasks_are_apart_and_models_in_order():
    runs = [
        trained_on({**COMPOSITIONAL, "model": "recall-delta", "width": 6}),
        trained_on({**CAPACITY, **TPR}),
        trained_on({**COMPOSITIONAL, **TPR}),
    ]
    tasks = data(runs)["tasks"]
    assert [task["name"] for task in tasks] == ["recall-compositional", "recall-capacity"]
    assert [model["words"] for model in tasks[0]["models"]] == ["TPR-Attention, sum", "Delta rule"]
    assert [task["lengths"] for task in tasks] == [[3, 12], [5, 10, 40]]
    assert [task["trained_length"] for task in tasks] == [3, 10]


def test_one_of_runs_that_differ_in_training_and_names_that_differ():
    short, long = (
        trained_on({**COMPOSITIONAL, **TPR, "steps": steps, "seed": seed}) for steps, seed in ((5, 0), (9, 1))
    )
    models = data([short, long, trained_on({**COMPOSITIONAL, **TPR, "filler_dim": 5})])["tasks"][0]["models"]
    assert len(models) == 2
    assert models[0]["digest"] in (long.spec.digest, models[1]["digest"])
    assert len({model["words"] for model in models}) == 2
    assert all("filler dim" in model["words"] for model in models)


def test_what_cannot_be_shown_is_named():
    shown = trained_on({**COMPOSITIONAL, **TPR})
    contextual = trained_on({"task": "recall-contextual", "model": "contextual-attention"})
    broken = trained_on({**COMPOSITIONAL, **TPR, "filler_dim": 3})
    broken = Trained(broken.spec, {name: array * np.nan for name, array in broken.weights.items()}, "broken")
    large = trained_on({**COMPOSITIONAL, "model": "recall-linear", "width": 400})
    found = data([contextual, broken, large, shown])
    assert [model["digest"] for model in found["tasks"][0]["models"]] == [shown.spec.digest]
    reasons = " ".join(found["left_out"])
    assert "recall-contextual" in reasons
    assert "not finite" in reasons
    assert "fill the page" in reasons
    assert data([contextual]) is None
    assert data([]) is None


def test_large_models_are_rounded_and_say_so(engine):
    one = trained_on({**COMPOSITIONAL, "model": "recall-linear", "width": 80})
    model = data([one])["tasks"][0]["models"][0]
    assert model["is_rounded"]
    assert {array.dtype for array in model["weights"].values()} == {np.dtype(np.float16)}


def test_names_are_escaped():
    one = trained_on({**COMPOSITIONAL, **TPR})
    page = write_page([Trained(one.spec, one.weights, "<script>alert(1)</script>")])
    assert "<script>alert" not in page
