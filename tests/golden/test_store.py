"""A store that an earlier version wrote is read: its runs have the same names, and nothing is taken for changed."""

from pathlib import Path

from tpr_attention.experiments.run import missing
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store

SPECS = [RunSpec(model=model, steps=4, train_pairs=50, eval_pairs=10, batch=50) for model in ("tpr", "linear-floor")]


def test_a_store_of_schema_2():
    store = Store(Path(__file__).parent / "store")
    assert not list(store.faults())
    assert not missing(SPECS, store)
    for spec in SPECS:
        assert store.spec(spec.digest) == spec
        assert store.provenance(spec.digest)["threads"] == 1
        assert {"step", "condition"} <= set(store.curve(spec.digest).columns)
    maps = {f"attention.{name}" for name in ("query_map", "id_query", "filler_map", "role_map")}
    assert set(store.weights(SPECS[0].digest)) == maps
