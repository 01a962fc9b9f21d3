"""Images: from two images and an action to the image of the answer, on combinations never seen."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tpr_attention.report.results import Results
from tpr_attention.studies.images.contestants import BLOCKS, FIRST_SEED, QUICK, Contestant, series_of
from tpr_attention.studies.images.sections import sections, summary
from tpr_attention.studies.study import Chapter, Setup, Study
from tpr_attention.training.spec import RunSpec

__all__ = ["IMAGES"]


def _own(setup: Setup) -> Setup:
    return replace(setup, first_seed=FIRST_SEED)


def _specs(setup: Setup) -> Iterator[RunSpec]:
    """All runs, the main model first."""
    for block in BLOCKS.values():
        yield from _of(block, setup)


def _of(block: dict[str, Contestant], setup: Setup) -> Iterator[RunSpec]:
    for series in series_of(block, _own(setup)).values():
        yield from series.specs


def _chapter(results: Results, setup: Setup) -> Chapter:
    own = _own(setup)
    return Chapter(tuple(summary(results, own)), tuple(sections(results, own)))


IMAGES = Study(
    "images",
    "from two images and an action to the image of the answer",
    {
        "images": _specs,
        **{f"images-{name}": partial(_of, block) for name, block in (*BLOCKS.items(), ("quick", QUICK))},
    },
    _chapter,
    is_scaled=True,
    first_seed=FIRST_SEED,
    quick=("images-quick", Setup(seeds=1, steps=1_500)),
)
