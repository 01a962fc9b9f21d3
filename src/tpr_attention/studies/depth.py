"""Several layers: the paper compares single ones."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Panel, Plan
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import mean, ratio
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.contestants import (
    BASELINES,
    CONTESTANTS,
    INTERACTIONS,
    NEW,
    OURS,
    PAPER,
    contestant,
    contestant_series,
    figure_of,
    floor_series,
    task_panels,
    words,
)
from tpr_attention.studies.paper.cells import FLOOR_COLUMNS, MEANS, RATIO_COLUMNS, floor_cells
from tpr_attention.studies.paper.claims import final, is_lower, series_of
from tpr_attention.studies.rate_search import RateSearch
from tpr_attention.studies.sizes import SizePoint, stored_points
from tpr_attention.studies.study import SEARCH_SEEDS, Chapter, Setup, Study
from tpr_attention.training.spec import RunSpec

__all__ = ["DEPTH"]

LAYERS = (1, 2, 3, 4)
HEADS = 8
ONE_LAYER = NEW[-1]
"""A model that is not made of such layers, as a line to compare with."""
RATES: dict[str, dict[int, float]] = {
    name: dict(zip(LAYERS, rates, strict=True))
    for name, rates in {
        "tpr": (0.1, 0.1, 0.1, 0.1),
        "classical": (0.1, 0.01, 0.01, 0.01),
        "resnet": (0.01, 0.01, 0.01, 0.01),
    }.items()
}
"""Model to number of layers to the learning rate that `depth-search` found."""
GRID = (0.003, 0.01, 0.03, 0.1)


def _spec(name: str, interaction: str | None, layers: int) -> RunSpec:
    options = {"model.num_heads": HEADS} if CONTESTANTS[name].has_heads else {}
    model = {"model": name} if layers == 1 else {"model": f"{name}-deep", "model.num_layers": layers}
    return RunSpec.of(
        {**model, **options, "task.interaction": interaction, "training.learning_rate": RATES[name][layers]}
    )


@cache
def _search(setup: Setup) -> RateSearch:
    """The search for rates: red squares held out, all interactions, two seeds that no study uses."""
    kinds = {
        (name, layers): [_spec(name, interaction, layers) for interaction in (None, *INTERACTIONS)]
        for name in PAPER
        for layers in LAYERS
    }
    case = (Column("model"), Column("layers", "count"))
    return RateSearch("depth-search", case, kinds, setup.steps, SEARCH_SEEDS[:2], GRID)


@cache
def figure(setup: Setup) -> Plan:
    def panels(interaction: str | None) -> Iterator[Panel]:
        specs = {name: [_spec(name, interaction, layers) for layers in LAYERS] for name in PAPER}
        series = tuple(contestant_series(name, setup, *found) for name, found in specs.items())
        one_layer = contestant_series(ONE_LAYER, setup, contestant(ONE_LAYER, "square_red", interaction))
        floors = (*floor_series("square_red", interaction, setup), one_layer)
        row = INTERACTIONS[interaction] if interaction else "no interaction"
        axis = "number of layers"
        return task_panels(row, "square_red", interaction, series, floors, sizes=LAYERS, axis=axis)

    return figure_of(
        "depth",
        "Several layers",
        f"Final loss against the number of layers; red squares held out, {HEADS} heads, the same steps and pairs for "
        f"all. The line of {words(ONE_LAYER)} (`{ONE_LAYER}`) does not depend on layers.",
        (panel for interaction in (None, *INTERACTIONS) for panel in panels(interaction)),
    )


def _chapter(results: Results, setup: Setup) -> Chapter:
    """Losses by number of layers, and whether the advantage persists."""
    plan = figure(setup)
    points = list(stored_points(plan, results))
    caption = (
        "In-distribution loss for each learning rate, by number of layers: geometric mean over the three settings "
        "(none and both interactions, square_red) and two seeds that no study uses."
    )
    rates = _search(setup).table(results, caption)
    searched = (Section("Learning rates by number of layers", [rates]),) if rates else ()
    if not points:
        return Chapter((), searched)
    columns = [Column("interaction"), Column("test"), Column("layers", "count"), *(Column(n, "mean") for n in PAPER)]
    columns += [*RATIO_COLUMNS, *FLOOR_COLUMNS]
    columns += [Column(f"{name}: parameters", "count") for name in PAPER]
    blocks: list[Block] = [
        Text(" ".join([*_verdict(points), *_one_layer(points)])),
        Text(
            "The paper compares single layers. Here every model has one to four layers of the same kind, each of "
            "which reads the transform, the action and what the layer before has made of the reference. Steps and "
            "pairs are the same for all; learning rates are searched for each model and number of layers, in "
            "distribution. Layers of the paper's kind are linear, however many there are. "
            f"`{ONE_LAYER}` is not made of such layers and cannot be made deeper by the same rule, so it has one value "
            "for each test: with the same steps, pairs and seeds, the options that it has everywhere, and a learning "
            f"rate of {CONTESTANTS[ONE_LAYER].rate:g}, which was not searched here."
        ),
        Curves(plan, results),
        Table("depth", f"Final losses by number of layers. {MEANS}", columns, list(map(_row, points))),
    ]
    said = tuple(f"{setting}, {words}." for setting, words in _persists(points))
    return Chapter(said, (Section("Several layers: does the advantage persist?", blocks),), searched)


def _row(point: SizePoint) -> list[Any]:
    about = [point.panel.cell["interaction"], point.panel.cell["test"], point.size]
    ratios = [ratio(point.losses[OURS], point.losses[name]) for name in BASELINES]
    floors = floor_cells(point.results, point.panel)
    return [*about, *point.linked.values(), *ratios, *floors, *point.parameters(PAPER)]


def _ahead(points: Sequence[SizePoint]) -> Iterator[tuple[str, dict[float | int, list[bool]]]]:
    """For each setting and number of layers: in which tests the paper's layer is ahead of both baselines."""
    for interaction in dict.fromkeys(point.panel.cell["interaction"] for point in points):
        by_depth: dict[float | int, list[bool]] = {}
        for point in points:
            if point.panel.cell["interaction"] == interaction:
                is_ahead = all(is_lower(point.losses[OURS], point.losses[name]) for name in BASELINES)
                by_depth.setdefault(point.size, []).append(is_ahead)
        yield "Without interaction" if interaction == "none" else f"With the {interaction} interaction", by_depth


