"""The learning rate of each model at each number of training pairs (decision 0029)."""

__all__ = ["RATES"]

SIZES = (30, 100, 300, 1_000, 3_000, 10_000, 50_000)

RATES: dict[str, dict[int, float]] = {
    name: dict(zip(SIZES, rates, strict=True))
    for name, rates in {
        "tpr": (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1),
        "classical": (0.001, 0.001, 0.003, 0.01, 0.03, 0.03, 0.03),
        "resnet": (0.03, 0.01, 0.03, 0.01, 0.01, 0.01, 0.01),
        "tpr-stack": (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1),
        "tpr-laws": (0.1, 0.01, 0.01, 0.03, 0.03, 0.03, 0.03),
    }.items()
}
"""Model to number of pairs to rate."""
