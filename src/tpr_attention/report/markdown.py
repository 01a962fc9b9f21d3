"""The report as GitHub-flavoured Markdown."""

import re
from html import escape
from urllib.parse import quote

from tpr_attention.report.document import Block, Document, Text, rich
from tpr_attention.report.tables import Table

__all__ = ["markdown"]

SPECIAL = re.compile(r"[\\*\[\]$~`]|(?<!\w)_|_(?!\w)|^[#+-](?=\s)|(?<=^\d)[.)](?=\s)")
"""Characters that Markdown would not take as they are."""


def markdown(document: Document) -> str:
    """The document; of folded tables only where they are."""
    parts = [f"# {_plain(document.title)}"]
    for section in document.sections:
        parts += [f"## {_plain(section.title)}", *map(_block, section.blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return _plain(block.text)
    if not isinstance(block, Table):
        return f"![{_plain(block.caption)}](figures/{quote(block.name)}.png)"
    if block.folded:
        return f"Table {_plain(block.name)}: tables/{quote(block.name)}.csv"
    rows = [
        [_cell(column.title) for column in block.columns],
        ["---:" if column.is_numeric else "---" for column in block.columns],
        *block.texts(text=_cell),
    ]
    return f"{_plain(block.caption)}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _cell(text: str) -> str:
    """Within a table a bar is escaped even in code."""
    return _plain(text).replace("|", r"\|")


def _plain(text: str) -> str:
    """A text of which Markdown reads only `code`."""
    return rich(text, _escaped, "`{}`".format)


def _escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\g<0>", escape(text, quote=False))
