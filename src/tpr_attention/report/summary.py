"""The report in five sentences; what fails is said first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tpr_attention.experiments.contestants import CONTESTANTS, LINEAR
from tpr_attention.experiments.layout import Curve, Panel, Setup
from tpr_attention.experiments.points import ROUNDING
from tpr_attention.report.claims import FAILS, HOLDS, PARTLY, SOLVED, UNKNOWN, Claim, Verdict
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import Interval, ratio
from tpr_attention.report.style import number

__all__ = ["summary"]

OURS, *BASELINES = CONTESTANTS


def summary(
    verdicts: Mapping[Claim, Verdict],
    results: Results,
    panels: Sequence[Panel],
    setup: Setup,
    readings: Mapping[str, bool],
) -> Iterator[str]:
    """Five sentences, fewer if not all has been run.

    Args:
        readings: Other readings of the paper that have been run, and whether they change a verdict.
    """
    if not panels:
        yield "No part of the paper's figures is complete yet: `tpr-attention reproduce` trains what is missing."
        return
    yield _of_claims(verdicts)
    for interacts, words in ((False, "Without interaction"), (True, "With interacting factors")):
        chosen = [panel for panel in panels if bool(panel.interaction) == interacts]
        if chosen:
            yield _comparison(words, chosen, results)
    yield from _limits([panel for panel in panels if panel.interaction], results)
    yield (
        f"All of this is under our reading of what the paper leaves open, with {setup.seeds} "
        f"seed{'s' if setup.seeds != 1 else ''} and {setup.steps:,} steps of training for every model"
        f"{_others(readings)}."
    )


def _others(readings: Mapping[str, bool]) -> str:
    if not readings:
        return ""
    changed = [f"`{name}`" for name, changes in readings.items() if changes]
    which = (
        f"{len(changed)} change a verdict on the main figures: {', '.join(changed)}" if changed else "none changes one"
    )
    return f"; of {len(readings)} other readings, one choice changed at a time, {which}"


def _of_claims(verdicts: Mapping[Claim, Verdict]) -> str:
    names: dict[str, list[str]] = {FAILS: [], PARTLY: [], HOLDS: [], UNKNOWN: []}
    for claim, verdict in verdicts.items():
        names[verdict.word].append(f"{claim.name} ({verdict.favourable} of {verdict.cells} cells)")
    judged = len(verdicts) - len(names[UNKNOWN])
    if not judged:
        return "No claim of the paper can be judged yet: not all runs of any are stored."
    begin = {
        FAILS: ("does not hold", "do not hold"),
        PARTLY: ("holds in part", "hold in part"),
        HOLDS: ("holds", "hold"),
    }
    parts = [
        f"{len(names[word])} {forms[len(names[word]) != 1]}: {', '.join(names[word])}"
        for word, forms in begin.items()
        if names[word]
    ]
    return f"Of {len(verdicts)} claims of the paper, {judged} could be judged; {'; '.join(parts)}."


def _comparison(words: str, panels: Sequence[Panel], results: Results) -> str:
    """Where ours is lower than both, where it is not, and by how much."""
    ratios = {label: [_ratio(results, panel, label) for panel in panels] for label in BASELINES}
    pairs = list(zip(*ratios.values(), strict=True))
    lower = sum(all((one.value if one.low is None else one.low) > 1 for one in pair) for pair in pairs)
    higher = sum(any((one.value if one.high is None else one.high) < 1 for one in pair) for pair in pairs)
    against = []
    for label, found in ratios.items():
        values = np.array([one.value for one in found])
        against.append(
            f"{CONTESTANTS[label]}'s loss is {number(float(np.exp(np.log(values).mean())))} times that of "
            f"TPR-Attention ({number(float(values.min()))} to {number(float(values.max()))})"
        )
    solved = sum(_also_solved(results, panel) for panel in panels)
    also = f" (in {solved} a baseline's loss is below {SOLVED:g}, too, for all seeds)" if solved else ""
    return (
        f"{words}, TPR-Attention's loss is lower than that of both baselines in {lower} of {len(panels)} cells{also}, "
        f"higher than that of some baseline in {higher}, and undecided in {len(panels) - lower - higher}; as geometric "
        f"means over cells and seeds, {' and '.join(against)}."
    )


def _also_solved(results: Results, panel: Panel) -> bool:
    return any((_final(results, panel.curves, label, panel.condition) < SOLVED).all() for label in BASELINES)


def _limits(panels: Sequence[Panel], results: Results) -> Iterator[str]:
    """What a linear model reaches; nothing if no such floor is stored."""
    shares, below = [], 0
    for panel in panels:
        if results.complete(panel.floors):
            floor = _final(results, panel.floors, LINEAR, panel.condition).mean()
            ours = _final(results, panel.curves, OURS, panel.condition).mean()
            if floor > ROUNDING:
                shares.append(float(ours / floor))
                others = (_final(results, panel.curves, label, panel.condition).mean() for label in BASELINES)
                below += any(other < floor for other in others)
    if shares:
        yield (
            "The paper's layer is linear in its inputs for each action, so what it can learn in distribution is at "
            "best the linear map that fits the training data; where that map has a loss in a test, TPR-Attention's "
            f"mean loss is {number(min(shares))} to {number(max(shares))} times as large, and in {below} of these "
            f"{len(shares)} cells a baseline, which is not linear, has a lower one than the map."
        )


def _final(results: Results, curves: Iterable[Curve], label: str, condition: str) -> np.ndarray:
    return results.final(next(curve for curve in curves if curve.label == label), condition)


def _ratio(results: Results, panel: Panel, label: str) -> Interval:
    return ratio(*(_final(results, panel.curves, one, panel.condition) for one in (OURS, label)))
