"""The report as GitHub-flavoured Markdown."""

import re
from functools import partial
from html import escape
from urllib.parse import quote

from tpr_attention.report.document import Block, Document, Text, alt_text, rich
from tpr_attention.report.tables import Table

__all__ = ["markdown"]

SPECIAL = re.compile(r"[\\*\[\]$~`]|(?<!\w)_|_(?!\w)|^[#+-](?=\s)|(?<=^\d)[.)](?=\s)")
"""Characters that Markdown would not take as they are."""


def markdown(document: Document) -> str:
    """The document. Folded tables are in `<details>`; of tables that are files only where they are."""
    parts = [f"# {_plain(document.title)}", *map(_block, document.opening)]
    for section in document.sections:
        parts += [f"## {_plain(section.title)}", *map(_block, section.blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return _plain(block.text)
    if not isinstance(block, Table):
        return f"![{_plain(alt_text(block))}](figures/{quote(block.name)}.png)\n\n{_plain(block.caption)}".rstrip()
    if block.shown == "file":
        return f"Table {_plain(block.name)}: tables/{quote(block.name)}.csv"
    rows = [
        [_cell(column.title) for column in block.columns],
        ["---:" if column.is_numeric else "---" for column in block.columns],
        *block.texts(text=_cell),
    ]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    if block.shown == "open":
        return f"{_plain(block.caption)}\n\n{table}"
    return f"<details>\n<summary>{_html(block.label)}</summary>\n\n{_plain(block.caption)}\n\n{table}\n\n</details>"


def _html(text: str) -> str:
    """A text within an element of HTML, where Markdown reads nothing."""
    return rich(text, partial(escape, quote=False), lambda code: f"<code>{escape(code, quote=False)}</code>")


def _cell(text: str) -> str:
    """Within a table a bar is escaped even in code."""
    return _plain(text).replace("|", r"\|")


def _plain(text: str) -> str:
    """A text of which Markdown reads only `code`."""
    return rich(text, _escaped, "`{}`".format)


def _escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\g<0>", escape(text, quote=False))
