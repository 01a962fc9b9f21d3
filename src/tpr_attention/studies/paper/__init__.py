"""The paper's experiments: its figures, its claims, other readings of it, and the search for learning rates."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Panel
from tpr_attention.report.results import Results
from tpr_attention.report.style import number
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.contestants import OURS, TESTS
from tpr_attention.studies.kinds import linked
from tpr_attention.studies.paper.cells import (
    FLOOR_COLUMNS,
    actions_table,
    cells_table,
    distinct_cells,
    floor_cells,
    roles_table,
    sizes_table,
)
from tpr_attention.studies.paper.claims import CLAIMS, FAILS, HOLDS, PARTLY, UNKNOWN, Claim, Verdict, judge, series_of
from tpr_attention.studies.paper.decisions import decisions_table
from tpr_attention.studies.paper.figures import FIGURES, MAIN, figure
from tpr_attention.studies.paper.heads import heads_of_one, two_heads
from tpr_attention.studies.paper.readings import DEFAULT, READINGS
from tpr_attention.studies.paper.search import search, search_blocks
from tpr_attention.studies.paper.summary import summary
from tpr_attention.studies.study import Chapter, Judged, Setup, Study
from tpr_attention.training.spec import ROUNDING, RunSpec

__all__ = ["PAPER_STUDY"]

TITLE = "The paper's claims"
CONDITION = "the paper's figures"
WORST_FIRST = (FAILS, PARTLY, HOLDS, UNKNOWN)


def _chapter(results: Results, setup: Setup) -> Chapter:
    panels = distinct_cells(panel for name in FIGURES for panel in figure(name, setup).panels)
    complete = [panel for panel in panels if results.complete(panel.series)]
    verdicts = {claim: judge(claim, results, setup) for claim in CLAIMS}
    again = {name: _judged_again(results, setup, name) for name in READINGS if _is_run(results, setup, name)}
    heads = heads_of_one(results, setup)
    said = summary(verdicts, results, panels, setup, _changes(again))
    return Chapter(
        (),
        (
            Section("Figures", _figures(results, setup)),
            Section(TITLE, [*map(Text, said), *_claims(verdicts, results)]),
        ),
        (
            Section("All cells", [cells_table(results, complete)]),
            Section("By role and by action", [roles_table(results, complete), actions_table(results, complete)]),
            *([Section("What the heads do", heads)] if heads else []),
            Section("Other readings of the paper", _readings(again, setup)),
            Section(
                "Models and their learning rates", [sizes_table(results, complete), *search_blocks(results, setup)]
            ),
            Section("Decisions", [decisions_table()]),
        ),
        tuple(_judged(verdicts, setup)),
    )


def _judged(verdicts: Mapping[Claim, Verdict], setup: Setup) -> Iterator[Judged]:
    """All verdicts for the map. Sentences are about the main figures only where not all splits can be judged."""
    are_judged = {claim.name for claim, verdict in verdicts.items() if verdict.badge != UNKNOWN}
    settings = {
        claim: {panel.cell["interaction"] for name in claim.figures for panel in figure(name, setup).panels}
        for claim in verdicts
        if claim.setting
    }
    known: dict[bool, set[str]] = {
        is_main: {
            one
            for claim in settings
            if bool(claim.main) == is_main and claim.name in are_judged
            for one in settings[claim]
        }
        for is_main in (True, False)
    }
    for claim, verdict in verdicts.items():
        is_known = claim.name in are_judged
        if claim.main:
            is_said = is_known and not settings.get(claim, set()) <= known[False]
        else:
            is_said = is_known or not settings.get(claim, set()) <= known[True]
        note = f"{_count(verdict)}{' cells' if is_known else ''}" if verdict.stored else ""
        badge, setting = verdict.badge._replace(note=note), claim.setting if is_said else ""
        yield Judged(claim.name, claim.says, CONDITION, badge, TITLE, setting, is_whole=is_known)


def _claims(verdicts: Mapping[Claim, Verdict], results: Results) -> list[Block]:
    order = sorted(verdicts, key=lambda claim: WORST_FIRST.index(verdicts[claim].badge))
    rows = [
        [claim.name, verdicts[claim].badge, _count(verdicts[claim]), claim.statement, claim.source, claim.test]
        for claim in order
    ]
    evidence = [
        [
            *(claim.name, one.panel.name, one.against, linked(one.ours, series_of(one.panel, OURS).specs[0])),
            *(linked(one.theirs, one.run) if one.run else one.theirs, one.ratio, one.difference),
            *floor_cells(results, one.panel),
            one.favourable,
        ]
        for claim in order
        for one in verdicts[claim].evidence
    ]
    tests = ", ".join(f"`{condition}` ({said})" for condition, said in TESTS.items())
    explained = (
        f"A cell is one task and one test: {tests}. A claim holds if every cell speaks for it, in part if at least "
        "half do. Losses and ratios of the evidence are geometric means over seeds; a ratio is the other's loss "
        "divided by TPR-Attention's, each seed compared with itself (of `particularly when factors interact`: the "
        "advantage with the interaction divided by that without); brackets are 95 % bootstrap intervals over seeds, "
        f"which with five seeds are rather too narrow. Losses below {ROUNDING:g} count as that."
    )
    columns = [Column("claim"), Column("verdict", "badge"), Column("cells"), Column("what the paper says")]
    columns += [Column("where"), Column("a cell speaks for it if")]
    compared = [Column("claim"), Column("cell"), Column("against"), Column("ours, geometric mean", "number")]
    compared += [Column("theirs, geometric mean", "number"), Column("ratio [95 %]", "interval")]
    compared += [
        Column("arithmetic mean of differences [95 %]", "interval"),
        *FLOOR_COLUMNS,
        Column("in favour", "yes_no"),
    ]
    return [
        Table("claims", "Each claim and its verdict, failures first.", columns, rows, "open", latex=True),
        Text(explained),
        Table("evidence", "Every comparison behind the verdicts.", compared, evidence, "file"),
    ]


def _count(verdict: Verdict) -> str:
    """How many cells speak for a claim; if it was not judged, how many are stored."""
    if verdict.badge == UNKNOWN:
        return f"{verdict.stored} of {verdict.cells} stored"
    return f"{verdict.favourable} of {verdict.cells}"


def _figures(results: Results, setup: Setup) -> list[Block]:
    plans = [figure(name, setup) for name in FIGURES]
    return [Curves(plan, results) for plan in plans if any(map(results.stored, plan.series()))]


def _main_specs(setup: Setup, reading: str, names: Iterable[str] = MAIN) -> tuple[RunSpec, ...]:
    return tuple(dict.fromkeys(spec for name in names for spec in figure(name, setup, reading).specs))


def _is_run(results: Results, setup: Setup, reading: str) -> bool:
    """Whether a reading makes a difference, and all contestants of both main figures are stored under it."""
    if reading != DEFAULT and _main_specs(setup, reading) == _main_specs(setup, DEFAULT):
        return False  # it asks for the steps that the setup has
    panels: Sequence[Panel] = [panel for name in MAIN for panel in figure(name, setup, reading).panels]
    return all(results.complete(panel.series) for panel in panels)


def _judged_again(results: Results, setup: Setup, reading: str) -> dict[Claim, Verdict]:
    """The verdicts that the main figures alone can give, under a reading."""
    return {claim: judge(claim, results, setup, claim.main, reading) for claim in CLAIMS if claim.main}


def _changes(run: Mapping[str, Mapping[Claim, Verdict]]) -> dict[str, bool]:
    """Which of the other readings that were run change a verdict."""
    if DEFAULT not in run:
        return {}
    return {
        name: any(verdict.badge != run[DEFAULT][claim].badge for claim, verdict in found.items())
        for name, found in run.items()
        if name != DEFAULT
    }


def _readings(run: Mapping[str, Mapping[Claim, Verdict]], setup: Setup) -> list[Block]:
    if len(run) < 2:
        return [Text("Not run yet: `tpr-attention reproduce --studies readings` trains and adds them.")]
    rows = []
    for name, found in run.items():
        reading = READINGS[name]
        entries = (entry for one, verdict in found.items() for entry in _read_again(one, verdict, setup, name))
        rows.append([name, reading.title, reading.decision or None, *entries])
    heads = [entry for claim in CLAIMS if claim.main for entry in (claim.name, "cells; smallest ratio")]
    text = (
        "One choice changed at a time, for the two main figures (red squares held out); `unchanged` where a choice "
        "does not touch the runs a claim is about. After the number of cells in favour stands the ratio of the least "
        "favourable comparison, as in the evidence above. Learning rates are not searched anew, also not for other "
        "numbers of pairs or steps: models that a reading puts in the place of others take theirs. With six actions a "
        "batch has 96 pairs instead of 100."
    )
    columns = [Column(title) for title in ("reading", "what is different", "record", *heads)]
    return [Text(text), Table("readings", "Claim by reading: the verdicts.", columns, rows, "open")]


def _read_again(claim: Claim, verdict: Verdict, setup: Setup, reading: str) -> tuple[str, str | None]:
    """The verdict under a reading, and how near it was."""
    if reading != DEFAULT and _main_specs(setup, reading, claim.main) == _main_specs(setup, DEFAULT, claim.main):
        return "unchanged", None
    worst = number(min(one.ratio.value for one in verdict.evidence)) if verdict.evidence else "-"
    return verdict.badge.word, f"{_count(verdict)}; {worst}"


def _of_figure(name: str) -> Callable[[Setup], tuple[RunSpec, ...]]:
    return lambda setup: figure(name, setup).specs


def _of_readings(setup: Setup) -> Iterator[RunSpec]:
    return (spec for reading in READINGS for spec in _main_specs(setup, reading))


PAPER_STUDY = Study(
    "paper",
    "the paper's figures and claims, other readings of it, the search for learning rates",
    {
        **{name: _of_figure(name) for name in FIGURES},
        "readings": _of_readings,
        "search": lambda setup: search(setup.steps).specs(),
        "two-heads": two_heads,
    },
    _chapter,
    by_default=(*FIGURES, "two-heads"),
)
