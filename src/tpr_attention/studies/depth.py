"""Several layers: the paper compares single ones."""

from collections.abc import Iterator, Sequence
from functools import cache

from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Band, Panel, Plan
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import ratio
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.contestants import (
    BASELINES,
    CONTESTANTS,
    INTERACTIONS,
    NEW,
    OURS,
    PAPER,
    SOLVABLE,
    TESTS,
    cell,
    contestant,
    contestant_series,
    floor_series,
    solvable,
    words,
)
from tpr_attention.studies.kinds import linked
from tpr_attention.studies.paper.cells import FLOOR_COLUMNS, MEANS, RATIO_COLUMNS, floor_cells
from tpr_attention.studies.rate_search import RateSearch
from tpr_attention.studies.sizes import final_at, parameters_at, series_at, stored_points
from tpr_attention.studies.study import SEARCH_SEEDS, Chapter, Setup, Study, over_sizes
from tpr_attention.training.spec import RunSpec

__all__ = ["DEPTH"]

LAYERS = (1, 2, 3, 4)
HEADS = 8
ONE_LAYER = NEW[-1]
"""A model that is not made of such layers, as a line to compare with."""
RATES: dict[str, dict[int, float]] = {
    name: dict(zip(LAYERS, rates, strict=True))
    for name, rates in {
        "tpr": (0.01, 0.01, 0.01, 0.01),
        "classical": (0.01, 0.01, 0.01, 0.01),
        "resnet": (0.01, 0.01, 0.01, 0.01),
    }.items()
}
"""Model to number of layers to the learning rate that `depth-search` found."""
GRID = (0.003, 0.01, 0.03, 0.1)


def _spec(name: str, interaction: str | None, layers: int, rate: float | None = None) -> RunSpec:
    options = {"model.num_heads": HEADS} if CONTESTANTS[name].has_heads else {}
    model = {"model": name} if layers == 1 else {"model": f"{name}-deep", "model.num_layers": layers}
    return RunSpec.of(
        {**model, **options, "task.interaction": interaction, "training.learning_rate": rate or RATES[name][layers]}
    )


@cache
def _search(setup: Setup) -> RateSearch:
    """The search for rates: red squares held out, all interactions, two seeds that no study uses."""

    def runs(name: str, layers: int, rate: float) -> Iterator[RunSpec]:
        for interaction in (None, *INTERACTIONS):
            spec = _spec(name, interaction, layers, rate).changed({"training.steps": setup.steps})
            yield from map(spec.with_seed, SEARCH_SEEDS[:2])

    found = {
        name: {layers: {rate: tuple(runs(name, layers, rate)) for rate in GRID} for layers in LAYERS} for name in PAPER
    }
    return RateSearch("depth-search", "layers", found, RATES)


@cache
def _figure(setup: Setup) -> Plan:
    def panels() -> Iterator[Panel]:
        for interaction in (None, *INTERACTIONS):
            series = tuple(
                over_sizes(
                    name,
                    [_spec(name, interaction, layers) for layers in LAYERS],
                    setup,
                    words(name),
                    CONTESTANTS[name].look,
                )
                for name in PAPER
            )
            one_layer = contestant_series(ONE_LAYER, contestant(ONE_LAYER, "square_red", interaction), setup)
            floors = (*floor_series("square_red", interaction, setup), one_layer)
            row = INTERACTIONS[interaction] if interaction else "no interaction"
            for condition, test in TESTS.items():
                yield Panel(
                    row,
                    test,
                    cell("square_red", interaction, condition),
                    condition,
                    Band(1, "SE"),
                    series,
                    floors,
                    LAYERS,
                    "number of layers",
                    mark=solvable,
                )

    return Plan(
        "depth",
        "Several layers",
        f"Final loss against the number of layers; red squares held out, {HEADS} heads, the same steps and pairs for "
        f"all. The line of {words(ONE_LAYER)} (`{ONE_LAYER}`) does not depend on layers.",
        tuple(panels()),
        SOLVABLE,
    )


FIGURES = (_figure,)


def _chapter(results: Results, setup: Setup) -> Chapter:
    """Losses by number of layers, and whether the advantage persists."""
    plan = _figure(setup)
    rows, ahead = [], []
    for panel, place, layers in stored_points(plan, results):
        losses = final_at(results, panel, place)
        ratios = [ratio(losses[OURS], losses[name]) for name in BASELINES]
        ahead.append((panel, layers, all((one.value if one.low is None else one.low) > 1 for one in ratios)))
        about = [panel.cell["interaction"], panel.cell["test"], int(layers)]
        sizes = parameters_at(results, panel, place, PAPER)
        kinds = [series_at(panel, series, place).specs[0] for series in panel.series]
        found = [linked(loss, kind) for loss, kind in zip(losses.values(), kinds, strict=True)]
        rows.append([*about, *found, *ratios, *floor_cells(results, panel), *sizes])
    if not rows:
        return Chapter()
    columns = [Column("interaction"), Column("test"), Column("layers", "count"), *(Column(n, "mean") for n in PAPER)]
    columns += [*RATIO_COLUMNS, *FLOOR_COLUMNS]
    columns += [Column(f"{name}: parameters", "count") for name in PAPER]
    blocks: list[Block] = [
        Text(" ".join(_verdict(ahead))),
        Text(
            "The paper compares single layers. Here every model has one to four layers of the same kind, each of "
            "which reads the transform, the action and what the layer before has made of the reference. Steps and "
            "pairs are the same for all; learning rates are searched for each model and number of layers, in "
            "distribution. Layers of the paper's kind are linear, however many there are."
        ),
        Curves(plan, results),
        Table("depth", f"Final losses by number of layers. {MEANS}", columns, rows),
    ]
    rates = _search(setup).table(results, RATES_CAPTION)
    appendix = (Section("Learning rates by number of layers", [rates]),) if rates else ()
    return Chapter((), (Section("Several layers: does the advantage persist?", blocks),), appendix)


def _verdict(ahead: Sequence[tuple[Panel, float, bool]]) -> Iterator[str]:
    """One sentence for each setting: in how many tests the paper's layer is ahead of both, by depth."""
    for interaction in dict.fromkeys(panel.cell["interaction"] for panel, *_ in ahead):
        by_depth: dict[float, list[bool]] = {}
        for panel, layers, is_ahead in ahead:
            if panel.cell["interaction"] == interaction:
                by_depth.setdefault(layers, []).append(is_ahead)
        counts = {layers: f"{sum(found)} of {len(found)} tests" for layers, found in by_depth.items()}
        setting = "Without interaction" if interaction == "none" else f"With the {interaction} interaction"
        listed = ", ".join(f"{count} with {layers:g}" for layers, count in counts.items())
        all_of = [all(found) for found in by_depth.values()]
        advantage = "persists" if all(all_of) else "persists in part" if any(all_of) else "is not there"
        judged = f": its advantage {advantage}" if len(by_depth) > 1 else ""
        noun = "layer" if [*by_depth] == [1] else "layers"
        yield f"{setting}, TPR-Attention is ahead of both baselines in {listed} {noun}{judged}."


RATES_CAPTION = (
    "In-distribution loss for each learning rate, by number of layers: geometric mean over the three settings (none "
    "and both interactions, square_red) and two seeds that no study uses."
)

DEPTH = Study(
    "depth",
    "one to four layers",
    {"depth": lambda setup: _figure(setup).specs, "depth-search": lambda setup: _search(setup).specs()},
    _chapter,
)
