"""Write a report: page, Markdown, figures and tables."""

import multiprocessing
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from types import FrameType

import polars as pl

from tpr_attention.report.document import Document, Drawing
from tpr_attention.report.drawings.pictures import FORMATS, encoded
from tpr_attention.report.html import page
from tpr_attention.report.latex import latex_table
from tpr_attention.report.markdown import markdown
from tpr_attention.report.tables import csv_text, inert
from tpr_attention.runner.files import write_file
from tpr_attention.runner.store import StoreError

__all__ = ["write_report"]


def write_report(document: Document, folder: Path, *, losses: pl.DataFrame | None = None, workers: int = 0) -> Path:
    """Write everything into a folder, or nothing: an earlier report stays as it is until the new one is complete.

    Args:
        losses: Final values, see `Results.final_values`; written to `tables/losses.parquet` and `.csv`.
        workers: Processes that draw figures; with 0 they are drawn in this one.

    Returns:
        The path of the page.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".report.", dir=folder) as unfinished:
            new, old = Path(unfinished) / "new", Path(unfinished) / "old"
            _write(document, new, losses, workers)
            with _undisturbed():
                _replace(folder, new, old)
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    finally:
        if is_new:
            with suppress(OSError):  # not empty: it has a report
                folder.rmdir()
    return folder / "index.html"


def _write(document: Document, folder: Path, losses: pl.DataFrame | None, workers: int) -> None:
    for part in (folder, folder / "tables", folder / "figures"):
        part.mkdir()
    for table in document.tables:
        write_file(folder / "tables" / f"{table.name}.csv", csv_text(table).encode())
        if table.latex:
            write_file(folder / "tables" / f"{table.name}.tex", latex_table(table).encode())
    if losses is not None:
        losses.write_parquet(buffer := BytesIO())
        write_file(folder / "tables" / "losses.parquet", buffer.getvalue())
        texts = pl.col(pl.String).map_elements(inert, return_dtype=pl.String)
        write_file(folder / "tables" / "losses.csv", losses.with_columns(texts).write_csv().encode())
    write_file(folder / "report.md", markdown(document).encode())
    pictures = dict(_draw_all(document.drawings, folder / "figures", workers))
    write_file(folder / "index.html", page(document, pictures).encode())


def _replace(folder: Path, new: Path, old: Path) -> None:
    """Put a report in the place of an earlier one; what else the folder has stays. Undone if it fails."""
    old.mkdir()
    moved: list[tuple[Path, Path]] = []
    try:
        for entry in sorted(new.iterdir()):
            there = folder / entry.name
            steps = [(there, old / entry.name)] if there.exists() else []
            for source, target in (*steps, (entry, there)):
                source.rename(target)
                moved.append((source, target))
    except OSError:
        for source, target in reversed(moved):
            target.rename(source)
        raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Put off Ctrl-C and SIGTERM for a moment."""
    if threading.current_thread() is not threading.main_thread():  # no signal interrupts it
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *arguments: received.append(arguments))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for first, frame in received[:1]:
            delayed = before[signal.Signals(first)]
            if callable(delayed):
                delayed(first, frame)


def _ignore_interrupts() -> None:
    """The process that started this one decides."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _draw_all(drawings: Sequence[Drawing], folder: Path, workers: int) -> list[tuple[str, bytes]]:
    """Write the files of all drawings. Returns their names and PNGs."""
    if not workers or len(drawings) < 2:
        return [_draw(drawing, folder) for drawing in drawings]
    count, context = min(workers, len(drawings)), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context, _ignore_interrupts) as pool:
        return list(pool.map(_draw, drawings, [folder] * len(drawings)))


def _draw(drawing: Drawing, folder: Path) -> tuple[str, bytes]:
    figure = drawing.draw()
    files = {form: encoded(figure, form) for form in FORMATS}
    for form, data in files.items():
        write_file(folder / f"{drawing.name}.{form}", data)
    return drawing.name, files["png"]
