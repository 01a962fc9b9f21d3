"""Compare losses of a store with those of a kept reproduction: `python -m tests.golden.compare_reproduction runs`.

`reproduction.csv` has every run and test of the paper's figures, as commit e96a2d6 gave them on one machine. The same
build on the same kind of machine gives the same bits. Elsewhere the last digits of trainings are chaotic, so a loss may
differ by `TIMES`, and losses below `SOLVED` count as equal. Floors are solved and not trained: they agree better.
"""

import math
import sys
from pathlib import Path

import polars as pl

from tpr_attention.runner.store import Store

KEPT = Path(__file__).parent / "reproduction.csv"
KEYS = ["model", "num_heads", "learn_ids", "split", "interaction", "seed", "condition"]
SOLVED, TIMES = 1e-6, 2.0
FLOORS = ("linear-floor", "oracle")


def final_losses(store: Store) -> pl.DataFrame:
    """The last loss of every run and test."""
    rows = []
    for digest in store:
        spec, curve = store.spec(digest), store.curve(digest)
        last = curve.filter(
            (pl.col("step") == pl.col("step").max())
            & pl.col("group").is_null()
            & (pl.col("metric") == "loss")
            & (pl.col("condition") != "train")
        )
        heads, ids = spec.model.options.get("num_heads", 0), spec.model.options.get("learn_ids", True)
        task = spec.task.options
        rows += [
            (spec.model.name, heads, ids, task["split"], task["interaction"], spec.seed, condition, loss)
            for condition, loss in last.select("condition", "value").iter_rows()
        ]
    return pl.DataFrame(rows, schema=[*KEYS, "loss"], orient="row")


def differences(found: pl.DataFrame, kept: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows that both have, with the ratio of their losses, and those of them that differ."""
    both = kept.join(found, on=KEYS, how="inner", nulls_equal=True, suffix="_found")
    ratio = (pl.col("loss_found").clip(SOLVED) / pl.col("loss").clip(SOLVED)).alias("ratio")
    both = both.with_columns(ratio)
    limit = pl.when(pl.col("model").is_in(FLOORS)).then(math.log(1 + 3e-5)).otherwise(math.log(TIMES))
    return both, both.filter(pl.col("ratio").log().abs() > limit)


def main() -> int:
    kept = pl.read_csv(KEPT, schema_overrides={"interaction": pl.String})
    both, differ = differences(final_losses(Store(sys.argv[1])), kept)
    same = both.filter((pl.col("loss_found") - pl.col("loss")).abs() <= 1e-6 * pl.col("loss"))
    sys.stdout.write(f"{len(both)} of {len(kept)} losses compared, {len(same)} equal to six digits\n")
    logs = both["ratio"].log().abs()
    sys.stdout.write(f"largest ratio {math.exp(logs.max() or 0):.3g}, {len(differ)} differ\n")
    with pl.Config(tbl_rows=50, tbl_cols=12):
        sys.stdout.write(f"{differ}\n" if len(differ) else "")
    return 1 if len(differ) or len(both) < len(kept) else 0


if __name__ == "__main__":
    sys.exit(main())
