"""Lines can be told apart, also without colour."""

import matplotlib
import numpy as np

from tests.report import made_up
from tpr_attention.report.style import SPARE, looks


def luminance(colour):
    channels = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_spare_looks_are_distinct_without_colour_and_visible_on_white():
    assert len({look.dashes for look in SPARE}) == len({look.marker for look in SPARE}) == len(SPARE)
    assert min(1.05 / (luminance(look.colour) + 0.05) for look in SPARE) >= 3


def test_a_series_keeps_its_look():
    mine = made_up.series("ours", 1)
    found = looks([made_up.series("new", 1), mine, made_up.series("newer", 1)])
    assert found == {"new": SPARE[0], "ours": mine.look, "newer": SPARE[1]}
    assert len(looks(made_up.series(f"line {place}", 1) for place in range(20))) == 20
