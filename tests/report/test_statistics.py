"""Numbers whose value is known."""

import numpy as np
import pytest

from tpr_attention.report.panels import Band
from tpr_attention.report.statistics import band, difference, nearest, ratio, standard_error

SEEDS = np.array([1.0, 2.0, 3.0, 4.0, 5.0])


def test_bands_by_hand():
    losses = np.stack([SEEDS, 2 * SEEDS], 1)
    spread = np.array([2.5**0.5, 2 * 2.5**0.5])
    for kind, width in (
        (Band(2, "SD"), 2 * spread),
        (Band(2, "SE"), 2 * spread / 5**0.5),
        (Band(1, "SE"), spread / 5**0.5),
    ):
        mean, low, high = band(losses, kind)
        np.testing.assert_allclose(mean, [3, 6])
        np.testing.assert_allclose(mean - low, width)
        np.testing.assert_allclose(high - mean, width)


def test_one_seed_has_no_band_and_no_interval():
    assert band(SEEDS[:1, None], Band(2, "SD")) is None
    assert standard_error(SEEDS[:1]) is None
    assert ratio(SEEDS[:1], 2 * SEEDS[:1]) == pytest.approx((2.0, None, None))


def test_equal_seeds_have_a_band_of_no_width():
    mean, low, high = band(np.ones((3, 2)), Band(2, "SD"))
    assert (mean == low).all()
    assert (mean == high).all()
    assert ratio(np.ones(3), np.ones(3)) == (1, 1, 1)


def test_pairs_cancel_what_seeds_share():
    found = ratio(SEEDS, 3 * SEEDS)
    assert found == pytest.approx((3, 3, 3))
    assert difference(SEEDS, SEEDS + 0.5) == pytest.approx((0.5, 0.5, 0.5))


def test_interval_is_that_of_all_resamples():
    """Five seeds have 3,125 resamples: drawn ones must have nearly their percentiles."""
    every = np.array(np.meshgrid(*[SEEDS**2] * 5)).reshape(5, -1).mean(0)
    found = difference(np.zeros(5), SEEDS**2)
    assert found.value == 11
    np.testing.assert_allclose([found.low, found.high], np.percentile(every, [2.5, 97.5]), rtol=0.05)
    assert found == difference(np.zeros(5), SEEDS**2)


def test_zero_losses_count_as_rounding():
    assert ratio(np.zeros(2), np.full(2, 1e-4)).value == pytest.approx(1e6)
    assert ratio(np.zeros(2), np.zeros(2)).value == 1


def test_the_nearest_is_not_the_one_with_the_lower_mean():
    """One bad seed decides a mean, but not which baseline is nearer."""
    assert nearest({"steady": np.full(5, 1e-3), "lower": np.array([1e-8, 1e-8, 1e-8, 1e-8, 1.0])}) == "lower"
