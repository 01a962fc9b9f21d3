"""Write the report of a store: page, Markdown, figures and tables."""

import csv
import io
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tpr_attention.experiments.files import write_file
from tpr_attention.experiments.layout import Setup
from tpr_attention.experiments.search import SEEDS
from tpr_attention.experiments.store import Store, StoreError
from tpr_attention.experiments.studies import is_planned
from tpr_attention.report import figures, heat_maps
from tpr_attention.report.compose import Material, compose, gather
from tpr_attention.report.document import Document, Figure, Heads, Table
from tpr_attention.report.latex import latex_table
from tpr_attention.report.markdown import markdown
from tpr_attention.report.page import page
from tpr_attention.report.results import Results

__all__ = ["infer_setup", "write_report"]

IN_LATEX = ("cells", "claims")


def infer_setup(store: Store) -> Setup:
    """How a store was filled: the steps of most runs that belong to a figure, and the seeds there are."""
    planned = [spec for spec in map(store.spec, store) if is_planned(spec) and spec.seed < min(SEEDS)]
    whole = [spec for spec in planned if spec.factors is None]  # in other worlds, trainings are shorter
    seeds: dict[int, list[int]] = {}
    for spec in whole or planned:
        seeds.setdefault(spec.steps, []).append(spec.seed)
    if not seeds:
        return Setup()
    steps = max(seeds, key=lambda number: len(seeds[number]))
    return Setup(seeds=max(seeds[steps]) + 1, steps=steps)


def write_report(store: Store, folder: Path, setup: Setup, *, workers: int = 0) -> Path:
    """Write everything into a folder; the path of the page.

    Args:
        workers: Processes that draw figures while the rest is written. With 0, no other process is started.
    """
    material = gather(store, setup)
    document = compose(material)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_tables(document, material, folder / "tables")
        (folder / "figures").mkdir(exist_ok=True)
        pictures = [block for block in _blocks(document) if isinstance(block, Figure | Heads)]
        with _drawers(min(workers, len(pictures))) as draw:
            for block in pictures:
                draw(block, material.results, folder / "figures")
            write_file(folder / "report.md", markdown(document).encode())
            write_file(folder / "index.html", page(document, material.results).encode())
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return folder / "index.html"


@contextmanager
def _drawers(workers: int) -> Iterator[Callable[[Figure | Heads, Results, Path], object]]:
    """A way to have figures drawn, all of them at the end: in other processes, or here at once."""
    if not workers:
        yield _draw
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        drawn: list[Future[list[Path]]] = []
        yield lambda block, results, folder: drawn.append(pool.submit(_draw, block, results, folder))
        for future in drawn:
            future.result()


def _draw(block: Figure | Heads, results: Results, folder: Path) -> list[Path]:
    if isinstance(block, Heads):
        return heat_maps.save(block.inside, folder, block.name)
    return figures.save(block.study, results, folder)


def _write_tables(document: Document, material: Material, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for block in _blocks(document):
        if isinstance(block, Table):
            write_file(folder / f"{block.name}.csv", _csv(block))
            if block.name in IN_LATEX:
                write_file(folder / f"{block.name}.tex", latex_table(block).encode())
    results = material.results
    if results.specs:
        specs = results.store.specs(results.specs)
        losses = specs.join(results.last, on="run", how="left", maintain_order="left_right")
        buffer = io.BytesIO()
        losses.write_parquet(buffer)
        write_file(folder / "losses.parquet", buffer.getvalue())
        write_file(folder / "losses.csv", losses.write_csv().encode())


def _blocks(document: Document) -> list[object]:
    return [block for section in document.sections for block in section.blocks]


def _csv(table: Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return text.getvalue().encode()
