"""The models that are compared on the composition task: words, looks, options and learning rates."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tpr_attention.report.panels import Band, Look, Panel, Plan, Series
from tpr_attention.studies.study import Setup, over_sizes
from tpr_attention.tasks.composition.splits import TESTS
from tpr_attention.training.spec import ROUNDING, RunSpec

__all__ = [
    "BASELINES",
    "CONTESTANTS",
    "FLOORS",
    "INTERACTIONS",
    "KNOWABLE",
    "LINEAR",
    "NEW",
    "OURS",
    "PAPER",
    "SPLITS",
    "TESTS",
    "Contestant",
    "contestant",
    "contestant_series",
    "figure_of",
    "floor_series",
    "setting_words",
    "task_panels",
    "words",
]

SE = Band(1, "SE")
SPLITS = ("scale_pos", "square_pos", "square_red")
INTERACTIONS = {"scale_pos": "numerical interaction (scale_pos)", "shape_col": "categorical interaction (shape_col)"}


@dataclass(frozen=True)
class Contestant:
    """A model in the comparison.

    Args:
        words: What legends call it.
        look: How its line is drawn.
        has_heads: Whether it is told a number of heads.
        rates: Interaction and heads to the learning rate that `search` found (decision 0018).
        options: Further options, the same in all settings.
        rate: The learning rate where `rates` has none.
    """

    words: str
    look: Look
    has_heads: bool = True
    rates: Mapping[tuple[str | None, int], float] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    rate: float = 0.01


CONTESTANTS: dict[str, Contestant] = {
    "tpr": Contestant(
        "TPR-Attention",
        Look("#d1242f", (), "o"),
        rates={(None, 4): 0.01, (None, 8): 0.1, ("scale_pos", 8): 0.1, ("shape_col", 8): 0.03},
    ),
    "classical": Contestant(
        "classical attention",
        Look("#b07800", (5, 2), "s"),
        rates={(None, 4): 0.03, (None, 8): 0.1, ("scale_pos", 8): 0.03, ("shape_col", 8): 0.03},
    ),
    "resnet": Contestant(
        "ResNet",
        Look("#2563c9", (6, 2, 1, 2), "^"),
        has_heads=False,
        rates={(None, 4): 0.01, (None, 8): 0.01, ("scale_pos", 8): 0.01, ("shape_col", 8): 0.01},
    ),
    "tpr-second": Contestant(
        "second-order heads", Look("#168a5b", (3, 1.5), "D"), has_heads=False, options={"num_heads": 12}
    ),
    "tpr-stack": Contestant(
        "stacked blocks", Look("#7c3aed", (8, 1.5), "P"), has_heads=False, options={"num_heads": 12}
    ),
    "tpr-laws": Contestant("substitution and laws", Look("#0e8a9c", (2, 1, 5, 1), "*"), has_heads=False),
    "linear-floor": Contestant("best linear fit", Look("#1f2328", (1, 1.6), "", 1.2), has_heads=False),
    "oracle": Contestant("best guess", Look("#1f2328", (10, 3), "", 1.2), has_heads=False),
}

PAPER = OURS, *BASELINES = ("tpr", "classical", "resnet")
"""The paper's model and its baselines."""
NEW = ("tpr-second", "tpr-stack", "tpr-laws")
FLOORS = LINEAR, KNOWABLE = ("linear-floor", "oracle")
"""The linear map for each action that fits the training data best, and the best answer that can be known."""


def words(name: str) -> str:
    """What a contestant is called in a sentence."""
    return CONTESTANTS[name].words


def contestant(name: str, split: str, interaction: str | None, heads: int = 0) -> RunSpec:
    """The spec of a contestant, for seed 0.

    >>> contestant("classical", "square_red", None, 8).training.learning_rate
    0.1
    """
    one = CONTESTANTS[name]
    options = {f"model.{key}": value for key, value in one.options.items()}
    if one.has_heads:
        options["model.num_heads"] = heads
    return RunSpec.of(
        {
            "task": "composition",
            "task.split": split,
            "task.interaction": interaction,
            "model": name,
            **options,
            "training.learning_rate": one.rates.get((interaction, heads), one.rate),
        }
    )


def setting_words(interaction: str | None) -> str:
    """A setting at the end of a sentence."""
    return f"with the {INTERACTIONS[interaction]}" if interaction else "without interaction"


def contestant_series(name: str, setup: Setup, *specs: RunSpec) -> Series:
    """A contestant's line over the seeds of a setup; over sizes, if there is a spec for each of them."""
    return over_sizes(name, specs, setup, words(name), CONTESTANTS[name].look)


def floor_series(split: str, interaction: str | None, setup: Setup) -> tuple[Series, ...]:
    """Both floors of a task."""
    return tuple(contestant_series(name, setup, contestant(name, split, interaction)) for name in FLOORS)


def task_panels(
    row: str,
    split: str,
    interaction: str | None,
    series: tuple[Series, ...],
    floors: tuple[Series, ...],
    *,
    heads: int | None = None,
    band: Band = SE,
    prefix: str = "",
    sizes: tuple[float | int, ...] = (),
    axis: str = "training steps",
) -> Iterator[Panel]:
    """The three tests of one task, side by side; see `Panel`.

    Args:
        prefix: What stands before the title of each column.
    """
    for condition, test in TESTS.items():
        about = {"interaction": interaction or "none", "split": split}
        about |= ({"heads": str(heads)} if heads else {}) | {"test": condition}
        yield Panel(row, prefix + test, about, condition, band, series, floors, sizes, axis, mark=_solvable)


def figure_of(name: str, title: str, caption: str, panels: Iterable[Panel]) -> Plan:
    """A figure of panels of tasks, with a note on what is written into them."""
    note = "Solvable: the best guess has no loss; also linearly: nor has the best linear fit."
    return Plan(name, title, caption, tuple(panels), note)


def _solvable(floors: Mapping[str, float]) -> str:
    """Whether anybody can solve a panel, and a linear map; nothing before that is known."""
    if KNOWABLE not in floors:
        return ""
    if floors[KNOWABLE] >= ROUNDING:
        return "not solvable"
    return "solvable, also linearly" if floors.get(LINEAR, ROUNDING) < ROUNDING else "solvable"
