"""What the paper leaves for later: several layers, and more factors, wider fillers and noise."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tpr_attention.experiments.charts import Chart, Series, View
from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS, LINEAR, floor
from tpr_attention.experiments.layout import INTERACTIONS, TESTS, Setup, over_seeds
from tpr_attention.experiments.spec import RunSpec

__all__ = ["GROWTH", "LAYERS", "SIZES"]

RATE = 0.01
LAYERS = (1, 2, 3, 4)
DEEP: dict[str, dict[str, int]] = {"tpr": {"num_heads": 8}, "classical": {"num_heads": 8}, "resnet": {}}

SIZES: dict[str, tuple[str, Sequence[float | int]]] = {
    "factors": ("number of factors", (5, 10, 20, 40)),
    "filler_dim": ("size of fillers", (3, 8, 16, 32, 64)),
    "noise": ("noise on the inputs (standard deviation)", (0.01, 0.03, 0.1, 0.3)),
}
"""What grows, in words, and through which sizes."""

GROWN: dict[str, dict[str, int]] = {
    "tpr": {"num_heads": 8},
    "classical": {"num_heads": 8, "head_dim": 16},
    "resnet": {"width": 128},
}
SHORT = RunSpec(factors=5, filler_dim=3, train_pairs=20_000, eval_pairs=500, learning_rate=RATE)
MOST_STEPS = 2_000


def _deep(label: str, interaction: str | None, layers: int) -> RunSpec:
    options: dict[str, int] = DEEP[label] | ({"num_layers": layers} if layers > 1 else {})
    model = label if layers == 1 else f"{label}-deep"
    return RunSpec(model=model, options=options, interaction=interaction, learning_rate=RATE)


def _depth(setup: Setup) -> Chart:
    def views() -> Iterator[View]:
        for interaction in (None, *INTERACTIONS):
            lines = tuple(
                Series(label, tuple((float(n), over_seeds(label, _deep(label, interaction, n), setup)) for n in LAYERS))
                for label in CONTESTANTS
            )
            heights = {label: over_seeds(label, floor(label, "square_red", interaction), setup) for label in FLOORS}
            floors = tuple(
                Series(label, tuple((float(n), height) for n in LAYERS)) for label, height in heights.items()
            )
            row = INTERACTIONS[interaction] if interaction else "no interaction"
            for condition, test in TESTS.items():
                yield View(row, test, "layers", condition, lines, floors)

    return Chart(
        "depth",
        "Several layers",
        "Final loss against the number of layers; red squares held out, 8 heads, the same steps, pairs and learning "
        f"rate ({RATE:g}) for all.",
        tuple(views()),
    )


def _scaling(setup: Setup) -> Chart:
    setup = replace(setup, steps=min(setup.steps, MOST_STEPS))

    def series(label: str, spec: RunSpec, field: str, sizes: Sequence[float | int]) -> Series:
        changed = (replace(spec, **{field: size}) for size in sizes)  # type: ignore[arg-type]
        return Series(
            label, tuple((float(size), over_seeds(label, one, setup)) for size, one in zip(sizes, changed, strict=True))
        )

    def views() -> Iterator[View]:
        for field, (words, sizes) in SIZES.items():
            lines = tuple(
                series(label, replace(SHORT, model=label, options=options), field, sizes)
                for label, options in GROWN.items()
            )
            floors = (series(LINEAR, replace(SHORT, model=LINEAR), field, sizes),) if field == "noise" else ()
            for condition, test in TESTS.items():
                yield View(words, test, words, condition, lines, floors)

    return Chart(
        "scaling",
        "More factors, wider fillers, noise",
        "Final loss as a share of that of the copy, in worlds of random factors (5 factors with fillers of 3 numbers, "
        f"unless the axis says otherwise; {setup.steps:,} steps, learning rate {RATE:g} for all).",
        tuple(views()),
        relative=True,
    )


GROWTH: dict[str, Callable[[Setup], Chart]] = {"depth": _depth, "scaling": _scaling}
"""Name to figure."""
