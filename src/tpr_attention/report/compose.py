"""What the report says, in order: the summary, the claims, the figures, and all that stands behind them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS, RATES
from tpr_attention.experiments.layout import Curve, Panel, Setup, Study
from tpr_attention.experiments.own import in_brief, own_runs
from tpr_attention.experiments.points import ROUNDING
from tpr_attention.experiments.readings import READINGS
from tpr_attention.experiments.search import GRID, best_rate, score, search
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.studies import PLANS, STUDIES, is_planned, specs_of, study
from tpr_attention.report import goals, growth
from tpr_attention.report.cells import (
    actions_table,
    averaged,
    cells_table,
    distinct,
    floor_cells,
    interval,
    roles_table,
    sizes_table,
)
from tpr_attention.report.claims import CLAIMS, FAILS, HOLDS, PARTLY, UNKNOWN, Claim, Verdict, judge
from tpr_attention.report.decisions import decisions_table
from tpr_attention.report.document import Block, Document, Figure, Section, Table, Text
from tpr_attention.report.heads import heads_of_one
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import standard_error
from tpr_attention.report.style import number
from tpr_attention.report.summary import summary

__all__ = ["Material", "compose", "gather"]

SHOWN: dict[str, Callable[[Results, Setup], bool]] = {
    "beyond": lambda results, setup: bool(goals.goals(results, setup)),
    "depth": lambda results, setup: growth.depth(results, setup) is not None,
    "scaling": lambda results, setup: growth.scaling(results, setup) is not None,
}
"""Plans that are in the report only if enough of them is stored."""
WORST_FIRST = (FAILS, PARTLY, HOLDS, UNKNOWN)


@dataclass(frozen=True)
class Material:
    """All that a report is made from."""

    results: Results
    setup: Setup
    panels: Sequence[Panel]
    own: Study


def gather(store: Store, setup: Setup) -> Material:
    """Read what a store has of all plans."""
    planned = {spec.digest: spec for spec in specs_of(PLANS, setup)}
    shown = [name for name, is_shown in SHOWN.items() if is_shown(Results(store, PLANS[name](setup)), setup)]
    names = [name for name in PLANS if name in shown or name not in SHOWN]
    own = own_runs(spec for spec in map(store.spec, store) if not is_planned(spec, names))
    results = Results(store, [*planned.values(), *own.specs])
    panels = distinct(panel for name in STUDIES for panel in study(name, setup).panels)
    return Material(results, setup, [panel for panel in panels if results.complete(panel.curves)], own)


def compose(material: Material) -> Document:
    """The whole report."""
    results, setup, panels = material.results, material.setup, material.panels
    verdicts = {claim: judge(claim, results, setup) for claim in CLAIMS}
    again = {name: _judged_again(results, replace(setup, reading=name)) for name in READINGS}
    run = {name: found for name, found in again.items() if any(one.word != UNKNOWN for one in found.values())}
    found = goals.goals(results, setup)
    past = [f"Past the paper: {goals.goals_verdict(found)}"] if found else []
    extensions = (goals.section(results, setup), growth.depth(results, setup), growth.scaling(results, setup))
    sections = [
        Section("Summary", [Text(text) for text in (*summary(verdicts, results, panels, setup, _changes(run)), *past)]),
        Section("The paper's claims", _claims(verdicts, results)),
        Section("Figures", _figures(results, setup)),
        *(section for section in extensions if section is not None),
        *([Section("Other runs", _own(results, material.own))] if material.own.panels else []),
        Section("All cells", [cells_table(results, panels)]),
        Section("By role and by action", [roles_table(results, panels), actions_table(results, panels)]),
        *([Section("What the heads do", heads)] if (heads := heads_of_one(results, setup)) else []),
        Section("Other readings of the paper", _readings(run, setup)),
        Section("Models and their learning rates", [sizes_table(results, panels), *_search(results, setup)]),
        Section("Decisions", [decisions_table()]),
        Section("Where this comes from", _origin(results, setup)),
    ]
    return Document("TPR-Attention for combinatorial generalization: a reproduction", sections)


def _claims(verdicts: dict[Claim, Verdict], results: Results) -> list[Block]:
    order = sorted(verdicts, key=lambda claim: WORST_FIRST.index(verdicts[claim].word))
    rows = [
        [claim.name, verdicts[claim].word, _count(verdicts[claim]), claim.statement, claim.source, claim.test]
        for claim in order
    ]
    evidence = [
        [
            claim.name,
            one.panel.name,
            one.against,
            number(one.ours),
            number(one.theirs),
            interval(one.ratio),
            interval(one.difference),
            *floor_cells(results, one.panel),
            "yes" if one.favourable else "no",
        ]
        for claim in order
        for one in verdicts[claim].evidence
    ]
    explained = (
        "A cell is one task and one test. A claim holds if every cell speaks for it, in part if at least half do. "
        "Ratios are geometric means over seeds of the other's loss divided by TPR-Attention's, each seed compared with "
        "itself (of `particularly when factors interact`: of the advantage with the interaction divided by that "
        "without); brackets are 95 % bootstrap intervals over seeds, which with five seeds are rather too narrow. "
        f"Losses below {ROUNDING:g} count as that."
    )
    columns = ["claim", "verdict", "cells", "what the paper says", "where", "a cell speaks for it if"]
    compared = ["claim", "cell", "against", "ours", "theirs", "ratio [95 %]", "difference [95 %]"]
    compared += [*FLOORS.values(), "solvable", "in favour"]
    return [
        Table("claims", "Each claim and its verdict, failures first.", columns, rows),
        Text(explained),
        Table("evidence", "Every comparison behind the verdicts.", compared, evidence, folded=True),
    ]


def _count(verdict: Verdict) -> str:
    return f"{verdict.favourable} of {verdict.cells}"


def _figures(results: Results, setup: Setup) -> list[Block]:
    made = [study(name, setup) for name in STUDIES]
    return [Figure(one, one.caption) for one in made if any(map(results.stored, one.curves()))]


def _own(results: Results, own: Study) -> list[Block]:
    rows = [
        [
            panel.row,
            panel.column,
            curve.label,
            str(len(losses)),
            averaged(losses),
            number(standard_error(losses)),
        ]
        for panel in own.panels
        for curve in panel.curves
        for losses in [results.final(curve, panel.condition)]
    ]
    columns = ["task", "test", "run", "seeds", "mean", "SE"]
    drawn = in_brief(own)
    return [Figure(drawn, drawn.caption), Table("own-runs", "Final losses of these runs.", columns, rows)]


def _judged_again(results: Results, setup: Setup) -> dict[Claim, Verdict]:
    """The verdicts that the main figures alone can give, under a reading."""
    return {claim: judge(claim, results, setup, claim.main) for claim in CLAIMS if claim.main}


def _changes(run: Mapping[str, dict[Claim, Verdict]]) -> dict[str, bool]:
    """Which of the other readings change a verdict."""
    ours, *others = READINGS
    return {
        name: any(verdict.word != run[ours][claim].word for claim, verdict in run[name].items())
        for name in others
        if name in run and ours in run
    }


def _readings(run: Mapping[str, dict[Claim, Verdict]], setup: Setup) -> list[Block]:
    if len(run) < 2:
        return [Text("Not run yet: `tpr-attention reproduce --studies readings` trains and adds them.")]
    rows = []
    for name, found in run.items():
        entries = [_read_again(one, verdict, setup, replace(setup, reading=name)) for one, verdict in found.items()]
        reading = READINGS[name]
        rows.append([name, reading.title, reading.decision or "-", *(entry for two in entries for entry in two)])
    heads = [entry for claim in CLAIMS if claim.main for entry in (claim.name, "cells; smallest ratio")]
    text = (
        "One choice changed at a time, for the two main figures (red squares held out); `unchanged` where a choice "
        "does not touch the runs a claim is about. After the number of cells in favour stands the ratio of the least "
        "favourable comparison, as in the evidence above. Learning rates are not searched anew: models that a reading "
        "puts in the place of others take theirs. With six actions a batch has 96 pairs instead of 100."
    )
    columns = ["reading", "what is different", "record", *heads]
    return [Text(text), Table("readings", "Claim by reading: the verdicts.", columns, rows)]


def _read_again(claim: Claim, verdict: Verdict, ours: Setup, changed: Setup) -> tuple[str, str]:
    """The verdict under a reading, and how near it was."""
    if changed != ours and specs_of(claim.main, changed) == specs_of(claim.main, ours):
        return "unchanged", "-"
    worst = number(min(one.ratio.value for one in verdict.evidence)) if verdict.evidence else "-"
    return verdict.word, f"{_count(verdict)}; {worst}"


def _search(results: Results, setup: Setup) -> list[Block]:
    rows = []
    for (label, interaction, heads), rates in search(setup.steps).items():
        if all(spec.digest in results.specs for specs in rates.values() for spec in specs):
            best = best_rate(rates, lambda spec: _inside(results, spec))
            scores = [number(10 ** score([_inside(results, spec) for spec in rates[rate]])) for rate in GRID]
            same = "yes" if best == RATES[label, interaction, heads] else "no"
            rows.append([label, interaction or "none", str(heads), *scores, f"{best:g}", same])
    if not rows:
        return [Text("The search for learning rates can be repeated: `tpr-attention reproduce --studies search`.")]
    columns = ["model", "interaction", "heads", *(f"{rate:g}" for rate in GRID), "best", "is the one used"]
    caption = "In-distribution loss for each learning rate: geometric mean over three seeds that no study uses."
    return [Table("search", caption, columns, rows)]


def _inside(results: Results, spec: RunSpec) -> float:
    return float(results.final(Curve("", (spec,)), "in_distribution")[0])


def _origin(results: Results, setup: Setup) -> list[Block]:
    origins = results.provenance()
    figures = {spec.digest for spec in specs_of(STUDIES, setup) if spec.model in CONTESTANTS}
    facts = {
        key: ", ".join(sorted({str(origin.get(key, "unknown")) for origin in origins}))
        for key in (*dict.fromkeys(key for origin in origins for key in origin),)
        if key not in ("seconds", "parameters", "trained_together")
    }
    text = (
        f"{len(results.specs)} stored runs, {len(figures & set(results.specs))} of them trainings for the figures, "
        f"with {setup.steps:,} steps and {setup.seeds} seeds."
    )
    how = (
        "To repeat it: `make reproduce` in a clone of the repository, or `tpr-attention reproduce` where the package "
        "is installed with the extra `bench`; `tpr-attention reproduce --studies readings search` adds the other "
        "readings and the search for learning rates. What is stored is not trained again."
    )
    rows = [[key.replace("_", " "), value] for key, value in facts.items()]
    return [
        Text(text),
        Text(how),
        Table("provenance", "Builds and machines of the stored runs.", ["what", "which"], rows),
    ]
