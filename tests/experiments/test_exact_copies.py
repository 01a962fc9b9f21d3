"""Roles that an action does not touch are copied bit for bit by trained models, in all tests."""

import pytest

from tpr_attention.data import dsprites_composition
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.train import train

TOUCHED = {
    "scale_pos": {"scale": {"scale", "scale_pos"}, "position": {"position", "scale_pos"}},
    "shape_col": {"shape": {"shape", "shape_col"}, "colour": {"colour", "shape_col"}},
}


@pytest.mark.parametrize("model", ["tpr", "tpr-second", "tpr-stack"])
@pytest.mark.parametrize("interaction", TOUCHED)
def test_untouched_roles_have_no_error_at_all(model, interaction):
    spec = RunSpec(model=model, interaction=interaction, steps=60, train_pairs=1000, eval_pairs=200)
    roles = dsprites_composition(spec.split, interaction).encoding.role_names
    points = [point for point in train([spec], compiled=False) if isinstance(point, Point) and point.action]
    assert {point.condition for point in points} >= {"ood_reference", "ood_transform", "ood_composition"}
    for point in points:
        lost = {role for role, loss in zip(roles, point.losses, strict=True) if loss != 0}
        assert lost <= TOUCHED[interaction].get(point.action, {point.action}), (point.condition, point.action)
        assert lost  # and something was learned, but not everything
