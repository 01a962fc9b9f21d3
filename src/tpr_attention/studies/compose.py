"""The report of a store: a chapter for each study, runs of no study, and where everything comes from."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import count

from tpr_attention.report.document import Document, Section, Text, in_order
from tpr_attention.report.panels import Plan
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Table
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.studies import STUDIES
from tpr_attention.studies.kinds import runs_table
from tpr_attention.studies.opening import first_screen
from tpr_attention.studies.study import SEARCH_SEEDS, Chapter, Judged, Setup, Study
from tpr_attention.studies.user_runs import user_opening, user_runs, user_section
from tpr_attention.training.spec import RunSpec

__all__ = ["compose", "infer_setup", "is_planned"]

TITLE = "TPR-Attention for combinatorial generalization: a reproduction"
NOT_OF_THE_BUILD = ("seconds", "training_seconds", "finishing_seconds", "parameters", "trained_together", "diverged")
MOST_TASKS = 3
"""Tasks that the title of a report names."""


def infer_setup(store: Store) -> Setup:
    """How a store was filled: the steps of most runs that belong to a study, and the seeds of most kinds of run.

    Studies that have other steps and seeds than the setup count only if there is no other: the largest numbers are then
    those of the setup, as far as they tell.
    """
    found = [
        (spec, studies) for spec in _specs(store) if spec.seed not in SEARCH_SEEDS and (studies := _studies_of(spec))
    ]
    whole = [(spec, full) for spec, studies in found if (full := [study for study in studies if not study.is_scaled])]
    if not found:
        return Setup()
    runs, choose = (whole, _usual) if whole else (found, max)
    steps = choose(spec.training.steps for spec, _ in runs)
    seeds: dict[tuple[str, int], set[int]] = {}
    for spec, (study, *_) in runs:
        first = _first_seed(spec, steps, study)
        if first is not None:
            seeds.setdefault((_kind(spec), first), set()).add(spec.seed - first)
    found_seeds = choose(next(seed for seed in count() if seed not in among) for among in seeds.values())
    return Setup(seeds=found_seeds or max(map(max, seeds.values())) + 1, steps=steps)


def _usual(numbers: Iterable[int]) -> int:
    """The most frequent number; of equally frequent ones the largest."""
    counts = Counter(numbers)
    return max(counts, key=lambda number: (counts[number], number))


def _specs(store: Store) -> Iterable[RunSpec]:
    for digest in store:
        try:
            yield store.spec(digest)
        except StoreError:  # the report says so
            continue


def compose(store: Store, setup: Setup) -> tuple[Document, Results]:
    """The report of a store, and the results it is made from.

    It is about the studies of which a run is stored; if there is none, about the runs that are there.
    """
    stored, left_out = store.readable()
    among = (spec for study in STUDIES.values() for spec in study.specs(setup))
    planned = Results(store, (spec for spec in among if spec.digest in stored))
    chapters = {study: study.chapter(planned, setup) for study in _present(list(stored.values()))}
    shown = [study for study, chapter in chapters.items() if chapter.sections]
    others = user_runs(store, (spec for spec in stored.values() if not is_planned(spec, shown)))
    if not shown:
        return _of_users(store, others, left_out)
    results = Results(store, [*planned.specs.values(), *others.specs]) if others.panels else planned
    sections = [
        *(section for chapter in chapters.values() for section in chapter.sections),
        *([user_section(results, others)] if others.panels else []),
        *(section for chapter in chapters.values() for section in chapter.appendix),
        _runs(results),
        _origin(results, _how(shown, setup), len(stored), left_out),
    ]
    default = [study for study in shown if study.by_default]
    title = TITLE if default else f"TPR-Attention, {'; '.join(study.words for study in shown)}"
    said = [sentence for chapter in chapters.values() for sentence in chapter.summary]
    opening = first_screen(_judged(chapters.values(), bool(default)), said)
    return Document(title, [*map(in_order, sections)], left_out, opening), results


def _judged(chapters: Iterable[Chapter], is_default: bool) -> list[Judged]:
    """The verdicts of all chapters; where the report has a study by default, also what the others would judge."""
    found = [one for chapter in chapters for one in chapter.judged]
    known = {(one.claim, one.condition) for one in found}
    planned = [one for study in STUDIES.values() for one in study.to_judge] if is_default else []
    return [*found, *(one for one in planned if (one.claim, one.condition) not in known)]


def _present(specs: Sequence[RunSpec]) -> list[Study]:
    """The studies that some stored run belongs to and to no other; the first if all runs belong to several."""
    if not specs:
        return [*STUDIES.values()]
    of_runs = [_studies_of(spec) for spec in specs]
    alone = {studies[0] for studies in of_runs if len(studies) == 1}
    several = {study for studies in of_runs for study in studies}
    return [study for study in STUDIES.values() if study in alone] or [
        study for study in STUDIES.values() if study in several
    ][:1]


def _of_users(store: Store, plan: Plan, left_out: Sequence[str]) -> tuple[Document, Results]:
    """The report of runs that belong to no study."""
    results = Results(store, plan.specs)
    tasks = list(dict.fromkeys(spec.task.name for spec in plan.specs))
    more = f" and {len(tasks) - MOST_TASKS} other tasks" if len(tasks) > MOST_TASKS else ""
    title = f"Runs of {', '.join(tasks[:MOST_TASKS])}{more}"
    metrics = dict.fromkeys(panel.metric for panel in plan.panels)
    caption = f"The {' or '.join(metrics)} of each kind of run over training, in each test."
    how = (
        "To repeat it: `tpr-attention run` with the keys that `tpr-attention show DIGEST` tells. What is stored is not "
        "trained again."
    )
    sections = [
        user_section(results, shown := replace(plan, title="Results", caption=caption)),
        _runs(results),
        _origin(results, ["", how], len(plan.specs), left_out),
    ]
    return Document(title, [*map(in_order, sections)], left_out, user_opening(results, shown)), results


def is_planned(spec: RunSpec, studies: Iterable[Study]) -> bool:
    """Whether a run belongs to some of these studies, with whatever number of seeds and steps."""
    return not set(studies).isdisjoint(_studies_of(spec))


def _studies_of(spec: RunSpec) -> list[Study]:
    """The studies that a run belongs to.

    They are those that plan its kind from the last first seed before its own on. Two studies may have runs of one kind
    and other first seeds: seed 100 is the first of one, not the 101st of the other.
    """
    studies = [study for study in STUDIES.values() if spec.task.name in _tasks(study.name)]
    firsts = {study: first for study in studies if (first := _first_seed(spec, spec.training.steps, study)) is not None}
    return [study for study, first in firsts.items() if first == max(firsts.values())]


def _first_seed(spec: RunSpec, steps: int, study: Study) -> int | None:
    """The last seed up to its own with which a study begins runs of this kind; None if there is none."""
    return max(
        (first for first in _planned(steps, study.name).get(_kind(spec), ()) if first <= spec.seed), default=None
    )


def _kind(spec: RunSpec) -> str:
    """What runs that differ in their seeds only have in common."""
    return spec.with_seed(0).digest


@cache
def _tasks(name: str) -> frozenset[str]:
    """The names of a study's tasks: all specs of a study are only made for runs that may be among them."""
    return frozenset(spec.task.name for spec in STUDIES[name].specs(Setup(1)))


