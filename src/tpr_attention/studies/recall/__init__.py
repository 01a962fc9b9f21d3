"""Recall over sequences: capacity, overwriting, held-out pairings and combinations, chains of recalls."""

from collections.abc import Iterator

from tpr_attention.report.document import Section
from tpr_attention.report.results import Results
from tpr_attention.studies.recall import capacity, overwriting
from tpr_attention.studies.recall.contest import Contest
from tpr_attention.studies.recall.held_out import PARTS, held_out_summary
from tpr_attention.studies.recall.hops import HOPS, hops_section
from tpr_attention.studies.study import Chapter, Setup, Study
from tpr_attention.training.spec import RunSpec

__all__ = ["RECALL"]

THIN = {"compositional": ("tpr", "tpr-softmax", "softmax")}
"""Part to the contestants that the thin version has of it."""


def _untrained() -> Iterator[Contest]:
    yield HOPS
    yield from overwriting.replace_contests().values()


def _specs(setup: Setup) -> Iterator[RunSpec]:
    """All runs."""
    for plan in (*capacity.figures(setup), *overwriting.figures(setup)):
        yield from plan.specs
    for contest in (*(part.contest for part in PARTS.values()), *_untrained()):
        for series in contest.every(setup):
            yield from series.specs


def _thin(setup: Setup) -> Iterator[RunSpec]:
    """A part of the runs that takes a few minutes: the smallest sizes, few contestants, and what is not trained."""
    main = capacity.figures(setup)[0]
    yield from (spec for spec in main.specs if spec.task.options["num_pairs"] in capacity.THIN_SIZES)
    yield from overwriting.specs_at(overwriting.THIN_SIZES, setup)
    for name, entrants in THIN.items():
        for entrant in entrants:
            yield from PARTS[name].contest.series(entrant, setup).specs
    for contest in _untrained():
        for series in contest.every(setup):
            yield from series.specs


def _chapter(results: Results, setup: Setup) -> Chapter:
    sections: list[Section] = [
        *capacity.capacity_section(results, setup),
        *overwriting.overwriting_section(results, setup),
        *(section for part in PARTS.values() for section in part.section(results, setup)),
        *hops_section(results, setup),
    ]
    summary = [*capacity.capacity_summary(results, setup), *held_out_summary(results, setup)]
    return Chapter(tuple(summary), tuple(sections))


RECALL = Study(
    "recall",
    "recall over sequences: capacity, overwriting, new pairings, chains",
    {"recall": _specs, "recall-thin": _thin},
    _chapter,
    is_scaled=True,
    quick=("recall-thin", Setup(seeds=1)),
)
