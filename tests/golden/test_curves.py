"""Every model's first fifty steps are what they were."""

import csv

import pytest

from tpr_attention.models import MODELS

from .write_curves import CURVES, curves


@pytest.mark.parametrize("model", MODELS)
def test_golden_curve(model):
    with CURVES.open() as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == model]
    found = curves(model)
    assert {(row["condition"], int(row["step"])) for row in rows} == set(found)
    for row in rows:
        assert found[row["condition"], int(row["step"])] == pytest.approx(float(row["loss"]), rel=1e-6, abs=1e-20)
