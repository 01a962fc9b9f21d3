"""Tables of the image study."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
from jaxtyping import Float

from tpr_attention.report.panels import Series
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Kind, Table
from tpr_attention.studies.images.contestants import BLOCKS
from tpr_attention.studies.images.values import (
    HELD_OUT,
    ON_UNION,
    after_training,
    by_fillers,
    conditions_of,
    finished,
    finished_of,
    late_in_training,
)
from tpr_attention.studies.kinds import cost, linked, training_seconds
from tpr_attention.studies.study import Setup

__all__ = ["action_table", "factor_table", "main_table", "others_table", "small_table", "target_table", "worst_table"]

EXPLAINED = (
    "Exactly right: after rounding, all 12,288 numbers of an image equal those of the target. Factors right: the "
    "nearest exact frame has all factors of the target. IoU compares masks, which are where anything is drawn, and "
    "ignores colour. Wrong pixels, IoU and loss are means over seeds."
)
BY_FILLERS = (
    "By fillers: codes have taught the encoder, the layer and the decoder, and images are looked at twice, but answers "
    "are not rounded to codes."
)
NOT_ALL = "A row with fewer seeds than planned leaves out runs that diverged or are not stored."
NAMED_BY = {"published": "split", "decoders": "decoder"}
"""Parts whose contestants have the name that they have in the part, and what it is; others have their words."""
TARGETS = {"known": "known", "held_out": "held out"}
MEASURED: dict[str, tuple[str, Kind]] = {
    "nll": ("NLL", "number"),
    "sse": ("SSE", "number"),
    "iou": ("IoU", "exact"),
    "exact": ("exactly right", "share"),
    "factors": ("factors right", "share"),
    "factors_modulo_symmetry": ("factors right modulo symmetry", "share"),
}
"""Metrics of smaller tables, with the title and the kind of their columns."""
FACTORS = {
    "shape": "shape",
    "scale": "scale",
    "orientation": "orientation",
    "position_x": "place across",
    "position_y": "place down",
    "colour": "colour",
}
"""Metrics that say whether a factor is right, with the titles of their columns."""
SUMS = ("nll", "sse", "iou", "exact")
"""Those of tables with sums over an image."""


def main_table(results: Results, setup: Setup) -> Iterator[Table]:
    """The main model on each split and test."""
    rows = []
    for split, series in finished("main", results, setup).items():
        for condition, words in conditions_of(split).items():
            exact, factors, wrong = (
                results.final(series, condition, metric) for metric in ("exact", "factors", "wrong_pixels")
            )
            trained, taught = (found(results, series, condition, "iou") for found in (after_training, by_fillers))
            shares = float(exact.min()), float(factors.min())
            mean = linked(float(exact.mean()), series.specs[0])
            iou = _rounded(trained.mean()), _rounded(taught.mean()), _rounded(taught.min())
            rows.append([split, words, mean, *shares, float(wrong.mean()), *iou, len(series.specs)])
    columns = [Column("held out"), Column("test"), Column("exactly right", "share"), Column("worst seed", "share")]
    columns += [Column("factors right, worst seed", "share"), Column("wrong pixels", "number")]
    columns += [Column("IoU after training", "exact"), Column("IoU by fillers", "exact")]
    columns += [Column("worst seed, by fillers", "exact"), Column("seeds", "count")]
    if rows:
        yield Table("images-main", f"The main model. {EXPLAINED} {BY_FILLERS} {NOT_ALL}", columns, rows)


def target_table(results: Results, setup: Setup) -> Iterator[Table]:
    """The main model where an input is held out, by whether the answer is held out too."""
    rows = []
    for split, series in finished("main", results, setup).items():
        for condition, words in conditions_of(split).items():
            exact = _by_seed(results, series, condition, "target", "exact")
            factors, wrong = (
                results.by_group(series, condition, "target", metric) for metric in ("factors", "wrong_pixels")
            )
            for target, values in exact.items() if len(exact) > 1 else ():  # elsewhere all answers are alike
                shares = linked(fmean(values), series.specs[0]), min(values), factors[target]
                rows.append([split, words, TARGETS[target], *shares, wrong[target], len(values)])
    columns = [Column("held out"), Column("test"), Column("answer"), Column("exactly right", "share")]
    columns += [Column("worst seed", "share"), Column("factors right", "share"), Column("wrong pixels", "number")]
    if rows:
        caption = (
            "The main model where an input is held out, by whether the answer is. One factor of the other image can "
            f"lead out of what is held out. {EXPLAINED} {NOT_ALL}"
        )
        yield Table("images-targets", caption, [*columns, Column("seeds", "count")], rows)


def action_table(results: Results, setup: Setup) -> Iterator[Table]:
    """How often the main model is exactly right under each action."""
    found = {
        (split, words): (series, results.by_group(series, condition, "action", "exact"))
        for split, series in finished("main", results, setup).items()
        for condition, words in conditions_of(split).items()
    }
    actions = list(dict.fromkeys(action for _, shares in found.values() for action in shares))
    rows = [
        [split, words, *map(shares.get, actions), len(series.specs)]
        for (split, words), (series, shares) in found.items()
        if shares
    ]
    columns = [Column("held out"), Column("test"), *(Column(action, "share") for action in actions)]
    if rows:
        caption = "The main model: exactly right by action. Means over seeds; a dash where a test lacks an action."
        yield Table("images-actions", caption, [*columns, Column("seeds", "count")], rows)


def factor_table(results: Results, setup: Setup) -> Iterator[Table]:
    """How often the main model has each factor right, and its squared error."""
    rows = []
    for split, series in finished("main", results, setup).items():
        means = {test: results.by_metric(series, test) for test in conditions_of(split)}
        known = means.pop("in_distribution")
        worst = {metric: min(of[metric] for of in means.values()) for metric in FACTORS}
        worst["mse"] = max(of["mse"] for of in means.values())
        for words, found in (("in distribution", known), ("worst test", worst)):
            factors = [linked(found[metric], series.specs[0]) for metric in FACTORS]
            rows.append([split, words, *factors, found["mse"], len(series.specs)])
    columns = [Column("held out"), Column("test"), *(Column(title, "share") for title in FACTORS.values())]
    if rows:
        caption = (
            "The main model: each factor right, in distribution and in the worst test, which may be another one for "
            "each column. A factor is right where the nearest exact frame has the target's. The squared error is that "
            f"of a number, in the mean over an image. Means over seeds. {NOT_ALL}"
        )
        columns += [Column("mean squared error", "number"), Column("seeds", "count")]
        yield Table("images-factors", caption, columns, rows)


def others_table(results: Results, setup: Setup) -> Iterator[Table]:
    """All contestants on the union, without clean-up."""
    held_out = [condition for condition in conditions_of("union") if condition != "in_distribution"]
    rows = []
    for name, series in finished_of(ON_UNION, results, setup).items():
        exact, iou, factors = (
            {
                condition: float(after_training(results, series, condition, metric).mean())
                for condition in conditions_of("union")
            }
            for metric in ("exact", "iou", "factors")
        )
        words = "unbinding, TPR-Attention, template" if name == "union" else series.label
        late, last = (found(results, series, "in_distribution", "loss") for found in (late_in_training, after_training))
        rows.append(
            [
                linked(words, series.specs[0]),
                float(late.mean()),
                float(last.mean()),
                _rounded(iou["in_distribution"]),
                _rounded(min(iou[condition] for condition in held_out)),
                exact["in_distribution"],
                min(exact[condition] for condition in held_out),
                factors["in_distribution"],
                min(factors[condition] for condition in held_out),
                *cost(results, series.specs),
                training_seconds(results, series.specs),
                len(series.specs),
            ]
        )
    columns = [
        Column("contestant"),
        Column("loss before the last tenth", "number"),
        Column("loss", "number"),
        Column("IoU", "exact"),
        Column("IoU, worst test", "exact"),
        Column("exactly right", "share"),
        Column("exactly right, worst test", "share"),
    ]
    columns += [Column("factors right", "share"), Column("factors right, worst test", "share")]
    columns += [Column("parameters", "count"), Column("seconds", "number"), Column("CPU seconds of steps", "number")]
    if rows:
        caption = (
            "All contestants on the union of the splits, none with a clean-up, after the same steps but for some that "
            "are trained longer: in distribution, and in the worst of nine tests with held-out combinations. "
            f"{EXPLAINED} The learning rate falls to zero, and so all losses are flat at the end. The loss before the "
            "last tenth of the steps is measured on fewer examples. Rows with more steps show the effect of longer "
            "training. Only TPR-Attention has a penalty on what an update makes of other roles. Seconds of the first "
            f"row include the clean-up. {NOT_ALL}"
        )
        yield Table("images-others", caption, [*columns, Column("seeds", "count")], rows)


def small_table(name: str, caption: str, block: str, results: Results, setup: Setup) -> Iterator[Table]:
    """Loss and error in distribution and out of it, after training and, for models that finish, at the end."""
    finishes = any(one.keys.get("model.clean_up") for one in BLOCKS[block].values())
    tests = {"in_distribution": "in distribution", "ood": "held out", HELD_OUT: "held out"}
    rows = []
    for key, series in finished(block, results, setup).items():
        there = results.store.names(series.specs[0].digest)["conditions"]
        for test in (test for test in tests if test in there):
            cells: list[object] = []
            for metric in SUMS:
                cells.append(_mean(metric, after_training(results, series, test, metric)))
                if finishes:
                    cells.append(_mean(metric, results.final(series, test, metric)))
            first = linked(key if block in NAMED_BY else series.label, series.specs[0])
            rows.append([first, tests[test], *cells, len(series.specs)])
    columns = [Column(NAMED_BY.get(block, "contestant")), Column("test")]
    for title, kind in map(MEASURED.__getitem__, SUMS):
        columns += [Column(title, kind), Column(f"{title}, finished", kind)][: 1 + finishes]
    if rows:
        yield Table(name, f"{caption} {NOT_ALL}", [*columns, Column("seeds", "count")], rows)


def worst_table(
    name: str, caption: str, block: str, metrics: Sequence[str], results: Results, setup: Setup
) -> Iterator[Table]:
    """Metrics that should be large, of models on the union of the splits: in distribution, and in the worst test."""
    known, *held_out = conditions_of("union")
    rows = []
    for series in finished(block, results, setup).values():
        cells: list[object] = [linked(series.label, series.specs[0])]
        for metric in metrics:
            worst = min(_mean(metric, results.final(series, test, metric)) for test in held_out)
            cells += [_mean(metric, results.final(series, known, metric)), worst]
        rows.append([*cells, len(series.specs)])
    columns = [Column("model")]
    for title, kind in map(MEASURED.__getitem__, metrics):
        columns += [Column(title, kind), Column(f"{title}, worst test", kind)]
    if rows:
        yield Table(name, f"{caption} {EXPLAINED} {NOT_ALL}", [*columns, Column("seeds", "count")], rows)


def _mean(metric: str, values: Float[np.ndarray, "n"]) -> float:
    """The mean over seeds, with as many digits as are shown of an IoU."""
    return _rounded(values.mean()) if metric == "iou" else float(values.mean())


def _rounded(iou: float) -> float:
    """An intersection over union with four digits behind the point."""
    return round(float(iou), 4)


def _by_seed(results: Results, series: Series, condition: str, grouping: str, metric: str) -> dict[str, list[float]]:
    """The values of a metric by group, one a seed."""
    found: dict[str, list[float]] = {}
    for spec in series.specs:
        for group, value in results.by_group(replace(series, specs=(spec,)), condition, grouping, metric).items():
            found.setdefault(group, []).append(value)
    return found
