"""What the paper leaves for later: several layers, and larger and noisier worlds."""

from collections.abc import Iterator, Sequence

import numpy as np

from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS, LINEAR
from tpr_attention.experiments.growth import GROWTH
from tpr_attention.experiments.layout import TESTS, Curve, Panel, Setup, Study
from tpr_attention.experiments.points import ROUNDING
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.report.cells import averaged, floor_cells, interval
from tpr_attention.report.document import Figure, Section, Table, Text
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Losses, mean, nearest, ratio
from tpr_attention.report.style import number

__all__ = ["depth", "scaling"]

TPR, *BASELINES = CONTESTANTS


def depth(results: Results, setup: Setup) -> Section | None:
    """Losses by number of layers, and whether the advantage persists; None before anything is stored."""
    (study,) = (make(setup) for make in GROWTH["depth"])
    rows, kept = [], []
    for panel, place, layers in _points(study, results):
        losses = {curve.label: _at(results, panel, curve, place) for curve in panel.curves}
        better = nearest({label: losses[label] for label in BASELINES})
        found = ratio(losses[TPR], losses[better])
        kept.append((panel, layers, (found.value if found.low is None else found.low) > 1))
        means = [averaged(one) for one in losses.values()]
        cell = [panel.interaction or "none", TESTS[panel.condition], f"{layers:g}"]
        sizes = _parameters(results, panel, place)
        rows.append([*cell, *means, better, interval(found), *floor_cells(results, panel), *sizes])
    if not rows:
        return None
    labels = list(CONTESTANTS)
    columns = ["interaction", "test", "layers", *labels, "better baseline", "its loss / tpr's [95 %]"]
    columns += [*FLOORS.values(), "solvable"]
    columns += [f"{label}: parameters" for label in labels]
    return Section(
        "Several layers: does the advantage persist?",
        [
            Text(" ".join(_depth_verdict(kept))),
            Text(
                "The paper compares single layers. Here every model has one to four layers of the same kind, each of "
                "which reads the transform, the action and what the layer before has made of the reference. Steps, "
                "pairs and learning rate are the same for all. Layers of the paper's kind are linear, however many "
                "there are."
            ),
            Figure(study, study.caption),
            Table("depth", "Final losses by number of layers, mean over seeds.", columns, rows),
        ],
    )


def _depth_verdict(kept: Sequence[tuple[Panel, float, bool]]) -> Iterator[str]:
    """One sentence for each setting: in how many tests the paper's layer is ahead of both, by depth."""
    for interaction in dict.fromkeys(panel.interaction for panel, *_ in kept):
        by_depth: dict[float, list[bool]] = {}
        for panel, layers, ahead in kept:
            if panel.interaction == interaction:
                by_depth.setdefault(layers, []).append(ahead)
        counts = {layers: f"{sum(ahead)} of {len(ahead)} tests" for layers, ahead in by_depth.items()}
        setting = f"With the {interaction} interaction" if interaction else "Without interaction"
        listed = ", ".join(f"{count} with {layers:g}" for layers, count in counts.items())
        all_of = [all(ahead) for ahead in by_depth.values()]
        advantage = "persists" if all(all_of) else "persists in part" if any(all_of) else "is not there"
        judged = f": its advantage {advantage}" if len(by_depth) > 1 else ""
        yield f"{setting}, TPR-Attention is ahead of both baselines in {listed} layers{judged}."


def scaling(results: Results, setup: Setup) -> Section | None:
    """Losses by size, and how they grow; None before anything is stored."""
    studies = [make(setup) for make in GROWTH["scaling"]]
    rows, verdicts = [], []
    for study in studies:
        ends: dict[str, list[float]] = {}
        stored: set[float] = set()
        for panel, place, size in _points(study, results):
            losses = {curve.label: _at(results, panel, curve, place) for curve in panel.curves}
            starts = [_at(results, panel, curve, place, first=True) for curve in panel.curves[:1]]
            stored.add(size)
            for label in CONTESTANTS:
                ends.setdefault(label, []).append(mean(losses[label]))
            means = [averaged(losses[label]) if label in losses else "-" for label in (*CONTESTANTS, LINEAR)]
            sizes = _parameters(results, panel, place)
            rows.append([panel.axis, f"{size:g}", TESTS[panel.condition], number(mean(starts[0])), *means, *sizes])
        if ends:
            verdicts.append(_growth_verdict(study, sorted(stored), ends))
    if not rows:
        return None
    columns = ["what grows", "size", "test", "the copy", *CONTESTANTS, "best linear fit"]
    columns += [f"{label}: parameters" for label in CONTESTANTS]
    return Section(
        "Larger and noisier worlds",
        [
            Text(" ".join(verdicts)),
            Text(
                "The paper has five factors with fillers of three numbers and no noise. These worlds are of the same "
                "kind, without interaction: every factor has four classes with random fillers of unit length, and one "
                "combination of the first two is held out. Noise is on the inputs only, so that a copy is wrong by its "
                "variance; targets are clean. Without noise both floors are zero at every size. How time "
                "grows is measured apart, by `benchmarks/scaling.py`."
            ),
            *(Figure(study, study.caption) for study in studies),
            Table(
                "scaling", "Final losses by size, mean over seeds; the copy is where training starts.", columns, rows
            ),
        ],
    )


def _growth_verdict(study: Study, sizes: Sequence[float], ends: dict[str, list[float]]) -> str:
    """How losses change from the smallest stored size to the largest, in all tests, and who is lowest."""
    tests = len(TESTS)
    said = []
    for label, losses in ends.items():
        first, last = (
            float(np.exp(np.mean(np.log(np.maximum(part, ROUNDING))))) for part in (losses[:tests], losses[-tests:])
        )
        said.append(f"{CONTESTANTS[label]}'s from {number(first)} to {number(last)}")
    lowest = sum(all(ours < ends[label][k] for label in BASELINES) for k, ours in enumerate(ends[TPR]))
    return (
        f"From the smallest {study.panels[0].axis} ({sizes[0]:g}) to the largest ({sizes[-1]:g}) the loss (geometric "
        f"mean of the tests) goes: {', '.join(said)}; TPR-Attention's is the lowest in {lowest} of {len(ends[TPR])} "
        "cells."
    )


def _points(study: Study, results: Results) -> Iterator[tuple[Panel, int, float]]:
    """Every panel and size of a study that is stored; size after size, so that tests are side by side."""
    for row in dict.fromkeys(panel.row for panel in study.panels):
        panels = [panel for panel in study.panels if panel.row == row]
        for place, size in enumerate(panels[0].sizes):
            for panel in panels:
                if results.complete([Curve("", _specs(panel, curve, place)) for curve in panel.curves]):
                    yield panel, place, float(size)


def _specs(panel: Panel, curve: Curve, place: int) -> tuple[RunSpec, ...]:
    each = len(curve.specs) // len(panel.sizes)
    return curve.specs[place * each : (place + 1) * each]


def _at(results: Results, panel: Panel, curve: Curve, place: int, *, first: bool = False) -> Losses:
    """The losses of a line at one of its sizes, at the end or at the start."""
    one = Curve(curve.label, _specs(panel, curve, place))
    if not first:
        return results.final(one, panel.condition)
    course = results.course(one, panel.condition)
    return course.losses[:, 0] if course is not None else np.array([np.nan])


def _parameters(results: Results, panel: Panel, place: int) -> list[str]:
    runs = (_specs(panel, curve, place)[0].digest for curve in panel.curves if curve.label in CONTESTANTS)
    return [str(results.store.provenance(run).get("parameters")) for run in runs]
