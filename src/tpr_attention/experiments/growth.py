"""What the paper leaves for later: several layers, and more factors, wider fillers and noise."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from tpr_attention.experiments.contestants import CONTESTANTS, FLOORS, LINEAR, floor
from tpr_attention.experiments.layout import INTERACTIONS, TESTS, Band, Panel, Setup, Study, over_seeds, over_sizes
from tpr_attention.experiments.spec import RunSpec

__all__ = ["GROWN", "GROWTH", "LAYERS", "SIZES", "SMALL"]

RATE, BAND = 0.01, Band(1, "SE")
LAYERS = (1, 2, 3, 4)
DEEP: dict[str, dict[str, int]] = {"tpr": {"num_heads": 8}, "classical": {"num_heads": 8}, "resnet": {}}

SIZES: dict[str, tuple[str, tuple[float | int, ...]]] = {
    "factors": ("number of factors", (5, 10, 20, 40)),
    "filler_dim": ("size of fillers", (3, 8, 16, 32, 64)),
    "noise": ("noise on the inputs (SD)", (0.01, 0.03, 0.1, 0.3)),
}
"""What grows, in words, and through which sizes."""

GROWN: dict[str, dict[str, int]] = {
    "tpr": {"num_heads": 8},
    "classical": {"num_heads": 8, "head_dim": 16},
    "resnet": {"width": 128},
}
SMALL = RunSpec(factors=5, filler_dim=3, train_pairs=20_000, eval_pairs=500, learning_rate=RATE)
MOST_STEPS = 2_000


def _deep(label: str, interaction: str | None, layers: int) -> RunSpec:
    options: dict[str, int] = DEEP[label] | ({"num_layers": layers} if layers > 1 else {})
    model = label if layers == 1 else f"{label}-deep"
    return RunSpec(model=model, options=options, interaction=interaction, learning_rate=RATE)


def _depth(setup: Setup) -> Study:
    def panels() -> Iterator[Panel]:
        for interaction in (None, *INTERACTIONS):
            curves = tuple(
                over_sizes(label, (_deep(label, interaction, n) for n in LAYERS), setup) for label in CONTESTANTS
            )
            floors = tuple(over_seeds(label, floor(label, "square_red", interaction), setup) for label in FLOORS)
            row = INTERACTIONS[interaction] if interaction else "no interaction"
            for condition, test in TESTS.items():
                yield Panel(
                    row, test, "square_red", interaction, 8, condition, BAND, curves, floors, LAYERS, "number of layers"
                )

    return Study(
        "depth",
        "Several layers",
        "Final loss against the number of layers; red squares held out, 8 heads, the same steps, pairs and learning "
        f"rate ({RATE:g}) for all.",
        tuple(panels()),
    )


def _scaling(field: str) -> Callable[[Setup], Study]:
    words, sizes = SIZES[field]

    def make(setup: Setup) -> Study:
        setup = replace(setup, steps=min(setup.steps, MOST_STEPS))
        models = {label: replace(SMALL, model=label, options=options) for label, options in GROWN.items()}
        models |= {LINEAR: replace(SMALL, model=LINEAR)} if field == "noise" else {}
        curves = tuple(
            over_sizes(label, (replace(spec, **{field: size}) for size in sizes), setup)  # type: ignore[arg-type]
            for label, spec in models.items()
        )
        return Study(
            f"scaling-{field}",
            f"How losses grow with the {words}",
            f"Final loss against the {words}, in worlds of random factors: 5 factors with fillers of 3 numbers, unless "
            f"the axis says otherwise; {setup.steps:,} steps, learning rate {RATE:g} for all.",
            tuple(
                Panel("random factors", test, "random", None, None, condition, BAND, curves, (), sizes, words)
                for condition, test in TESTS.items()
            ),
        )

    return make


GROWTH: dict[str, tuple[Callable[[Setup], Study], ...]] = {
    "depth": (cache(_depth),),
    "scaling": tuple(cache(_scaling(field)) for field in SIZES),
}
"""Name to figures."""
