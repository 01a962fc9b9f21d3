"""The report as one HTML page that asks nothing of the network."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from urllib.parse import quote

from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from tpr_attention.report import heat_maps
from tpr_attention.report import lines as content
from tpr_attention.report.claims import FAILS, HOLDS, PARTLY, UNKNOWN
from tpr_attention.report.document import Block, Document, Figure, Heads, Section, Table, Text
from tpr_attention.report.interactive import plot
from tpr_attention.report.pictures import FORMS, encoded
from tpr_attention.report.results import Results
from tpr_attention.report.style import is_number, numeric_columns

__all__ = ["page"]

VERDICTS = {HOLDS: "holds", PARTLY: "part", FAILS: "fails", UNKNOWN: "missing"}
"""Verdict to the class of its badge."""

COLUMN_WIDTH, MARGINS = 170, 104
"""Pixels that a column of a figure needs at least, and what surrounds the columns: a narrower window scrolls."""


def page(document: Document, results: Results) -> str:
    """The whole page, with plotly.js, styles and data inside."""
    # Only these two scripts run: a text that would slip through as a script is refused by its hash.
    scripts = [get_plotlyjs().replace("</script", r"<\/script"), _resource("page.js")]
    hashes = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src 'self' file: data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    sections = enumerate(document.sections, 1)
    links = "".join(f'<li><a href="#section-{i}">{_rich(section.title)}</a></li>\n' for i, section in sections)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        f"<title>{escape(document.title)}</title>",
        f"<style>\n{_resource('page.css')}</style>",
        "</head>",
        "<body>",
        f"<header>\n<h1>{_rich(document.title)}</h1>\n</header>",
        f'<nav aria-label="Contents">\n<ol>\n{links}</ol>\n</nav>' if document.sections else "",
        "<main>",
        *(_section(i, section, results) for i, section in enumerate(document.sections, 1)),
        "</main>",
        *(f"<script>{script}</script>" for script in scripts),
        "</body>",
        "</html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _resource(name: str) -> str:
    return files("tpr_attention.report").joinpath(name).read_text(encoding="utf-8")


def _section(index: int, section: Section, results: Results) -> str:
    blocks = "\n".join(_block(block, results) for block in section.blocks)
    return f'<section id="section-{index}">\n<h2>{_rich(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block, results: Results) -> str:
    match block:
        case Text():
            return f"<p>{_cell(block.text)}</p>"
        case Table():
            return _table(block)
        case Figure():
            return _figure(block, results)
        case Heads():
            return _heads(block)


def _table(block: Table) -> str:
    right = numeric_columns(block)
    head = "".join(_tag("th", title, numeric) for title, numeric in zip(block.columns, right, strict=True))
    body = "\n".join(
        f"<tr>{''.join(_tag('td', cell, numeric) for cell, numeric in zip(row, right, strict=True))}</tr>"
        for row in block.rows
    )
    name, caption = quote(block.name), _rich(block.caption)
    table = (
        f'<div class="scroll" tabindex="0"><table aria-label="{escape(block.caption)}">\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>\n"
        f'<p class="files">Data: <a href="tables/{name}.csv">{escape(block.name)}.csv</a></p>'
    )
    if block.folded:
        return f'<details class="block">\n<summary>{caption}</summary>\n{table}\n</details>'
    return f'<div class="block">\n<p class="caption">{caption}</p>\n{table}\n</div>'


def _figure(block: Figure, results: Results) -> str:
    name, study = quote(block.study.name), block.study
    data = json.dumps(plot(study, results), allow_nan=False, separators=(",", ":")).replace("<", r"\u003c")
    width = COLUMN_WIDTH * len(content.columns(study)) + MARGINS
    band = content.one_band(study)
    notes = [f"Bands: {content.band_words(band)}."] if band else []
    return (
        f'<figure>\n<div class="scroll" tabindex="0"><div class="plot" data-name="{escape(study.name)}" '
        f'style="min-width:{width}px"><script type="application/json">{data}</script></div>\n'
        f'<noscript><img src="figures/{name}.png" alt="{escape(block.caption)}"></noscript></div>\n'
        f"<figcaption>{_rich(block.caption)}</figcaption>\n"
        f'<p class="notes">{escape(" ".join([*notes, *content.notes(study, results)]))}</p>\n'
        f"{_files(study.name)}\n</figure>"
    )


def _heads(block: Heads) -> str:
    """The picture itself is in the page, so that it is there wherever the page is."""
    data = b64encode(encoded(heat_maps.draw(block.inside), "png")).decode()
    return (
        f'<figure>\n<div class="scroll" tabindex="0"><img src="data:image/png;base64,{data}" '
        f'alt="{escape(block.caption)}"></div>\n'
        f"<figcaption>{_rich(block.caption)}</figcaption>\n{_files(block.name)}\n</figure>"
    )


def _files(name: str) -> str:
    links = ", ".join(f'<a href="figures/{quote(name)}.{form}">{form.upper()}</a>' for form in FORMS)
    return f'<p class="files">Picture: {links}</p>'


def _tag(tag: str, text: str, numeric: bool) -> str:
    right = ' class="number"' if numeric or (tag == "td" and is_number(text)) else ""
    return f"<{tag}{right}>{_cell(text)}</{tag}>"


def _cell(text: str) -> str:
    """A text, with a badge if it is a verdict."""
    return f'<span class="badge {VERDICTS[text]}">{text}</span>' if text in VERDICTS else _rich(text)


def _rich(text: str) -> str:
    """A plain text as HTML, with `code` between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
