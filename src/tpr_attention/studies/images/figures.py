"""Figures of the image study: contestants over training, at equal processor time, and what they answer."""

from collections.abc import Iterator
from dataclasses import replace

from tpr_attention.imports import load
from tpr_attention.report.drawings import AnswerGrid, Curves, HeadMaps
from tpr_attention.report.drawings.comparisons import ShownAnswers, wrong_pixels
from tpr_attention.report.inspection import Inspection, Names, inspect_weights
from tpr_attention.report.panels import Band, Panel, Plan, Series
from tpr_attention.report.results import Results
from tpr_attention.studies.images.contestants import SPLITS, STEPS
from tpr_attention.studies.images.values import HELD_OUT, ON_UNION, conditions_of, finished, finished_of, stored_of
from tpr_attention.studies.kinds import finishing_seconds, training_seconds
from tpr_attention.studies.study import Setup

__all__ = ["answer_grid", "at_equal_time", "failures", "layer_maps", "over_training"]

SHOWN = {
    "in_distribution": "in distribution",
    **{f"{split}.ood_composition": f"{split}, answer held out" for split in SPLITS[:3]},
}
EXAMPLES = 8
"""Of a test, in the picture of answers."""
FAILURES, AMONG = 8, 2_000
"""How many answers that are not exact are shown, and among how many examples they are sought: seconds."""
WINDOW = 16
"""Rows and columns around wrong pixels that are enlarged."""
OBJECTS = ("reference", "transform")
LAYER = "composition.attention"
UPDATE_SCALE = 5.0
"""What the model multiplies the update of its layer by: `EAGER` of the model, which needs torch."""


def over_training(results: Results, setup: Setup) -> Iterator[Curves]:
    """The contestants that are stored, over training."""
    series = tuple(stored_of(ON_UNION, results, setup).values())
    panels = tuple(
        Panel("union held out", words, {"test": words}, condition, Band(1, "SE"), series, metric="iou", scale="linear")
        for condition, words in SHOWN.items()
    )
    caption = (
        "Intersection over union of answers over training, for models that hold out the union of all splits. The "
        "clean-up comes after training, and is not shown. Only the last point has all examples of a test."
    )
    if series:
        yield Curves(Plan("images-contestants", "From two images to an image", caption, panels), results)


def at_equal_time(results: Results, setup: Setup) -> Iterator[Curves]:
    """The contestants whose processor time is recorded, against it."""
    stored = stored_of(ON_UNION, results, setup).values()
    seconds = {one.name: training_seconds(results, one.specs) for one in stored}
    lengths = {name: found for name, found in seconds.items() if found}
    series = tuple(one for one in stored if one.name in lengths)
    later = {one.name: finishing_seconds(results, one.specs) for one in series}
    further = {name: found for name, found in later.items() if found}
    shown = {condition: conditions_of("union")[condition] for condition in ("in_distribution", HELD_OUT)}
    metrics = {"error": "loss", "overlap": "iou", "exactly right": "exact"}
    if not further and not any(_is_ever_right(results, one, condition) for one in series for condition in shown):
        del metrics["exactly right"]
    panels = tuple(
        Panel(
            row,
            words,
            {"test": words},
            condition,
            Band(1, "SE"),
            series,
            axis="CPU seconds",
            axis_scale="log",
            lengths=lengths,
            further=further,
            metric=metric,
            scale="log" if metric == "loss" else "linear",
        )
        for row, metric in metrics.items()
        for condition, words in shown.items()
    )
    caption = (
        "The same contestants at equal processor time. A line ends where its training ends, after equally many steps "
        "but for those that are trained longer. CPU seconds are those of one run without its tests, in the mean over "
        "seeds. Runs that are trained together share them equally."
    )
    if further:
        caption += (
            " The line of the main model goes on with its clean-up: the last point but one is by fillers that codes "
            "have taught, the last one by codes. By fillers, loss and overlap are both higher than before. A "
            "likely reason is sharper edges, where a wrong pixel costs more."
        )
    if series:
        yield Curves(Plan("images-cpu", "Contestants at equal CPU", caption, panels), results)


