"""Roles that an action does not touch are copied bit for bit by trained models, in all tests."""

import pytest

from tpr_attention.tasks.composition.task import dsprites_composition
from tpr_attention.training.points import Point
from tpr_attention.training.spec import RunSpec
from tpr_attention.training.train import train

TOUCHED = {
    "scale_pos": {"scale": {"scale", "scale_pos"}, "position": {"position", "scale_pos"}},
    "shape_col": {"shape": {"shape", "shape_col"}, "colour": {"colour", "shape_col"}},
}


@pytest.mark.parametrize("model", ["tpr", "tpr-second", "tpr-stack", "tpr-laws"])
@pytest.mark.parametrize("interaction", TOUCHED)
def test_untouched_roles_have_no_error_at_all(model, interaction, as_users_run_it):
    values = {"model": model, "interaction": interaction, "steps": 60, "train_examples": 1000, "test_examples": 200}
    roles = dsprites_composition(interaction=interaction).encoding.role_names
    events = train([RunSpec.of(values)], compiled=False)
    points = [point for point in events if isinstance(point, Point) and point.group]
    assert {point.condition for point in points} >= {"ood_reference", "ood_transform", "ood_composition"}
    for point in points:
        action = point.group.removeprefix("action=")
        lost = {role for role, error in zip(roles, point.values[1:], strict=True) if error != 0}
        assert lost <= TOUCHED[interaction].get(action, {action}), (point.condition, action)
        assert lost  # and something was learned, but not everything
