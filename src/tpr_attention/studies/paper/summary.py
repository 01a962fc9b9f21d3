"""The paper's part of the report in five sentences; what fails is said first."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tpr_attention.report.panels import Panel
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import ratio
from tpr_attention.report.style import number
from tpr_attention.studies.contestants import BASELINES, LINEAR, OURS, PAPER, words
from tpr_attention.studies.paper.claims import FAILS, HOLDS, PARTLY, SOLVED, UNKNOWN, Claim, Verdict, final
from tpr_attention.studies.study import Setup
from tpr_attention.training.spec import ROUNDING

__all__ = ["summary"]

FORMS = {
    FAILS: ("does not hold", "do not hold"),
    PARTLY: ("holds in part", "hold in part"),
    HOLDS: ("holds", "hold"),
}


def summary(
    verdicts: Mapping[Claim, Verdict],
    results: Results,
    panels: Sequence[Panel],
    setup: Setup,
    readings: Mapping[str, bool],
) -> Iterator[str]:
    """Five sentences, fewer if not all has been run.

    Args:
        panels: All cells of the paper.
        readings: Other readings of the paper whose runs are all stored, and whether they change a verdict.
    """
    complete = [panel for panel in panels if results.complete(panel.series)]
    if not complete:
        yield "No part of the paper's figures is complete yet: `tpr-attention reproduce` trains what is missing."
        return
    yield _of_claims(verdicts)
    for interacts, said in ((False, "Without interaction"), (True, "With interacting factors")):
        chosen = [panel for panel in complete if _interacts(panel) == interacts]
        if chosen:
            cells = sum(_interacts(panel) == interacts for panel in panels)
            yield _comparison(said, chosen, cells, results)
    yield from _limits([panel for panel in complete if _interacts(panel)], results)
    seeds = f"{setup.seeds} seed{'s' if setup.seeds != 1 else ''}"
    yield (
        f"All of this is under our reading of what the paper leaves open, with {seeds} and {setup.steps:,} steps of "
        f"training for every model{_others(readings)}."
    )


def _interacts(panel: Panel) -> bool:
    return panel.cell["interaction"] != "none"


def _others(readings: Mapping[str, bool]) -> str:
    if not readings:
        return ""
    changed = [f"`{name}`" for name, changes in readings.items() if changes]
    verb = "changes" if len(changed) == 1 else "change"
    which = (
        f"{len(changed)} {verb} a verdict on the main figures: {', '.join(changed)}" if changed else "none changes one"
    )
    run = f"{len(readings)} other readings that were run" if len(readings) > 1 else "1 other reading that was run"
    return f"; of {run}, one choice changed at a time, {which}"


def _of_claims(verdicts: Mapping[Claim, Verdict]) -> str:
    judged = sum(verdict.badge != UNKNOWN for verdict in verdicts.values())
    if not judged:
        return "No claim of the paper can be judged yet: not all runs of any are stored."
    parts = []
    for badge, forms in FORMS.items():
        names = [
            f"{claim.name} ({verdict.favourable} of {verdict.cells} cells)"
            for claim, verdict in verdicts.items()
            if verdict.badge == badge
        ]
        if names:
            parts.append(f"{len(names)} {forms[len(names) != 1]}: {', '.join(names)}")
    return f"Of {len(verdicts)} claims of the paper, {judged} could be judged; {'; '.join(parts)}."


def _comparison(said: str, panels: Sequence[Panel], cells: int, results: Results) -> str:
    """Where ours is lower than both, where it is not, and by how much, in the cells that are stored."""
    losses = [{name: final(results, panel, name) for name in PAPER} for panel in panels]
    ratios = {name: [ratio(found[OURS], found[name]) for found in losses] for name in BASELINES}
    pairs = list(zip(*ratios.values(), strict=True))
    lower = sum(all(one.least > 1 for one in pair) for pair in pairs)
    higher = sum(any(one.most < 1 for one in pair) for pair in pairs)
    against = []
    for name, found in ratios.items():
        values = np.array([one.value for one in found])
        against.append(
            f"{words(name)}'s loss is {number(float(np.exp(np.log(values).mean())))} times that of "
            f"TPR-Attention ({number(float(values.min()))} to {number(float(values.max()))})"
        )
    solved = sum(any((found[name] < SOLVED).all() for name in BASELINES) for found in losses)
    also = f" (in {solved} a baseline's loss is below {SOLVED:g}, too, for all seeds)" if solved else ""
    stored = f"{len(panels)} cells" + (f" that are stored, of {cells}" if len(panels) < cells else "")
    return (
        f"{said}, TPR-Attention's loss is lower than that of both baselines in {lower} of {stored}{also}, "
        f"higher than that of some baseline in {higher}, and undecided in {len(panels) - lower - higher}; as geometric "
        f"means over cells and seeds, {' and '.join(against)}."
    )


def _limits(panels: Sequence[Panel], results: Results) -> Iterator[str]:
    """What a linear model reaches; nothing if no such floor is stored."""
    shares, below = [], 0
    for panel in panels:
        if results.complete(panel.floors):
            floor, ours = (final(results, panel, name).mean() for name in (LINEAR, OURS))
            if floor > ROUNDING:
                shares.append(float(ours / floor))
                below += any(final(results, panel, name).mean() < floor for name in BASELINES)
    if shares:
        yield (
            "The paper's layer is linear in its inputs for each action, so what it can learn in distribution is at "
            "best the linear map that fits the training data; where that map has a loss in a test, TPR-Attention's "
            f"mean loss is {number(min(shares))} to {number(max(shares))} times as large, and in {below} of these "
            f"{len(shares)} cells a baseline, which is not linear, has a lower one than the map."
        )