def _is_ever_right(results: Results, series: Series, condition: str) -> bool:
    """Whether an answer is exactly right at some step of training, in some seed."""
    course = results.course(series, condition, "exact")
    steps = series.specs[0].training.steps
    return course is not None and bool((course.values[:, course.steps <= steps] > 0).any())


def answer_grid(results: Results, setup: Setup) -> Iterator[AnswerGrid]:
    """What contestants on the union answer to the same held-out examples, each with its first seed that can.

    Those that are trained longer are there as well with as many steps as all others, and are not shown.
    """
    runs = {
        one.label: next((spec for spec in one.specs if results.store.weights(spec.digest)), one.specs[0])
        for one in finished_of(ON_UNION, results, setup).values()
        if one.specs[0].training.steps <= STEPS
    }
    if not runs:
        return
    found = load("tpr_attention.runner.inference:answers_of")(results.store, runs, HELD_OUT, EXAMPLES)  # with torch
    caption = (
        "Answers to combinations that training never showed: squares in the right half. Each contestant has the first "
        "of its seeds whose weights are stored; those that are trained longer are not shown. Pixels that are wrong "
        "after rounding are pink, and dark pink where nothing is drawn. Columns say the action, and whether the answer "
        "is held out. The main model has its clean-up here, and no contestant has one."
    )
    if found.left_out:
        caption += f" Left out, as no weights of this version are stored: {'; '.join(found.left_out)}."
    if found.answers:
        shown = ShownAnswers(
            [tuple(word.replace("_", " ") for word in words) for words in found.examples],
            found.given,
            found.answers,
            found.target,
        )
        yield AnswerGrid("images-answers", shown, caption)


def failures(results: Results, setup: Setup) -> Iterator[AnswerGrid]:
    """Answers of the main model that are not exact, with its first seed on the union, in the worst of its tests."""
    series = finished("main", results, setup).get("union")
    if series is None:
        return
    first = replace(series, specs=series.specs[:1])
    tests = conditions_of("union")
    test = min(tests, key=lambda name: float(results.final(first, name, "exact")[0]))
    failures_of = load("tpr_attention.runner.inference:failures_of")  # with torch
    found = failures_of(results.store, "answer", first.specs[0], test, FAILURES, AMONG)
    if found is None:
        return
    counts = wrong_pixels(found.answers["answer"], found.target).sum((1, 2)).tolist()
    words = [
        (*(word.replace("_", " ") for word in example), f"{count:,} wrong")
        for example, count in zip(found.examples, counts, strict=True)
    ]
    caption = (
        f"Answers of the main model that are not exact, at most {FAILURES} among {AMONG:,} examples, with its first "
        f"seed on the union of the splits, in the test where it is exact least often: {tests[test]}. Pixels that are "
        "wrong after rounding are pink, and dark pink where nothing is drawn; enlarged are those around them. Columns "
        "say the action, whether the answer is held out, and how many pixels are wrong."
    )
    shown = ShownAnswers(words, found.given, found.answers, found.target, WINDOW)
    yield AnswerGrid("images-failures", shown, caption)


def layer_maps(results: Results, setup: Setup) -> Iterator[HeadMaps]:
    """What the layer of the main model became, with its first seed on the union."""
    main = finished("main", results, setup)
    inspection = _layer(results, main["union"]) if "union" in main else None
    caption = (
        "What the layer of the main model became, on the union of the splits, with its first seed: under each action "
        "the map of all heads together, as it is added to a copy of the reference. -1 at (reference, acted role) "
        "erases what is there, and +1 at (transform, acted role) writes what is to be there."
    )
    if inspection:
        yield HeadMaps("images-layer", inspection, caption)


def _layer(results: Results, series: Series) -> Inspection | None:
    """The map of all heads together, in the size in which the model adds it; None if there is no such layer."""
    digest, write = series.specs[0].digest, f"{LAYER}.role_map"
    weights, actions = results.store.weights(digest), results.store.names(digest)["groups"].get("action", ())
    if write not in weights:
        return None
    scaled = {**weights, write: UPDATE_SCALE * weights[write]}
    title = f"{series.label}: seed {series.specs[0].seed} ({digest})"
    found = inspect_weights(scaled, Names(actions, OBJECTS, actions), title=title)  # a role for each action
    return found and found._replace(layers=[layer._replace(heads=()) for layer in found.layers])
