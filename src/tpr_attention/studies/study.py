"""What a study is: the runs it needs, and what the report says of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tpr_attention.report.document import Section
from tpr_attention.report.panels import Look, Series
from tpr_attention.report.results import Results
from tpr_attention.report.tables import Badge
from tpr_attention.training.spec import RunSpec

__all__ = ["SEARCH_SEEDS", "Chapter", "Judged", "Setup", "Specs", "Study", "over_seeds", "over_sizes"]

SEARCH_SEEDS = (1000, 1001, 1002)
"""Seeds on which options are chosen; no reported run has them."""


@dataclass(frozen=True)
class Setup:
    """How much is trained: `seeds` runs of each kind, from the first seed on."""

    seeds: int = 5
    steps: int = 10_000
    first_seed: int = 0


class Judged(NamedTuple):
    """A claim of the paper under a condition: a cell of the map on the first screen.

    Args:
        claim: Its short name.
        says: What it says, in a few words.
        condition: Under what it was judged, in a few words.
        badge: The verdict, and on how many cells it rests.
        section: The title of the section that has the evidence.
        setting: Where the sentences of the first screen say that it holds or not; empty if they are not about it.
        pairs: The number of training pairs; None for that of the paper's figures.
        is_whole: Whether all cells of the claim were run.
    """

    claim: str
    says: str
    condition: str
    badge: Badge
    section: str
    setting: str = ""
    pairs: int | None = None
    is_whole: bool = False


class Chapter(NamedTuple):
    """What the report says of a study.

    Args:
        summary: Sentences for the first screen, the most important first; sections say them with the evidence.
        sections: The results.
        appendix: What stands behind them, at the end of the report.
        judged: Verdicts on the paper's claims.
    """

    summary: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    appendix: tuple[Section, ...] = ()
    judged: tuple[Judged, ...] = ()


Specs = Callable[[Setup], Iterable[RunSpec]]


@dataclass(frozen=True, eq=False)
class Study:
    """Runs and what is said of them.

    Args:
        words: What it is about, in one line.
        plans: What can be trained of it by name; the study's own name stands for all of it if no plan has that name.
        chapter: Its part of the report; an empty one while too little is stored.
        by_default: The plans that `reproduce` trains if none is named.
        is_scaled: Whether its runs have other steps than those of the setup.
        first_seed: The seed of the first run of each kind; others follow. Its plans make the setup have it.
        quick: The plan that `reproduce --quick` trains of it, and how much; None if there is no such plan.
        to_judge: What its plans by default judge, before they are run.
    """

    name: str
    words: str
    plans: Mapping[str, Specs]
    chapter: Callable[[Results, Setup], Chapter]
    by_default: tuple[str, ...] = ()
    is_scaled: bool = False
    first_seed: int = 0
    quick: tuple[str, Setup] | None = None
    to_judge: tuple[Judged, ...] = ()

    def specs(self, setup: Setup) -> tuple[RunSpec, ...]:
        """All runs of all plans, each once."""
        return tuple(dict.fromkeys(spec for plan in self.plans.values() for spec in plan(setup)))


def over_seeds(name: str, spec: RunSpec, setup: Setup, words: str = "", look: Look | None = None) -> Series:
    """A series of a spec, with the steps and each of the seeds of a setup."""
    spec = spec.changed({"training.steps": setup.steps})
    seeds = range(setup.first_seed, setup.first_seed + setup.seeds)
    return Series(name, tuple(map(spec.with_seed, seeds)), words, look)


def over_sizes(name: str, specs: Iterable[RunSpec], setup: Setup, words: str = "", look: Look | None = None) -> Series:
    """A series with a spec for each size, with the steps and each of the seeds of a setup."""
    return Series(name, tuple(one for spec in specs for one in over_seeds(name, spec, setup).specs), words, look)
