"""One description, many specs."""

import pytest

from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.sweep import sweep


def test_lists_are_multiplied_in_order():
    specs = sweep({"model": ["tpr", "resnet"], "seed": [1, 0], "steps": 5})
    assert [(spec.model, spec.seed) for spec in specs] == [("tpr", 1), ("tpr", 0), ("resnet", 1), ("resnet", 0)]
    assert {spec.steps for spec in specs} == {5}


def test_nothing_said_is_the_default():
    assert sweep({}) == [RunSpec()]


def test_options_may_be_nested_or_dotted():
    nested = sweep({"options": {"num_heads": [2, 4], "learn_ids": False}})
    dotted = sweep({"options.num_heads": [2, 4], "options.learn_ids": False})
    assert nested == dotted
    assert [dict(spec.options) for spec in nested] == [{"num_heads": n, "learn_ids": False} for n in (2, 4)]


def test_keys_that_are_lists_themselves():
    assert sweep({"position_range": [0, 1]})[0].position_range == (0, 1)
    ranges = sweep({"position_range": [[0, 1], [-1, 1]]})
    assert [spec.position_range for spec in ranges] == [(0, 1), (-1, 1)]


def test_changes_overrule_the_file_everywhere():
    runs = [{"model": "tpr", "steps": 20, "options": {"num_heads": 2}}, {"model": "resnet"}]
    specs = sweep({"steps": 10, "runs": runs}, {"steps": 30, "options.num_heads": 8})
    assert [(spec.steps, spec.options["num_heads"]) for spec in specs] == [(30, 8), (30, 8)]


def test_equal_runs_are_one():
    assert len(sweep({"seed": [0, 0, 1], "runs": [{}, {"model": "tpr"}]})) == 2


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"runs": []}, "runs: expected at least one"),
        ({"runs": {"model": "tpr"}}, "runs: expected a list"),
        ({"runs": ["tpr"]}, "runs: expected a list"),
        ({"seed": []}, "seed: expected at least one value"),
        ({"runs": [{"sed": 1}]}, "sed: no such key; did you mean 'seed'"),
        ({"options": [1]}, "options: expected keys and values"),
        ({"seed": [0, "x"]}, "seed: expected a whole number, got 'x'"),
    ],
)
def test_what_cannot_be_is_refused(description, message):
    with pytest.raises(SpecError, match=message):
        sweep(description)
