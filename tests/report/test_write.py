"""The files of a report."""

import csv

import polars as pl
import pytest

from tests.report import made_up
from tpr_attention.report.document import Document, Section, Text
from tpr_attention.report.drawings import Curves, HeadMaps
from tpr_attention.report.inspection import inspect_weights
from tpr_attention.report.tables import Column, Table
from tpr_attention.report.write import write_report
from tpr_attention.runner.store import StoreError


@pytest.fixture
def results(run):
    return run(made_up.plan())


@pytest.fixture
def document(results):
    columns, rows = [Column("model"), Column("loss", "number")], [["ours", 1 / 3]]
    heads = HeadMaps("heads", inspect_weights(made_up.head_weights()), "What heads do.")
    blocks = [
        Text("Words."),
        Table("cells", "All cells.", columns, rows, latex=True),
        Table("other", "Others.", columns, rows, "file"),
        Curves(made_up.plan(mark=lambda floors: "a mark"), results),
        heads,
    ]
    return Document("A report", [Section("All", blocks)])


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_files_are_written_and_always_the_same(document, results, tmp_path):
    page = write_report(document, tmp_path / "one", losses=results.final_values())
    assert page == tmp_path / "one" / "index.html"
    write_report(document, tmp_path / "two", losses=results.final_values(), workers=2)
    one, two = files(tmp_path / "one"), files(tmp_path / "two")
    assert one == two
    pictures = {f"figures/{name}.{form}" for name in ("made-up", "heads") for form in ("png", "svg", "pdf")}
    tables = {f"tables/{name}" for name in ("cells.csv", "cells.tex", "other.csv", "losses.csv", "losses.parquet")}
    assert set(one) == {"index.html", "report.md", *pictures, *tables}
    assert b"(figures/heads.png)" in one["report.md"]


def test_tables_are_files(document, results, tmp_path):
    words = Document("Tables", [Section("All", document.tables)])
    write_report(words, tmp_path, losses=results.final_values())
    with (tmp_path / "tables" / "cells.csv").open() as file:
        assert list(csv.DictReader(file)) == [{"model": "ours", "loss": str(1 / 3)}]
    assert r"\begin{tabular}" in (tmp_path / "tables" / "cells.tex").read_text()
    losses = pl.read_parquet(tmp_path / "tables" / "losses.parquet")
    assert losses.equals(results.final_values())
    assert len(pl.read_csv(tmp_path / "tables" / "losses.csv")) == len(losses) > 0


def test_a_document_without_figures_and_losses(tmp_path):
    write_report(Document("Empty", []), tmp_path / "deep" / "report", workers=2)
    assert set(files(tmp_path)) == {"deep/report/index.html", "deep/report/report.md"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file.*cannot be written"):
        write_report(Document("Empty", []), tmp_path / "file")
