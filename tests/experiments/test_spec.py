"""A spec is a value with one way to be written."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpr_attention.experiments.spec import ADDED, RunSpec, SpecError


@given(
    st.fixed_dictionaries(
        {
            "model": st.text(),
            "options": st.dictionaries(
                st.text(), st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(-1e9, 1e9)
            ),
            "seed": st.integers(0, 2**63 - 1),
            "interaction": st.none() | st.text(),
            "scale_angles": st.none() | st.tuples(*[st.floats(-10, 10)] * 6),
            "target_of_tests": st.none() | st.booleans(),
            "learning_rate": st.floats(1e-6, 1.0),
        }
    )
)
def test_json_and_back(values):
    spec = RunSpec(**values)
    again = RunSpec.from_json(spec.to_json())
    assert again == spec
    assert hash(again) == hash(spec)
    assert again.digest == spec.digest
    assert set(json.loads(spec.to_json())) == {key.name for key in fields(RunSpec)} - set(ADDED)


def test_every_field_is_in_the_digest():
    other = {
        "model": "resnet",
        "options": {"a": 1},
        "start_at_copy": False,
        "split": "scale_pos",
        "interaction": "shape_col",
        "mixing": "uniform",
        "position_range": (0.0, 1.0),
        "scale_angles": (0.0,),
        "azimuth": 0.0,
        "interaction_action": True,
        "target_of_tests": True,
        "require_change": True,
        "balance_actions": False,
        "seed": 1,
        "steps": 1,
        "batch": 5,
        "train_pairs": 999,
        "eval_pairs": 1,
        "learning_rate": 1.0,
        "loss_roles": "factors",
        "factors": 5,
        "filler_dim": 3,
        "noise": 0.1,
    }
    digests = {replace(RunSpec(), **{key.name: other[key.name]}).digest for key in fields(RunSpec)}
    assert len(digests | {RunSpec().digest}) == len(fields(RunSpec)) + 1


def test_a_digest_is_for_good():
    """Stored runs are found by it. A new field with a default changes it: then the store's schema changes too."""
    assert RunSpec().digest == "da82e3491f02"


def test_the_order_of_options_and_whole_numbers_for_numbers_do_not_matter():
    assert RunSpec(options={"b": 1, "a": 2}).digest == RunSpec(options={"a": 2, "b": 1}).digest
    assert RunSpec.of({"learning_rate": 1, "position_range": [0, 1]}) == RunSpec(
        learning_rate=1.0, position_range=(0.0, 1.0)
    )


def test_a_spec_does_not_change():
    with pytest.raises(FrozenInstanceError):
        RunSpec().seed = 3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sed": 1}, "sed: no such key; did you mean 'seed'?"),
        ({"zzzz": 1}, "zzzz: no such key$"),
        ({"seed": -1}, "seed: expected a whole number from 0"),
        ({"seed": 2**63}, "seed: expected a whole number from 0"),
        ({"seed": "x"}, "seed: expected a whole number, got 'x'"),
        ({"seed": True}, "seed: expected a whole number, got True"),
        ({"seed": 1.5}, "seed: expected a whole number, got 1.5"),
        ({"model": None}, "model: expected a text, got None"),
        ({"interaction": 3}, "interaction: expected a text, got 3"),
        ({"start_at_copy": 1}, "start_at_copy: expected true or false, got 1"),
        ({"target_of_tests": "yes"}, "target_of_tests: expected true or false"),
        ({"steps": 0}, "steps: expected at least 1, got 0"),
        ({"batch": 0}, "batch: expected at least 1"),
        ({"eval_pairs": 0}, "eval_pairs: expected at least 1"),
        ({"train_pairs": 10, "batch": 20}, "train_pairs: expected at least a batch of 20"),
        ({"learning_rate": 0}, "learning_rate: expected a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate: expected a finite number"),
        ({"position_range": [1]}, "position_range: expected a list of 2 numbers"),
        ({"position_range": [0, "x"]}, r"position_range\[1\]: expected a finite number, got 'x'"),
        ({"scale_angles": "x"}, "scale_angles: expected a list of numbers"),
        ({"options": 3}, "options: expected keys and values"),
        ({"options": {"a": [1]}}, "options.a: expected a finite number, a text"),
        ({"options": {"a": float("inf")}}, "options.a: expected a finite number"),
        ({"options": {"a": 2**63}}, "options.a: expected a whole number of at most 64 bits, got 9223372036854775808"),
        ({"loss_roles": "some"}, "loss_roles: expected 'all' or 'factors'"),
    ],
)
def test_bad_values_are_refused_by_their_key(values, message, as_users_run_it):
    with pytest.raises(SpecError, match=message):
        RunSpec.of(values)


def test_json_that_is_no_object_is_refused():
    with pytest.raises(SpecError, match="spec: expected an object with keys, got list"):
        RunSpec.from_json("[]")


def test_a_spec_needs_no_torch():
    code = "import sys, tpr_attention.experiments.spec; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_fields_that_came_later_leave_the_names_of_runs_alone():
    assert RunSpec().digest == "da82e3491f02"
    for name, value in {"factors": 5, "filler_dim": 3, "noise": 0.1}.items():
        spec = replace(RunSpec(), **{name: value})
        assert json.loads(spec.to_json())[name] == value
        assert RunSpec.from_json(spec.to_json()) == spec
        with pytest.raises(SpecError, match=f"{name}: expected at least"):
            RunSpec.of({name: -1})