def _advantage(by_depth: Mapping[float | int, Sequence[bool]]) -> str:
    all_of = [all(found) for found in by_depth.values()]
    return "persists" if all(all_of) else "persists in part" if any(all_of) else "is not there"


def _persists(points: Sequence[SizePoint]) -> Iterator[tuple[str, str]]:
    """Each setting of which several depths are stored, and whether the advantage persists, without numbers."""
    for setting, by_depth in _ahead(points):
        if len(by_depth) > 1:
            yield setting, f"the advantage of TPR-Attention over both baselines {_advantage(by_depth)} with more layers"


def _verdict(points: Sequence[SizePoint]) -> Iterator[str]:
    """One sentence for each setting: in how many tests the paper's layer is ahead of both, by depth."""
    for setting, by_depth in _ahead(points):
        counts = {layers: f"{sum(found)} of {len(found)} tests" for layers, found in by_depth.items()}
        listed = ", ".join(f"{count} with {layers:g}" for layers, count in counts.items())
        judged = f": its advantage {_advantage(by_depth)}" if len(by_depth) > 1 else ""
        noun = "layer" if [*by_depth] == [1] else "layers"
        yield f"{setting}, TPR-Attention is ahead of both baselines in {listed} {noun}{judged}."


def _one_layer(points: Sequence[SizePoint]) -> Iterator[str]:
    """In how many tests and depths the model without such layers is lower than all others, if it is stored."""
    stored = [point for point in points if point.results.complete([series_of(point.panel, ONE_LAYER)])]
    losses = [mean(final(point.results, point.panel, ONE_LAYER)) for point in stored]
    lower = [all(loss < mean(point.losses[name]) for name in PAPER) for point, loss in zip(stored, losses, strict=True)]
    if lower:
        yield f"The mean loss of `{ONE_LAYER}` is lower than all of these in {sum(lower)} of {len(lower)} cells."


DEPTH = Study(
    "depth",
    "one to four layers",
    {"depth": lambda setup: figure(setup).specs, "depth-search": lambda setup: _search(setup).specs()},
    _chapter,
)
