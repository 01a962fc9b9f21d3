"""Numbers that are stored with the documentation are those that its pages show."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.studies.image_runs import save
from tpr_attention.report.markdown import markdown
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose, infer_setup
from tpr_attention.studies.images.contestants import FIRST_SEED, MAIN, series_of

DOCS = Path(__file__).parents[2] / "docs"
STORE = DOCS / "results" / "images"


def table_lines(text):
    return [line for line in text.splitlines() if line.startswith("|")]


@pytest.fixture(scope="module")
def written():
    store = Store(STORE)
    return markdown(compose(store, infer_setup(store))[0])


@pytest.mark.parametrize("section", ["the main model", "all 40 angles"])
def test_tables_of_images_are_made_of_stored_numbers(section, written):
    title = f"## Images: {section}\n"
    page = (DOCS / "images.md").read_text()
    made, shown = (table_lines(text.split(title)[1].split("\n## ")[0]) for text in (written, page))
    assert len(shown) > 2
    assert made == shown


def test_what_is_kept_of_a_store(tmp_path, monkeypatch):
    """All but the weights; and what is kept already stays."""
    first, second = series_of(MAIN, Setup(seeds=2, first_seed=FIRST_SEED))["union"].specs
    store = Store(tmp_path / "store", create=True)
    for number, spec in enumerate((first, second)):
        save(store, spec, {"w": np.ones(3)})
        monkeypatch.setattr(sys, "argv", ["keep.py", str(store.path), str(tmp_path / "kept")])
        runpy.run_path(str(DOCS / "results" / "keep.py"), run_name="__main__")
        kept = Store(tmp_path / "kept")
        assert len(set(kept)) == number + 1
    for spec in (first, second):
        assert kept.check(spec.digest) == spec
        assert kept.curve(spec.digest).equals(store.curve(spec.digest))
        assert kept.provenance(spec.digest) == store.provenance(spec.digest)
        assert kept.names(spec.digest) == store.names(spec.digest)
        assert kept.weights(spec.digest) == {}
