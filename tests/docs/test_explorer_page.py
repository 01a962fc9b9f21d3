"""The documentation has the explorer beside its pages, with the models that are stored with it."""

from types import SimpleNamespace

from docs.extensions.explorer_page import MODELS, trained_models, write_explorer

from tests.docs.test_pages import ROOT


def built(folder, name="html", error=None):
    write_explorer(SimpleNamespace(builder=SimpleNamespace(name=name), outdir=folder), error)
    return folder / "explore.html"


def test_the_page_is_written_after_a_build_and_is_small(tmp_path):
    assert len(trained_models(MODELS)) > 1
    assert 100_000 < built(tmp_path).stat().st_size < 3_000_000


def test_no_page_is_written_after_a_failure_or_by_another_builder(tmp_path):
    assert not built(tmp_path, error=ValueError("failed")).exists()
    assert not built(tmp_path, name="dirhtml").exists()


def test_the_start_page_links_to_it():
    assert 'href="explore.html"' in (ROOT / "docs" / "index.md").read_text()