@cache
def _planned(steps: int, name: str) -> dict[str, list[int]]:
    """The kinds of runs of a study, with the seeds that they begin with."""
    found: dict[str, list[int]] = {}
    for spec in STUDIES[name].specs(Setup(1, steps)):
        found.setdefault(_kind(spec), []).append(spec.seed)
    return found


def _runs(results: Results) -> Section:
    said = "`tpr-attention show DIGEST` shows one of them, `tpr-attention runs` lists and compares them."
    return Section("Runs", [Text(said), runs_table(results)])


def _how(shown: Sequence[Study], setup: Setup) -> list[str]:
    """How much was trained, and how to repeat it."""
    much = (
        f" Studies have {setup.seeds} seed{'s' if setup.seeds != 1 else ''} and {setup.steps:,} steps, unless they say "
        "otherwise."
    )
    if not any(study.by_default for study in shown):
        return [much, f"To repeat it: `tpr-attention reproduce --studies {' '.join(study.name for study in shown)}`."]
    return [
        much,
        "To repeat it: `make reproduce` in a clone of the repository, or `tpr-attention reproduce` where the package "
        "is installed with the extra `bench`; `tpr-attention reproduce --studies readings search data` adds the other "
        "readings, the search for learning rates and all numbers of training pairs. What is stored is not trained "
        "again.",
    ]


def _origin(results: Results, how: Sequence[str], stored: int, left_out: Sequence[str]) -> Section:
    """Where runs come from, and which were left out."""
    origins = results.provenance()
    keys = dict.fromkeys(key for origin in origins for key in origin if key not in NOT_OF_THE_BUILD)
    rows = [
        [key.replace("_", " "), ", ".join(sorted({str(origin.get(key, "unknown")) for origin in origins}))]
        for key in keys
    ]
    much, repeat = how
    lost = [Text(f"Left out, because they cannot be read: {'; '.join(left_out)}.")] if left_out else []
    return Section(
        "Where this comes from",
        [
            Text(f"{len(results.specs)} of {stored} stored runs are in this report.{much}"),
            *lost,
            Text(repeat),
            Table("provenance", "Builds and machines of the stored runs.", [Column("what"), Column("which")], rows),
        ],
    )
