"""Write a report: page, Markdown, figures and tables."""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from pathlib import Path

import polars as pl

from tpr_attention.report.document import Document, Drawing
from tpr_attention.report.drawings.pictures import FORMATS, encoded
from tpr_attention.report.html import page
from tpr_attention.report.latex import latex_table
from tpr_attention.report.markdown import markdown
from tpr_attention.report.tables import csv_text
from tpr_attention.runner.files import write_file
from tpr_attention.runner.store import StoreError

__all__ = ["write_report"]


def write_report(document: Document, folder: Path, *, losses: pl.DataFrame | None = None, workers: int = 0) -> Path:
    """Write everything into a folder. Returns the path of the page.

    Args:
        losses: Final values, see `Results.final_values`; written to `tables/losses.parquet` and `.csv`.
        workers: Processes that draw figures; with 0 they are drawn in this one.
    """
    try:
        for part in (folder, folder / "tables", folder / "figures"):
            part.mkdir(parents=True, exist_ok=True)
        for table in document.tables:
            write_file(folder / "tables" / f"{table.name}.csv", csv_text(table).encode())
            if table.latex:
                write_file(folder / "tables" / f"{table.name}.tex", latex_table(table).encode())
        if losses is not None:
            losses.write_parquet(buffer := BytesIO())
            write_file(folder / "tables" / "losses.parquet", buffer.getvalue())
            write_file(folder / "tables" / "losses.csv", losses.write_csv().encode())
        write_file(folder / "report.md", markdown(document).encode())
        pictures = dict(_draw_all(document.drawings, folder / "figures", workers))
        write_file(folder / "index.html", page(document, pictures).encode())
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return folder / "index.html"


def _draw_all(drawings: Sequence[Drawing], folder: Path, workers: int) -> list[tuple[str, bytes]]:
    """Write the files of all drawings. Returns their names and PNGs."""
    if not workers or len(drawings) < 2:
        return [_draw(drawing, folder) for drawing in drawings]
    with ProcessPoolExecutor(min(workers, len(drawings)), multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(_draw, drawings, [folder] * len(drawings)))


def _draw(drawing: Drawing, folder: Path) -> tuple[str, bytes]:
    figure = drawing.draw()
    files = {form: encoded(figure, form) for form in FORMATS}
    for form, data in files.items():
        write_file(folder / f"{drawing.name}.{form}", data)
    return drawing.name, files["png"]
