"""The report of a store: a chapter for each study, runs of no study, and where everything comes from."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import count

from tpr_attention.report.document import Document, Section, Text
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Table
from tpr_attention.runner.store import Store
from tpr_attention.studies import STUDIES
from tpr_attention.studies.study import SEARCH_SEEDS, Setup, Study
from tpr_attention.studies.user_runs import user_runs, user_section
from tpr_attention.training.spec import RunSpec

__all__ = ["compose", "infer_setup", "is_planned"]

TITLE = "TPR-Attention for combinatorial generalization: a reproduction"
NOT_OF_THE_BUILD = ("seconds", "parameters", "trained_together")


def infer_setup(store: Store) -> Setup:
    """How a store was filled: the steps of most runs that belong to a study, and the seeds of most kinds of run."""
    specs = [spec for spec in map(store.spec, store) if spec.seed < min(SEARCH_SEEDS)]
    whole, scaled = (
        [spec for spec in specs if is_planned(spec, [study for study in STUDIES.values() if study.is_scaled == kind])]
        for kind in (False, True)
    )
    if not (chosen := whole or scaled):
        return Setup()
    steps = Counter(spec.training.steps for spec in chosen).most_common(1)[0][0]
    seeds: dict[RunSpec, set[int]] = {}
    for spec in chosen:
        if spec.training.steps == steps:
            seeds.setdefault(spec.with_seed(0), set()).add(spec.seed)
    counts = Counter(next(seed for seed in count() if seed not in found) for found in seeds.values())
    usual = max(counts, key=lambda number: (counts[number], number))
    return Setup(seeds=usual or max(map(max, seeds.values())) + 1, steps=steps)


def compose(store: Store, setup: Setup) -> tuple[Document, Results]:
    """The report of a store, and the results it is made from."""
    stored = list(map(store.spec, store))
    planned = Results(store, (spec for study in STUDIES.values() for spec in study.specs(setup)))
    chapters = {study: study.chapter(planned, setup) for study in STUDIES.values()}
    shown = [study for study, chapter in chapters.items() if chapter.sections]
    others = user_runs(store, (spec for spec in stored if not is_planned(spec, shown)))
    results = Results(store, [*planned.specs.values(), *others.specs]) if others.panels else planned
    summary = [Text(said) for chapter in chapters.values() for said in chapter.summary]
    sections = [
        Section("Summary", summary),
        *(section for chapter in chapters.values() for section in chapter.sections),
        *([user_section(results, others)] if others.panels else []),
        *(section for chapter in chapters.values() for section in chapter.appendix),
        _origin(results, setup, len(stored)),
    ]
    return Document(TITLE, sections), results


def is_planned(spec: RunSpec, studies: Iterable[Study]) -> bool:
    """Whether a run belongs to some of these studies, with whatever number of seeds and steps."""
    names = tuple(study.name for study in studies)
    return not {spec.digest, spec.with_seed(0).digest}.isdisjoint(_planned(spec.training.steps, names))


@cache
def _planned(steps: int, names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(spec.digest for name in names for spec in STUDIES[name].specs(Setup(1, steps)))


def _origin(results: Results, setup: Setup, stored: int) -> Section:
    origins = results.provenance()
    keys = dict.fromkeys(key for origin in origins for key in origin if key not in NOT_OF_THE_BUILD)
    rows = [
        [key.replace("_", " "), ", ".join(sorted({str(origin.get(key, "unknown")) for origin in origins}))]
        for key in keys
    ]
    said = (
        f"{len(results.specs)} of {stored} stored runs are in this report. Studies have {setup.seeds} "
        f"seed{'s' if setup.seeds != 1 else ''} and {setup.steps:,} steps, unless they say otherwise."
    )
    how = (
        "To repeat it: `make reproduce` in a clone of the repository, or `tpr-attention reproduce` where the package "
        "is installed with the extra `bench`; `tpr-attention reproduce --studies readings search` adds the other "
        "readings and the search for learning rates. What is stored is not trained again."
    )
    return Section(
        "Where this comes from",
        [
            Text(said),
            Text(how),
            Table("provenance", "Builds and machines of the stored runs.", [Column("what"), Column("which")], rows),
        ],
    )
