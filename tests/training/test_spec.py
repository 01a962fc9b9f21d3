"""A spec is a value with one way to be written, checked against what tasks and models take."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpr_attention.training.options import default_options
from tpr_attention.training.spec import (
    Component,
    RunSpec,
    SpecError,
    Training,
    full_key,
    known_keys,
)

from .components import MODEL, TASK

OWN = {"task": TASK, "model": MODEL}

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
components = st.builds(Component, st.text(), st.dictionaries(st.text(), values, max_size=3))
trainings = st.builds(
    Training,
    steps=st.integers(1, 2**40),
    learning_rate=st.floats(1e-6, 1.0),
    schedule=st.sampled_from(["cosine", "constant", "late-decay"]),
    optimiser=st.sampled_from(["adam", "sgd"]),
)


@given(components, components, trainings, st.integers(0, 2**63 - 1))
def test_json_and_back(task, model, training, seed):
    """Whatever the task and the model are: nothing is imported to read a stored spec."""
    spec = RunSpec(task, model, training, seed)
    again = RunSpec.from_json(spec.to_json())
    assert (again.task, again.model, again.training, again.seed) == (task, model, training, seed)
    assert again == spec
    assert hash(again) == hash(spec)
    assert again.to_json() == spec.to_json()


def test_what_is_made_from_keys_is_what_is_read():
    """Also where a default is a tuple."""
    spec = RunSpec.of({"model": "classical", "interaction.law": "a:b", "interaction.factors": ("x", "y")})
    again = RunSpec.from_json(spec.to_json())
    assert again.task.options == spec.task.options
    assert spec.task.options["position_range"] == [-1.0, 1.0]
    assert spec.task.options["interaction"] == {"law": "a:b", "factors": ["x", "y"]}
    assert RunSpec.of(spec.keys()) == spec
    assert RunSpec.of(spec.keys()).to_json() == spec.to_json()


def test_a_digest_is_for_good():
    """Stored runs are found by it. An option with a new default changes it: then stored runs are trained again."""
    spec = RunSpec.of({"model": "tpr", "num_heads": 8, "split": "square_pos", "interaction": "shape_col", "seed": 3})
    assert spec.digest == "6ea5098d0596"


def test_every_field_but_the_device_is_in_the_digest():
    other = {
        "task": "random-composition",
        "task.split": "scale_pos",
        "task.position_range": [0, 1],
        "task.noise": 0.1,
        "model": "resnet",
        "model.num_heads": 5,
        "model.learn_ids": False,
        "training.steps": 1,
        "training.batch_size": 5,
        "training.train_examples": 999,
        "training.test_examples": 1,
        "training.learning_rate": 1.0,
        "training.schedule": "constant",
        "training.optimiser": "sgd",
        "seed": 1,
    }
    assert {key for key in other if key.startswith("training.")} == {
        f"training.{name}" for name in Training.__struct_fields__ if name != "device"
    }
    digests = {RunSpec.of({key: value}).digest for key, value in other.items()}
    assert len(digests | {RunSpec.of({}).digest}) == len(other) + 1


def test_the_device_is_no_part_of_what_a_run_is():
    here, there = RunSpec.of({}), RunSpec.of({"device": "cuda:1"})
    assert there.training.device == "cuda:1"
    assert there == here
    assert there.digest == here.digest
    assert "device" not in there.to_json()
    assert here.with_device("mps").training.device == "mps"
    assert there.changed({"steps": 3}).training.device == "cuda:1"


def test_the_order_of_keys_and_how_numbers_are_written_do_not_matter():
    first = RunSpec.of({"learn_ids": False, "num_heads": 2, "noise": 1, "position_range": (0, 1), "steps": 1e4})
    again = RunSpec.of({"position_range": [0.0, 1.0], "num_heads": 2.0, "learn_ids": False, "noise": 1.0})
    assert first.digest == again.digest
    assert type(first.training.steps) is type(first.model.options["num_heads"]) is int
    assert type(first.task.options["noise"]) is float
    assert RunSpec.of({"seed": 1e4}).seed == 10_000


def test_defaults_are_filled_in():
    """So that a stored spec says all, and a value that is the default changes nothing."""
    spec = RunSpec.of({"model": "resnet"})
    assert spec.model == Component("resnet", {"start_at_copy": True, "width": 128})
    assert spec.task.options == default_options("task", "composition")
    assert spec == RunSpec.of({"model": "resnet", "width": 128, "split": "square_red", "interaction": None})
    assert "seed" not in spec.task.options


def test_a_spec_does_not_change():
    spec = RunSpec.of({})
    for thing, name in ((spec, "seed"), (spec.training, "steps"), (spec.model, "name")):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(thing, name, getattr(thing, name))


def test_changes_leave_the_rest_as_it_is():
    spec = RunSpec.of({"model": "tpr", "num_heads": 8, "steps": 50, "seed": 3})
    changed = spec.changed({"split": "scale_pos", "training.learning_rate": 0.1})
    assert (changed.task.options["split"], changed.training.learning_rate) == ("scale_pos", 0.1)
    assert (changed.model, changed.training.steps, changed.seed) == (spec.model, 50, 3)
    assert spec.with_seed(4) == spec.changed({"seed": 4}) != spec
    with pytest.raises(SpecError, match="model: expected a name or a path, got None"):
        spec.changed({"model": None})


def test_another_task_or_model_has_its_own_options():
    spec = RunSpec.of({"model": "tpr", "num_heads": 8, "split": "scale_pos", "steps": 50})
    other = spec.changed({"model": "classical"})
    assert other.model == Component("classical", default_options("model", "classical"))
    assert other.task == spec.task
    assert spec.changed({"task": "random-composition"}).task.options == default_options("task", "random-composition")


def test_prefixes_may_be_left_out_where_that_is_clear():
    short = {"split": "scale_pos", "num_heads": 8, "steps": 5, "seed": 1}
    full = {"task.split": "scale_pos", "model.num_heads": 8, "training.steps": 5, "seed": 1}
    assert RunSpec.of(short) == RunSpec.of(full)
    for key in known_keys("composition", "tpr"):
        assert full_key(key, "composition", "tpr") == full_key(key.partition(".")[2], "composition", "tpr") == key


def test_a_key_that_could_be_two_needs_its_full_name():
    with pytest.raises(SpecError, match=r"^size: could be task.size or model.size; write its full name$"):
        RunSpec.of({**OWN, "size": 3})
    spec = RunSpec.of({**OWN, "task.size": 3, "model.size": 2})
    assert (spec.task.options["size"], spec.model.options["size"]) == (3, 2)
    assert RunSpec.of({"task": TASK, "task.size": 3, "num_heads": 2}) == RunSpec.of(
        {"task": TASK, "size": 3, "num_heads": 2}
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sed": 1}, "sed: no such key for task 'composition' and model 'tpr'; did you mean 'seed'?"),
        ({"zzzz": 1}, "zzzz: no such key for task 'composition' and model 'tpr'$"),
        ({"step": 1}, "step: no such key .*; did you mean 'training.steps'?"),
        ({"spilt": 1}, "spilt: no such key .*; did you mean 'task.split'?"),
        ({"steps.more": 1}, "steps.more: no such key; did you mean 'training.steps'?"),
        ({"training.step": 1}, "training.step: no such key; did you mean 'training.steps'?"),
        ({"training": {"steps": 1}}, "training: no such key"),
        ({"task.spilt": "a"}, "task.spilt: 'composition' has no such option; .*; did you mean 'split'?"),
        ({"task.seed": 1}, "task.seed: 'composition' has no such option"),
        ({"model.heads": 4}, "model.heads: 'tpr' has no such option; expected one of .*; did you mean 'num_heads'?"),
        ({"model.num_roles": 4}, "model.num_roles: 'tpr' has no such option"),
        ({"model": "oracle", "model.best_answer": 1}, "model.best_answer: 'oracle' has no such option"),
        ({"model": "resnet", "num_heads": 4}, "num_heads: no such key for task 'composition' and model 'resnet'"),
        ({"model": "tqr"}, r"model: expected one of \['tpr', .* or a path, got 'tqr'; did you mean 'tpr'?"),
        ({"model": None}, "model: expected a name or a path, got None"),
        ({"task": ["composition"]}, r"task: expected a name or a path, got \['composition'\]"),
        ({"task": "compositio"}, "task: expected one of .*; did you mean 'composition'?"),
        ({"model": "no_such_package:Mine"}, "model: 'no_such_package:Mine': cannot import 'no_such_package'"),
        ({"task": f"{TASK}s"}, "task: .*: expected a class or function 'Liness' .* did you mean 'Lines'?"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
        ({"seed": 2**63}, "seed: expected finite numbers of 64 bits, .* got 9223372036854775808"),
        ({"seed": "x"}, "seed: expected a whole number, got 'x'"),
        ({"seed": True}, "seed: expected a whole number, got True"),
        ({"seed": 1.5}, "seed: expected a whole number, got 1.5"),
        ({"steps": 0}, "training.steps: expected a whole number of at least 1, got 0"),
        ({"steps": None}, "training.steps: expected a whole number, got None"),
        ({"batch_size": 0}, "training.batch_size: expected a whole number of at least 1"),
        ({"train_examples": 0}, "training.train_examples: expected a whole number of at least 1"),
        ({"test_examples": 0}, "training.test_examples: expected a whole number of at least 1"),
        ({"learning_rate": 0}, "training.learning_rate: expected a number above 0.0, got 0"),
        ({"learning_rate": float("nan")}, "training.learning_rate: expected finite numbers"),
        ({"schedule": "linear"}, r"training.schedule: expected one of \['cosine', .*'late-decay'\], got 'linear'"),
        ({"optimiser": "adamw"}, r"training.optimiser: expected one of \['adam', 'sgd'\], got 'adamw'"),
        ({"device": 3}, "training.device: expected a text, got 3"),
        ({"interaction": 3}, "task.interaction: expected a text or keys and values or null, got 3"),
        ({"target_of_tests": "yes"}, "task.target_of_tests: expected true or false or null, got 'yes'"),
        ({"position_range": [0, "x"]}, r"task.position_range\[1\]: expected a number, got \[0, 'x'\]"),
        ({"position_range": 3}, "task.position_range: expected a list, got 3"),
        ({"scale_angles": "x"}, "task.scale_angles: expected a list or null, got 'x'"),
        ({"noise": float("inf")}, "task.noise: expected finite numbers"),
        ({"mixing": "norml"}, r"task.mixing: expected one of \['normal', 'uniform'\], got 'norml'"),
        ({"scored": "some"}, r"task.scored: expected one of \['all', 'factors'\], got 'some'"),
        ({"num_heads": 2.5}, "model.num_heads: expected a whole number, got 2.5"),
        ({"num_heads": "8"}, "model.num_heads: expected a whole number, got '8'"),
        ({"num_heads": True}, "model.num_heads: expected a whole number, got True"),
        ({"num_heads": 2**63}, "model.num_heads: expected finite numbers of 64 bits"),
        ({"start_at_copy": 1}, "model.start_at_copy: expected true or false, got 1"),
        ({"model": "classical", "head_dim": 1.5}, "model.head_dim: expected a whole number or null, got 1.5"),
        ({"interaction": "x", "interaction.law": "a:b"}, "task.interaction.law: expected keys and values .* got 'x'"),
        ({**OWN, "slope": "steep"}, "task.slope: expected a number, got 'steep'"),
        ({**OWN, "mode": "even"}, r"task.mode: expected one of \['plain', 'odd'\], got 'even'"),
        ({**OWN, "kinds": ["a", 3]}, r"task.kinds\[1\]: expected a text, got \['a', 3\]"),
        ({**OWN, "law": 3}, "task.law: expected keys and values or null, got 3"),
        ({**OWN, "bais": True}, "bais: no such key .*; did you mean 'model.bias'?"),
        ({**OWN, "task.seed": 3}, "task.seed: .* has no such option"),
    ],
)
def test_bad_values_are_refused_by_their_key(given, message, as_users_run_it):
    with pytest.raises(SpecError, match=f"^{message.replace('?', '[?]')}"):
        RunSpec.of(given)


@pytest.mark.parametrize("text", ["[]", "{", "3", '{"seed": 1}', '{"task": {"name": "a", "size": 3}}', "[" * 100_000])
def test_json_that_is_no_spec_is_refused(text):
    with pytest.raises(SpecError, match=r"^spec: "):
        RunSpec.from_json(text)


def test_a_spec_with_unknown_fields_is_refused():
    stored = json.loads(RunSpec.of({}).to_json())
    for section in (stored, stored["training"], stored["model"]):
        section["more"] = 1
        with pytest.raises(SpecError, match=r"^spec: .*`more`"):
            RunSpec.from_json(json.dumps(stored))
        del section["more"]
