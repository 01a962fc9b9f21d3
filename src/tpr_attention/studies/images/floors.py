"""Answers that need no learning, on the union of the splits: what contestants must be better than."""

from collections.abc import Iterator, Mapping
from functools import cache

from tpr_attention.imports import load
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Kind, Table
from tpr_attention.studies.images.contestants import MAIN
from tpr_attention.studies.images.values import ON_UNION, conditions_of, finished_of
from tpr_attention.studies.study import Setup
from tpr_attention.training.spec import RunSpec

__all__ = ["floors_table", "union_floors"]

TASK = RunSpec.of({key: value for key, value in MAIN["union"].keys.items() if key.partition(".")[0] == "task"})
"""The task of all contestants on the union."""
EXAMPLES = 128
"""Of each test: `COUNT` of the task's floors, which needs torch."""
ANSWERS = {
    "black": "black image",
    "mean": "mean of training targets",
    "copy": "copy of the reference",
    "nearest": "training image nearest to the target",
    "oracle": "oracle: inputs read, factor exchanged, drawn",
}
METRICS: dict[str, tuple[str, Kind]] = {
    "exact": ("exactly right", "share"),
    "iou": ("IoU", "exact"),
    "wrong_pixels": ("wrong pixels", "number"),
}

Floors = Mapping[str, Mapping[str, Mapping[str, float]]]


@cache
def union_floors() -> Floors:
    """By metric, test and answer. They follow from the task and take seconds, so that a process finds them once."""
    task = load("tpr_attention.training.prepare:make_task")(TASK.task, TASK.seed)  # with torch
    return {metric: task.floors(metric) for metric in METRICS}


def floors_table(results: Results, setup: Setup) -> Iterator[Table]:
    """What answers without learning reach, if there is a contestant to compare with them."""
    if not finished_of(ON_UNION, results, setup):
        return
    known, *held_out = conditions_of("union")
    rows = []
    for answer, words in ANSWERS.items():
        cells: list[object] = [words]
        for metric, found in union_floors().items():
            worst = max if metric == "wrong_pixels" else min
            both = found[known][answer], worst(found[test][answer] for test in held_out)
            cells += [round(value, 4) for value in both] if metric == "iou" else both
        rows.append(cells)
    columns = [Column("answer that needs no learning")]
    for title, kind in METRICS.values():
        columns += [Column(title, kind), Column(f"{title}, worst test", kind)]
    caption = (
        "Answers that need no learning, on the union of the splits: in distribution, and in the worst of nine tests "
        f"with held-out combinations. Means over {EXAMPLES} examples of each test. The nearest training image is "
        "chosen by looking at the target: it is the best that repeating can do."
    )
    yield Table("images-floors", caption, columns, rows)
