"""What is stored of the image study: the runs of each contestant, and their values before they are finished."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from tpr_attention.report.panels import Series
from tpr_attention.report.results import Results
from tpr_attention.studies.images.contestants import BLOCKS, MAIN, OTHERS, QUICK, SPLITS, Contestant, series_of
from tpr_attention.studies.study import Setup

__all__ = [
    "HELD_OUT",
    "ON_UNION",
    "after_training",
    "by_fillers",
    "conditions_of",
    "finished",
    "finished_of",
    "late_in_training",
    "stored_of",
]

TESTS = {
    "ood_reference": "reference held out",
    "ood_transform": "transform held out",
    "ood_composition": "answer held out",
}
HELD_OUT = "square_pos.ood_composition"
"""The test that stands for all others where one is shown: squares in the right half as answers."""
LATE = 0.9
"""The share of the steps after which little should change."""
ON_UNION = {"union": MAIN["union"], "quick": QUICK["quick"], **OTHERS}
"""All contestants on the union of the splits, the main model first."""


def conditions_of(split: str) -> dict[str, str]:
    """The tests of a split, with their names."""
    known = {"in_distribution": "in distribution"}
    if split != "union":
        return known | TESTS
    return known | {f"{part}.{test}": f"{part}, {words}" for part in SPLITS[:3] for test, words in TESTS.items()}


def stored_of(block: Mapping[str, Contestant], results: Results, setup: Setup) -> dict[str, Series]:
    """The contestants of a part with the runs that are stored."""
    found = {name: (one, results.stored(one)) for name, one in series_of(block, setup).items()}
    return {name: replace(one, specs=tuple(specs)) for name, (one, specs) in found.items() if specs}


def finished_of(block: Mapping[str, Contestant], results: Results, setup: Setup) -> dict[str, Series]:
    """The contestants of a part with the runs that are stored and did not diverge."""
    found = {}
    for name, series in stored_of(block, results, setup).items():
        diverged = results.diverged(series)
        specs = tuple(spec for spec in series.specs if spec not in diverged)
        if specs:
            found[name] = replace(series, specs=specs)
    return found


def finished(block: str, results: Results, setup: Setup) -> dict[str, Series]:
    """The contestants of a part by its name, with the runs that are stored and did not diverge."""
    return finished_of(BLOCKS[block], results, setup)


def after_training(results: Results, series: Series, condition: str, metric: str) -> Float[np.ndarray, "n"]:
    """The value of each run at the end of training, before it is finished."""
    return _after(1.0, results, series, condition, metric)


def late_in_training(results: Results, series: Series, condition: str, metric: str) -> Float[np.ndarray, "n"]:
    """The value of each run when its last tenth of steps begins."""
    return _after(LATE, results, series, condition, metric)


def _after(share: float, results: Results, series: Series, condition: str, metric: str) -> Float[np.ndarray, "n"]:
    """The value of each run at the first point after a share of its steps."""
    course = results.course(series, condition, metric)
    if course is None:
        return np.array([])
    found: Float[np.ndarray, n] = course.values[:, course.steps >= share * series.specs[0].training.steps][:, 0]
    return found


def by_fillers(results: Results, series: Series, condition: str, metric: str) -> Float[np.ndarray, "n"]:
    """The value of each run that codes have taught, before codes are used: at the last step but one."""
    course = results.course(series, condition, metric)
    if course is None or len(course.steps) < 2:
        return np.array([])
    found: Float[np.ndarray, n] = course.values[:, -2]
    return found
