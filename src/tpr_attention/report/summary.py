"""The report in five sentences; what fails is said first."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from tpr_attention.experiments.contestants import CONTESTANTS
from tpr_attention.experiments.studies import Curve, Panel, Setup
from tpr_attention.report.claims import FAILS, HOLDS, PARTLY, UNKNOWN, Claim, Verdict
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import ratio
from tpr_attention.report.style import number

__all__ = ["summary"]

OURS, *BASELINES = CONTESTANTS


def summary(
    verdicts: Mapping[Claim, Verdict], results: Results, panels: Sequence[Panel], setup: Setup
) -> Iterator[str]:
    """Five sentences, fewer if not all has been run."""
    if not panels:
        yield "Nothing has been run yet: `tpr-attention reproduce` trains what the paper's figures need."
        return
    yield _of_claims(verdicts)
    for interacts, words in ((False, "Without interaction"), (True, "With interacting factors")):
        chosen = [panel for panel in panels if bool(panel.interaction) == interacts]
        if chosen:
            yield _comparison(words, chosen, results)
    yield from _limits([panel for panel in panels if panel.interaction], results)
    yield (
        f"All of this is under our reading of what the paper leaves open, with {setup.seeds} "
        f"seed{'s' if setup.seeds != 1 else ''} and {setup.steps:,} steps of training for every model."
    )


def _of_claims(verdicts: Mapping[Claim, Verdict]) -> str:
    names: dict[str, list[str]] = {FAILS: [], PARTLY: [], HOLDS: [], UNKNOWN: []}
    for claim, verdict in verdicts.items():
        names[verdict.word].append(f"{claim.name} ({verdict.favourable} of {verdict.cells} cells)")
    judged = len(verdicts) - len(names[UNKNOWN])
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
    return f"Of the {judged} claims of the paper that could be judged, {'; '.join(parts)}."


def _comparison(words: str, panels: Sequence[Panel], results: Results) -> str:
    """Where ours is lower than both, and by how much than each."""
    best = Counter(min(CONTESTANTS, key=partial(_ratio, results, panel)) for panel in panels)
    against = []
    for label in BASELINES:
        ratios = np.array([_ratio(results, panel, label) for panel in panels])
        against.append(
            f"{CONTESTANTS[label]}'s loss is {_times(np.exp(np.log(ratios).mean()))} that of TPR-Attention "
            f"({_times(ratios.min())} to {_times(ratios.max())})"
        )
    others = " and ".join(f"{CONTESTANTS[label]} in {best[label]}" for label in BASELINES if best[label])
    return (
        f"{words}, TPR-Attention has the lowest loss in {best[OURS]} of {len(panels)} cells"
        f"{f' ({others})' if others else ''}; as geometric means over cells and seeds, {' and '.join(against)}."
    )


def _limits(panels: Sequence[Panel], results: Results) -> Iterator[str]:
    """What a linear model can reach; nothing if no such floor is stored."""
    shares, below = [], 0
    for panel in panels:
        ours = _mean(results, panel.curves, OURS, panel.condition)
        floor = _mean(results, panel.floors, "linear-floor", panel.condition)
        if floor > 1e-9:
            shares.append(ours / floor)
            below += any(_mean(results, panel.curves, label, panel.condition) < floor for label in BASELINES)
    if not shares:
        return
    yield (
        "The paper's layer is linear in its inputs for each action, so at best it learns the linear map that fits the "
        "training data best, and it does: where that map has a loss in a test, TPR-Attention's is "
        f"{number(min(shares))} to {number(max(shares))} times as large, and in {below} of these {len(shares)} cells a "
        "baseline that is not linear has a lower one."
    )


def _mean(results: Results, curves: Iterable[Curve], label: str, condition: str) -> float:
    curve = next(curve for curve in curves if curve.label == label)
    losses = results.final(curve, condition)
    return float(losses[np.isfinite(losses)].mean()) if np.isfinite(losses).any() else float("nan")


def _ratio(results: Results, panel: Panel, label: str) -> float:
    ours, theirs = (
        results.final(next(curve for curve in panel.curves if curve.label == one), panel.condition)
        for one in (OURS, label)
    )
    both = np.isfinite(ours * theirs)
    return ratio(ours[both], theirs[both]).value


def _times(factor: float) -> str:
    return f"{number(float(factor))} times"
