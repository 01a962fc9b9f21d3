"""A stored store of this schema is read: its runs have the same names, and no file counts as changed."""

import polars as pl

from tests.golden.write_store import SPECS, STORE
from tpr_attention.runner.run import missing
from tpr_attention.runner.store import Store
from tpr_attention.runner.tables import table_of
from tpr_attention.training.curves import CURVE


def test_a_store_of_schema_3():
    store = Store(STORE)
    assert not list(store.faults())
    assert not missing(SPECS, store)
    for spec in SPECS:
        assert store.spec(spec.digest) == spec
        assert store.provenance(spec.digest)["threads"] == 1
        names, curve = store.names(spec.digest), store.curve(spec.digest)
        assert curve.schema == CURVE
        assert set(names) == {"conditions", "metrics", "groups", "axes"}
        assert set(curve["metric"]) <= set(names["metrics"])
    maps = {f"attention.{name}" for name in ("query_map", "id_query", "filler_map", "role_map")}
    assert set(store.weights(SPECS[0].digest)) == maps
    table = table_of(store, store)
    assert table["sources"].null_count() == len(table)  # the column is younger than this store, whose runs have none
    assert pl.read_parquet(STORE / "runs.parquet").equals(table.drop("sources"))
