"""What is read from a store, by line of a figure."""

import numpy as np
import pytest

from tests.report import made_up
from tpr_attention.report import results as module
from tpr_attention.report.panels import Series
from tpr_attention.report.results import Results


def save(store, series, values=made_up.losses, **provenance):
    for spec in series.specs:
        made_up.save(store, spec, values, provenance)
    return Results(store, series.specs)


def test_final_values_and_courses(store):
    ours = made_up.series("ours", 3)
    results = save(store, ours)
    expected = np.stack([made_up.losses(spec, "far") for spec in ours.specs])
    np.testing.assert_allclose(results.final(ours, "far"), expected[:, -1])
    np.testing.assert_allclose(results.final(ours, "far", "accuracy"), 1 - expected[:, -1])
    course = results.course(ours, "far")
    assert course.steps.tolist() == list(made_up.STEPS)
    np.testing.assert_allclose(course.values, expected)
    np.testing.assert_allclose(results.course(ours, "far", "accuracy").values, 1 - expected)


def test_metrics_and_groups_are_means_over_seeds(store):
    ours = made_up.series("ours", 3)
    results, end = save(store, ours), 2 * made_up.LEVELS["ours"]
    assert results.by_metric(ours, "near") == pytest.approx({"loss": end, "accuracy": 1 - end})
    assert results.by_group(ours, "near", "kind") == pytest.approx({"large": end, "small": 2 * end})
    assert results.by_group(ours, "near", "kind", "accuracy") == {"large": 0.0, "small": 1.0}
    assert results.by_group(ours, "near", "no such grouping") == {}


def test_runs_that_are_missing_or_diverged(store):
    ours = made_up.series("ours", 3)
    first, second, third = ours.specs
    made_up.save(store, first)
    made_up.save(store, second, provenance={"diverged": {"step": 3, "tensor": "loss"}})
    results = Results(store, ours.specs)
    assert results.stored(ours) == [first, second]
    assert results.diverged(ours) == [second]
    assert not results.complete([ours])
    assert results.complete([Series("ours", (first, second))])
    found = results.final(ours, "near")
    assert (found[0], found[1]) == (pytest.approx(made_up.LEVELS["ours"]), np.inf)
    assert np.isnan(found[2])
    assert len(results.course(ours, "near").values) == 1
    assert results.by_metric(ours, "near")["loss"] == pytest.approx(made_up.LEVELS["ours"])
    alone = Series("ours", (second, third))
    assert results.course(alone, "near") is None
    assert results.by_metric(alone, "near") == results.by_group(alone, "near", "kind") == {}
    assert [origin["seconds"] for origin in results.provenance()] == [1.0, 1.0]


def test_a_last_value_that_is_not_finite_counts_as_diverged(store):
    ours = made_up.series("ours", 1)
    results = save(store, ours, lambda spec, condition: np.array([1.0, np.nan]))
    assert results.final(ours, "near").tolist() == [np.inf]


def test_an_unknown_metric_or_condition_is_an_error(store):
    ours = made_up.series("ours", 1)
    results = save(store, ours)
    for names in (("near", "speed"), ("nowhere", "loss")):
        with pytest.raises(KeyError, match=rf"{names[1]}.*{names[0]}"):
            results.final(ours, *names)


def test_runs_are_read_in_batches(store, monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 2)
    ours = made_up.series("ours", 5)
    save(store, ours)
    counts, read = [], module.curves_of
    monkeypatch.setattr(module, "curves_of", lambda of, digests: counts.append(len(digests)) or read(of, digests))
    results = Results(store, ours.specs)
    assert counts == [2, 2, 1]
    assert np.isfinite(results.final(ours, "near")).all()
    assert len(results.course(ours, "near").values) == 5


def test_the_table_of_final_values(store):
    ours = made_up.series("ours", 2)
    table = save(store, ours).final_values()
    assert len(table) == 2 * 3 * 2 * 3  # runs, conditions, metrics, and all examples besides two groups
    assert set(table["step"]) == {made_up.STEPS[-1]}
    assert {"run", "task", "model", "seed", "condition", "metric", "group", "value"} <= set(table.columns)
    assert len(Results(store, []).final_values()) == 0
