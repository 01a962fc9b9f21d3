"""Every figure of the paper: which trainings it needs and how it is laid out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

from tpr_attention.experiments.beyond import BEYOND
from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS, contestant, floor
from tpr_attention.experiments.growth import GROWTH
from tpr_attention.experiments.layout import INTERACTIONS, SPLITS, TESTS, Band, Panel, Setup, Study, over_seeds
from tpr_attention.experiments.readings import READINGS
from tpr_attention.experiments.search import search
from tpr_attention.experiments.spec import RunSpec

__all__ = ["PLANS", "READ_AGAIN", "STUDIES", "is_planned", "specs_of", "study"]


def study(name: str, setup: Setup | None = None) -> Study:
    """One of `STUDIES`.

    >>> main = study("main-noninteracting")
    >>> [panel.column for panel in main.panels], len(main.specs)
    (['Test 1', 'Test 2', 'Test 3'], 25)
    """
    return STUDIES[name](setup or Setup())


def specs_of(names: Iterable[str], setup: Setup) -> list[RunSpec]:
    """The distinct runs of some of `PLANS`.

    >>> runs = specs_of(STUDIES, Setup())
    >>> len([spec for spec in runs if spec.model in CONTESTANTS])
    165
    """
    return list(dict.fromkeys(spec for name in names for spec in PLANS[name](setup)))


def is_planned(spec: RunSpec, names: Iterable[str] | None = None) -> bool:
    """Whether a run belongs to some plan, or to one of these, with whatever number of seeds and steps."""
    planned = _planned(spec.steps, tuple(PLANS if names is None else names))
    return not {spec.digest, replace(spec, seed=0).digest}.isdisjoint(planned)


@cache
def _planned(steps: int, names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(spec.digest for spec in specs_of(names, Setup(1, steps)))


def _tests(
    setup: Setup, row: str, split: str, interaction: str | None, heads: int, band: Band, prefix: str = ""
) -> Iterator[Panel]:
    """The three tests of one task, side by side."""
    reading = READINGS[setup.reading]
    curves = tuple(
        over_seeds(label, reading.of(contestant(label, split, interaction, heads), heads), setup)
        for label in CONTESTANTS
    )
    floors = tuple(over_seeds(label, reading.of_floor(floor(label, split, interaction)), setup) for label in FLOORS)
    for condition, test in TESTS.items():
        yield Panel(row, prefix + test, split, interaction, heads, condition, band, curves, floors)


def _main_noninteracting(setup: Setup) -> Study:
    panels = _tests(setup, "square_red", "square_red", None, 4, Band(2, "SD"))
    return Study(
        "main-noninteracting",
        "Without interaction: square_red, 4 heads",
        "Loss on held-out combinations (square_red) in the three tests; attention has 4 heads.",
        tuple(panels),
    )


def _main_interacting(setup: Setup) -> Study:
    rows = (
        _tests(setup, title, "square_red", interaction, 8, Band(1, "SE")) for interaction, title in INTERACTIONS.items()
    )
    return Study(
        "main-interacting",
        "With interaction: square_red, 8 heads",
        "Loss on held-out combinations (square_red) when two factors interact; attention has 8 heads.",
        tuple(panel for row in rows for panel in row),
    )


def _noninteracting(setup: Setup) -> Study:
    columns = {4: Band(2, "SD"), 8: Band(2, "SE")}
    rows = (
        _tests(setup, split, split, None, heads, band, f"{heads} heads, ")
        for split in SPLITS
        for heads, band in columns.items()
    )
    return Study(
        "noninteracting",
        "Without interaction: all splits, 4 and 8 heads",
        "Loss on held-out combinations without interaction: three splits, 4 heads (left) and 8 heads (right).",
        tuple(panel for row in rows for panel in row),
    )


def _interacting(name: str, interaction: str) -> Callable[[Setup], Study]:
    def make(setup: Setup) -> Study:
        rows = (_tests(setup, split, split, interaction, 8, Band(1, "SE")) for split in SPLITS)
        return Study(
            name,
            f"With {INTERACTIONS[interaction]}: all splits, 8 heads",
            f"Loss on held-out combinations with the {INTERACTIONS[interaction]}: three splits, 8 heads.",
            tuple(panel for row in rows for panel in row),
        )

    return make


STUDIES: dict[str, Callable[[Setup], Study]] = {
    "main-noninteracting": cache(_main_noninteracting),
    "main-interacting": cache(_main_interacting),
    "noninteracting": cache(_noninteracting),
    "numerical": cache(_interacting("numerical", "scale_pos")),
    "categorical": cache(_interacting("categorical", "shape_col")),
}
"""Name to figure, in the paper's order; each is made once for a setup."""

READ_AGAIN = ("main-noninteracting", "main-interacting")
"""The figures that are made under every reading."""


def _readings(setup: Setup) -> tuple[RunSpec, ...]:
    each = (replace(setup, reading=reading) for reading in READINGS)
    return tuple(spec for changed in each for name in READ_AGAIN for spec in STUDIES[name](changed).specs)


def _search(setup: Setup) -> tuple[RunSpec, ...]:
    return tuple(spec for rates in search(setup.steps).values() for specs in rates.values() for spec in specs)


def _of_figures(makers: Iterable[Callable[[Setup], Study]]) -> Callable[[Setup], tuple[RunSpec, ...]]:
    return lambda setup: tuple(spec for make in makers for spec in make(setup).specs)


def _two_heads(setup: Setup) -> tuple[RunSpec, ...]:
    """The smallest model that solves the task (App. D), to look at."""
    return (RunSpec(model="tpr", options={"num_heads": 2, "learn_ids": False}, steps=setup.steps),)


PLANS: dict[str, Callable[[Setup], tuple[RunSpec, ...]]] = {
    **{name: _of_figures([make]) for name, make in STUDIES.items()},
    "readings": _readings,
    "search": _search,
    "two-heads": _two_heads,
    "beyond": _of_figures(BEYOND.values()),
    **{name: _of_figures(makers) for name, makers in GROWTH.items()},
}
"""Name to runs: all that can be asked for by name."""
