"""One description, many specs."""

import pytest

from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.sweep import sweep

from .components import MODEL, TASK

LAWS = "tpr_attention.tasks.composition.laws"


def test_lists_are_multiplied_in_order():
    specs = sweep({"model": ["tpr", "resnet"], "seed": [1, 0], "steps": 5})
    assert [(spec.model.name, spec.seed) for spec in specs] == [("tpr", 1), ("tpr", 0), ("resnet", 1), ("resnet", 0)]
    assert {spec.training.steps for spec in specs} == {5}


def test_nothing_said_is_the_default():
    assert sweep({}) == [RunSpec.of({})]


def test_sections_may_be_mappings_or_dotted():
    nested = sweep({"model": {"name": "tpr", "num_heads": [2, 4], "learn_ids": False}, "training": {"steps": 5}})
    dotted = sweep({"model": "tpr", "model.num_heads": [2, 4], "model.learn_ids": False, "training.steps": 5})
    short = sweep({"num_heads": [2, 4], "learn_ids": False, "steps": 5})
    assert nested == dotted == short
    assert [spec.model.options["num_heads"] for spec in nested] == [2, 4]
    assert not any(spec.model.options["learn_ids"] for spec in nested)


def test_a_list_for_an_option_that_is_a_list_is_one_value():
    (spec,) = sweep({"position_range": [0, 1], "scale_angles": [1, 2, 3, 4, 5, 6]})
    assert spec.task.options["position_range"] == [0.0, 1.0]
    assert spec.task.options["scale_angles"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    (own,) = sweep({"task": TASK, "model": MODEL, "kinds": ["x", "y"]})
    assert own.task.options["kinds"] == ["x", "y"]


def test_a_list_of_lists_is_several_values():
    ranges = sweep({"position_range": [[0, 1], [-1, 1]]})
    assert [spec.task.options["position_range"] for spec in ranges] == [[0, 1], [-1, 1]]


def test_a_list_inside_an_option_is_one_value():
    law = {"law": f"{LAWS}:direction_of_sum", "factors": ["shape", "colour"]}
    for description in (
        {"interaction": law},
        {"interaction.law": law["law"], "interaction.factors": law["factors"]},
        {"task": {"name": "composition", "interaction": law}},
    ):
        (spec,) = sweep(description)
        assert spec.task.options["interaction"] == law


def test_mappings_may_be_among_several_values():
    law = {"law": f"{LAWS}:direction_of_sum", "factors": ["shape", "colour"]}
    specs = sweep({"interaction": [None, "shape_col", law], "split": ["square_red", {"shape": "heart"}]})
    assert len(specs) == 6
    assert [spec.task.options["interaction"] for spec in specs[::2]] == [None, "shape_col", law]
    assert specs[1].task.options["split"] == {"shape": "heart"}


def test_changes_overrule_the_file_everywhere():
    runs = [{"model": "tpr", "steps": 20, "model.num_heads": 2}, {"model": "classical"}]
    specs = sweep({"steps": 10, "runs": runs}, {"training.steps": 30, "num_heads": 8})
    assert [(spec.training.steps, spec.model.options["num_heads"]) for spec in specs] == [(30, 8), (30, 8)]


def test_changes_may_choose_the_model_and_overrule_an_entry():
    description = {"model": "classical", "interaction": {"law": "a:b", "factors": ["shape", "colour"]}}
    (spec,) = sweep(description, {"model": "resnet", "interaction.law": "c:d"})
    assert spec.model.name == "resnet"
    assert spec.task.options["interaction"] == {"law": "c:d", "factors": ["shape", "colour"]}
    assert description["interaction"]["law"] == "a:b"


def test_runs_may_have_other_tasks_with_other_options():
    runs = [{"task": "random-composition", "factors": [3, 4]}, {"split": "scale_pos"}]
    specs = sweep({"noise": 0.1, "runs": runs})
    assert [spec.task.name for spec in specs] == ["random-composition", "random-composition", "composition"]
    assert {spec.task.options["noise"] for spec in specs} == {0.1}


def test_equal_runs_are_one():
    assert len(sweep({"seed": [0, 0, 1], "runs": [{}, {"model": "tpr"}, {"num_heads": 4}]})) == 2


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"runs": []}, "runs: expected at least one"),
        ({"runs": {"model": "tpr"}}, "runs: expected a list"),
        ({"runs": ["tpr"]}, "runs: expected a list"),
        ({"runs": None}, "runs: expected a list"),
        ({"seed": []}, "seed: expected at least one value"),
        ({"model": []}, "model: expected at least one value"),
        ({"model": [None]}, "model: expected a name or a path, got None"),
        ({"model": {"name": 3}}, "model: expected a name or a path, got 3"),
        ({"runs": [{"sed": 1}]}, "sed: no such key .*; did you mean 'seed'"),
        ({"training": 3}, "training: no such key"),
        ({"seed": [0, "x"]}, "seed: expected a whole number, got 'x'"),
        ({"model": ["tpr", "resnet"], "num_heads": 3}, "num_heads: no such key for .* model 'resnet'"),
        ({"task": TASK, "model": MODEL, "size": [1, 2]}, "size: could be task.size or model.size"),
        ({"position_range": [[0, 1], 3]}, "task.position_range: expected a list, got 3"),
    ],
)
def test_what_cannot_be_is_refused(description, message):
    with pytest.raises(SpecError, match=f"^{message}"):
        sweep(description)
