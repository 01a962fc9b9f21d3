"""Published values of associative retrieval: best losses of each model with keys of 64 numbers.

Source: Imanol Schlag, Kazuki Irie and Jürgen Schmidhuber, "Linear Transformers Are Secretly Fast Weight Programmers",
ICML 2021, the two synthetic settings: every key once, and keys with replacement.
"""

__all__ = ["ONCE", "REPLACEMENT"]

SIZES = (20, 40, 60, 80, 100, 200, 300, 400, 500, 600)

ONCE: dict[str, dict[float | int, float]] = {
    name: dict(zip(SIZES, losses, strict=True))
    for name, losses in {
        "softmax": (0.001, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.009, 0.030),
        "linear": (0.001, 0.001, 0.025, 0.108, 0.164, 0.342, 0.397, 0.422, 0.429, 0.451),
        "DPFP-1": (0.001, 0.0, 0.0, 0.0, 0.0, 0.173, 0.286, 0.341, 0.386, 0.411),
        "DPFP-2": (0.0, 0.001, 0.001, 0.001, 0.001, 0.0, 0.068, 0.164, 0.276, 0.323),
        "DPFP-3": (0.0, 0.001, 0.0, 0.001, 0.0, 0.001, 0.0, 0.036, 0.169, 0.198),
    }.items()
}
"""Model to number of pairs to loss, every key once."""

REPLACEMENT: dict[str, dict[float | int, float]] = {
    "DPFP-1, sum": {200: 0.231},
    "DPFP-1, delta": {200: 0.171},
    "DPFP-2, delta": {200: 0.001},
    "linear, delta": {200: 0.341},
}
"""The same for keys drawn with replacement, evaluated on as many draws as there are keys."""
